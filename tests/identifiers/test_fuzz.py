"""A short run of the fuzzer; ``fuzz.py`` runs as long as you like."""

from __future__ import annotations

import random
import time

import fuzz
import pytest

from muniment.errors import IdentifierError
from muniment.identifiers.abnf import parse_abnf
from muniment.identifiers.automata import Match


def test_damaged_names_get_a_diagnosis_in_little_time() -> None:
    assert fuzz.run(rounds=150, seed=7) == []


@pytest.mark.parametrize("kind", range(5))
def test_a_megabyte_of_anything_takes_linear_time(kind: int, size: int = 1_000_000) -> None:
    """Two seconds are enough for a few passes over a megabyte, and for nothing else."""
    chance = random.Random(kind)
    whole = [
        chance.randbytes(size).decode("latin-1"),
        "pdi://a.ch/2025/11/15/1.text.1@" + "1=pdi://a.ch/2025/11/15/1.text.1@" * (size // 33),
        "pdi://a.ch/2025/11/15/1.siard.1#row=" + "(s0,t2,r17)," * (size // 12),
        "url_ver=Z39.88-2004&" + "rft_id=a%20b&" * (size // 13),
        "".join(f'r{n} = "a" / r{n + 1}\n' for n in range(size // 16)),
    ][kind]
    for read in fuzz.READERS:
        started = time.process_time()
        try:
            read(whole)
        except IdentifierError as error:
            assert len(str(error)) < 3000
        assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "syntax",
    [
        "".join(f"a{n} = a{n + 1} a{n + 1}\n" for n in range(40)) + 'a40 = "a"\n',
        "".join(f"a{n} = a{n + 1} a{n + 1}\n" for n in range(40)) + 'a40 = ""\n',
        "".join(f"a{n} = a{n + 1}\n" for n in range(4000)) + 'a4000 = "a"\n',
        'a = 4096(4096("a"))\n',
        "a = *4096(*4096(*4096(*4096(''))))\n".replace("'", '"'),
        "a = " + '["a"] ' * 3000,
    ],
)
def test_a_syntax_that_would_grow_without_end_is_refused(syntax: str) -> None:
    started = time.process_time()
    grammar = parse_abnf(syntax)
    with pytest.raises(IdentifierError, match="E_SYNTAX_SIZE"):
        grammar.compile(next(iter(grammar.rules)))
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "syntax",
    [
        "a = " + "9" * 5000 + '"x"',
        "a = *" + "9" * 50_000 + '"x"',
        "a = %d" + "9" * 60_000,
        "a = " + "(" * 60_000,
        "a = <" + "x" * 60_000 + ">",
        "a = " + "%" * 60_000,
    ],
)
def test_a_syntax_that_is_nonsense_is_refused_in_a_sentence(syntax: str) -> None:
    with pytest.raises(IdentifierError, match=r"line 1, rule a: .{,120}$"):
        parse_abnf(syntax)


def test_alternatives_may_be_added_one_by_one() -> None:
    grammar = parse_abnf('a = "x0"\n' + "".join(f'a =/ "x{n}"\n' for n in range(1, 300)))
    program = grammar.compile("a")
    assert isinstance(program.match("x299"), Match)
    assert not isinstance(program.match("x300"), Match)
    assert program.ambiguous() is False
