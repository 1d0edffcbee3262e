"""siard-digest-1 and the content digest against their definitions."""

from __future__ import annotations

import hashlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.sql.batch import Batch, Cell, batch_of
from muniment.sql.digest import BucketDigest, Canonical, ContentDigest, OrderedDigest
from muniment.sql.model import Array, Column, Leaf, Shape, Struct
from muniment.sql.types import parse_type

KINDS = ("CLOB", "BIGINT", "DATE", "BLOB", "TIMESTAMP")


def netstring(cell: Cell, shape: Shape) -> bytes:
    """The definition, cell by cell."""
    if cell is None:
        return b"N"
    if isinstance(cell, list):
        shapes = [shape.element] * len(cell) if isinstance(shape, Array) else shape.parts  # type: ignore[union-attr]
        return b"{" + b"".join(map(netstring, cell, shapes)) + b"}"
    assert isinstance(shape, Leaf)
    value = cell.encode("utf-8", "surrogatepass")
    if shape.type.name == "BLOB":
        value = bytes.fromhex(cell)
    if shape.type.name in ("DATE", "TIMESTAMP"):
        value += b"Z"
    return b"%d:%b," % (len(value), value)


def expected(kinds: list[str], shapes: list[Shape], rows: list[list[Cell]]) -> str:
    text = b"".join(
        b"%d:%b,%d:%b," % (len(n), n, len(t), t)
        for n, t in ((b"c%d" % k, kind.encode()) for k, kind in enumerate(kinds))
    )
    text += b"\n"
    for row in rows:
        text += b"".join(map(netstring, row, shapes)) + b"\n"
    return hashlib.sha256(text).hexdigest()


VALUES = {
    "CLOB": st.text(st.characters(exclude_categories=()), max_size=9) | st.just("x" * 5000),
    "BIGINT": st.integers(-99, 99).map(str),
    "DATE": st.dates().map(str),
    "BLOB": st.binary(max_size=5).map(lambda b: b.hex().upper()),
    "TIMESTAMP": st.datetimes().map(lambda d: d.isoformat()),
}


@given(st.data())
def test_the_ordered_digest_is_the_one_defined(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    row = st.tuples(*(st.none() | VALUES[kind] for kind in kinds)).map(list)
    rows = data.draw(st.lists(row, max_size=6))
    shapes: list[Shape] = [Leaf(parse_type(kind)) for kind in kinds]
    columns = [Column(f"c{k}", parse_type(kind)) for k, kind in enumerate(kinds)]
    digest = OrderedDigest(columns, shapes, lambda _: BytesIO())
    cut = data.draw(st.integers(0, len(rows)))
    digest.update(batch_of(rows[:cut]))
    digest.update(batch_of(rows[cut:]))
    assert digest.hexdigest() == expected(kinds, shapes, rows)


def test_complex_values_stand_in_braces() -> None:
    shapes: list[Shape] = [Array(Struct((Leaf(parse_type("DATE")), Leaf(parse_type("CLOB")))), 2)]
    rows: list[list[Cell]] = [[[["2020-01-01", None], None]], [None], [[]]]
    digest = OrderedDigest([Column("c0", parse_type("CLOB"))], shapes, lambda _: BytesIO())
    digest.update(batch_of(rows))
    assert digest.hexdigest() == expected(["CLOB"], shapes, rows)


def test_large_objects_are_digested_by_their_content() -> None:
    shape, columns = [Leaf(parse_type("BLOB"))], [Column("c0", parse_type("BLOB"))]
    inline, stored = (
        OrderedDigest(columns, shape, lambda _: BytesIO(b"\x01" * 9000)) for _ in "ab"
    )
    inline.update(batch_of([["01" * 9000]]))
    stored.update(Batch(b"\xf9there\xfd", 1))
    assert inline.hexdigest() == stored.hexdigest()


@given(
    st.lists(st.tuples(st.text(max_size=3), st.none() | st.text(max_size=3)).map(list)),
    st.randoms(),
)
def test_the_content_digest_knows_rows_but_not_their_order(
    rows: list[list[Cell]], random: object
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other, grouped = ContentDigest(), ContentDigest(), BucketDigest()
    for digest, some in ((one, rows), (other, shuffled), (grouped, shuffled)):
        digest.update(batch_of(some))
    assert one.hexdigest() == other.hexdigest() == grouped.hexdigest()
    total = sum(
        int.from_bytes(hashlib.sha256(batch_of([row]).data[:-1]).digest(), "big") for row in rows
    )
    assert one.hexdigest() == f"{total % 2**256:064x}"


@pytest.mark.parametrize("size", [10, 4000, 4001, 20_000])
@pytest.mark.parametrize("kind", ["BLOB", "CLOB"])
def test_it_does_not_matter_where_a_value_lies(kind: str, size: int) -> None:
    content = b"\x41" * size
    inline = batch_of([["1", content.hex().upper() if kind == "BLOB" else content.decode()]])
    stored = Batch(b"1\xff\xf9there\xfd", 1)
    canonical = Canonical(
        [Leaf(parse_type("BIGINT")), Leaf(parse_type(kind))], lambda _: BytesIO(content)
    )
    assert canonical(inline) == canonical(stored)
    assert len(canonical(stored).data) < 2 * 4000 + 10
