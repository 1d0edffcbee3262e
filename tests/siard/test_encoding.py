"""Rows become the same compressed bytes however they came in batches."""

from __future__ import annotations

import pytest

from muniment.siard.deflating import COMPRESSIONS, Block
from muniment.siard.encoding import EncodedPart, SiardEncoder
from muniment.sql.batch import Batch, batch_of
from muniment.sql.model import Column, Leaf
from muniment.sql.types import parse_type

TYPE = parse_type("VARCHAR(200)")


def encoded(batches: list[Batch], compression: str) -> EncodedPart:
    encoder = SiardEncoder(
        "t", (Column("c1", TYPE),), (Leaf(TYPE),), compression, (None,), frozenset()
    )
    part = encoder(batches)
    assert isinstance(part, EncodedPart)
    return part


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_blocks_do_not_depend_on_batches(compression: str) -> None:
    rows = [[f"{n} " + "x" * (n % 190)] for n in range(30_000)]
    whole = encoded([batch_of(rows)], compression)
    assert len(whole.items) >= 3
    for size in (7, 333, 12_345):
        batches = [batch_of(rows[at : at + size]) for at in range(0, len(rows), size)]
        part = encoded(batches, compression)
        assert part == whole
    blocks = [item for item in whole.items if isinstance(item, Block)]
    assert sum(block.rows for block in blocks) == whole.rows == len(rows)
    assert all(block.size >= 1 << 20 for block in blocks[:-1])
