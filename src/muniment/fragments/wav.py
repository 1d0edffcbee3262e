"""WAV files, cut as they are: samples of any width, integers or floats, RIFF or RF64.

Each block of the file is one moment of all channels. Formats without such blocks are not read here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from muniment.fragments.result import not_possible

__all__ = ["FLOAT", "INTEGER", "Wav", "read_wav"]

INTEGER, FLOAT = 1, 3
_EXTENSIBLE = 0xFFFE
_BLOCKS = (INTEGER, FLOAT, 6, 7)  # the last two are A-law and µ-law
_FORMAT = struct.Struct("<HHIIHH")  # kind, channels, rate, octets per second and block, bits
_UNKNOWN = 0xFFFF_FFFF  # the length stands elsewhere (RF64), or is that of the rest


@dataclass(frozen=True, slots=True)
class Wav:
    """The sound of a WAV file."""

    kind: int
    channels: int
    rate: int
    bits: int
    frames: bytes

    @property
    def block(self) -> int:
        """Octets of one moment."""
        return self.channels * ((self.bits + 7) // 8)

    @property
    def length(self) -> int:
        """How many moments there are."""
        return len(self.frames) // self.block

    def part(self, first: int, last: int) -> Wav:
        """Return the sound from one moment up to and excluding another."""
        frames = self.frames[first * self.block : last * self.block]
        return Wav(self.kind, self.channels, self.rate, self.bits, frames)

    def __bytes__(self) -> bytes:
        second = self.rate * self.block
        head = _FORMAT.pack(self.kind, self.channels, self.rate, second, self.block, self.bits)
        chunks = [(b"fmt ", head), (b"data", self.frames)]
        if self.kind != INTEGER:
            chunks[0] = (b"fmt ", head + b"\0\0")
            chunks.insert(1, (b"fact", struct.pack("<I", self.length)))
        body = b"WAVE" + b"".join(
            name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
            for name, data in chunks
        )
        return b"RIFF" + struct.pack("<I", len(body)) + body


def read_wav(data: bytes) -> Wav | None:
    """Return the sound of a WAV file, or None if its format has no blocks of one moment each."""
    if data[:4] not in (b"RIFF", b"RF64", b"BW64") or data[8:12] != b"WAVE":
        raise not_possible("this is no WAV file")
    at, shape, whole = 12, None, 0
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = at + 8
        if name == b"ds64":
            whole = int.from_bytes(data[body + 8 : body + 16], "little")
        elif name == b"fmt ":
            shape = _shape(data[body : body + size])
        elif name == b"data":
            if shape is None:
                raise not_possible("the WAV file does not say what its samples are")
            if size == _UNKNOWN:
                size = whole or len(data)
            kind, channels, rate, block, bits = shape
            if kind not in _BLOCKS or block != channels * ((bits + 7) // 8):
                return None
            frames = data[body : body + size]
            return Wav(kind, channels, rate, bits, frames[: len(frames) // block * block])
        at = body + size + size % 2
    raise not_possible("the WAV file holds no samples")


def _shape(head: bytes) -> tuple[int, int, int, int, int]:
    """Return kind, channels, rate, octets of a block and bits."""
    if len(head) < _FORMAT.size:
        raise not_possible("the header of the WAV file is cut off")
    kind, channels, rate, _, block, bits = _FORMAT.unpack_from(head)
    if kind == _EXTENSIBLE and len(head) >= 26:
        kind = int.from_bytes(head[24:26], "little")
    if not (channels and rate and block and bits):
        raise not_possible("the header of the WAV file names no samples")
    return kind, channels, rate, block, bits
