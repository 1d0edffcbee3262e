"""Equal numbers get one spelling, and nothing else does."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from muniment.normal import FORMS

number = FORMS["number"]
numerals = st.from_regex(
    r"\A[+-]?(?:[0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})(?:[Ee][+-]?[0-9]{1,2})?\Z"
)


@given(numerals, numerals)
@example("1.10", "1.1")
@example("-0.00", "0")
@example("007", "7")
@example("1e2", "100")
@example("100", "1")
def test_numbers_are_spelt_the_same_if_they_are_equal(a: str, b: str) -> None:
    same = number(a.encode()) == number(b.encode())
    assert same == (Decimal(a) == Decimal(b))
    assert Decimal(number(a.encode()).decode()) == Decimal(a)


@given(st.text("0123456789.-+eEx ", max_size=8).map(str.encode))
def test_what_is_no_number_stays_as_it_is(cell: bytes) -> None:
    found = number(cell)
    assert number(found) == found
    try:
        Decimal(cell.decode())
    except ArithmeticError:
        assert found == cell
