"""Deflated blocks: whole again for everybody, and the same wherever they were made."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.siard import deflating
from muniment.siard.deflating import COMPRESSIONS, Deflater, deflate

_FEW = st.lists(st.sampled_from([b"\xff", b"\xfe", b"\x00", b"a", b"ab"]), max_size=400)
_RANDOM = random.Random(7).randbytes(200_000)


def inflated(data: bytes) -> bytes:
    """What a reader makes of a block that knows of no dictionary, and of none before it."""
    return zlib.decompressobj(-15).decompress(data)


@given(_FEW.map(b"".join) | st.binary(max_size=500), st.sampled_from(sorted(COMPRESSIONS)))
def test_a_block_stands_for_itself(data: bytes, compression: str) -> None:
    block = deflate(data, compression)
    assert inflated(block.data) == data
    assert (block.size, block.crc) == (len(data), zlib.crc32(data))


@pytest.mark.parametrize("head", [b"ab", b"\xff\xff", b"\xff\x00", b"<r"])
@pytest.mark.parametrize("missing", [None, 255, 97, 0])
def test_whatever_follows_what_no_match_begins_before_the_data(
    head: bytes, missing: int | None
) -> None:
    followed = b"".join(bytes((n,)) + head for n in range(256) if n != missing)
    for data in (head + 3 * followed, head + followed + _RANDOM, head + 40 * followed):
        assert inflated(deflate(data, "fast").data) == data


def test_the_dictionary_is_a_byte_that_data_never_have_before_their_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[bytes | None] = []

    class Noted:
        @staticmethod
        def compressobj(*_: object, zdict: bytes) -> object:
            given.append(zdict)
            return zlib.compressobj(1, zlib.DEFLATED, -15)

        crc32 = staticmethod(zlib.crc32)

    monkeypatch.setattr(deflating, "isal_zlib", Noted)
    everything = b"".join(bytes((n,)) + b"ab" for n in range(256))
    for data in (b"", b"<row>\xc3\xbf</row>", b"ab\xffab", b"\xff\xff\xff", b"ab" + everything):
        deflate(data, "fast")
    assert given == [b"\xff", b"\xff", b"\xfe", b"\xfe"]  # and none where every byte is taken


@pytest.mark.parametrize("compression", sorted(COMPRESSIONS))
def test_how_data_come_in_pieces_does_not_matter(compression: str) -> None:
    data = b"".join(b"<row><c1>%d</c1><c2>%d</c2></row>\n" % (n, n * n) for n in range(9000))
    blocks = set()
    for size in (100, 65_535, 65_536, len(data)):
        deflater = Deflater(compression)
        for at in range(0, len(data), size):
            deflater.add(data[at : at + size])
        blocks.add(deflater.block().data)
    assert len(blocks) == 1 and inflated(blocks.pop()) == data
