"""What comes out when a part is cut out of a document."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.errors import FragmentError

__all__ = ["Extract", "not_possible", "out_of_range"]


@dataclass(frozen=True, slots=True)
class Extract:
    """The part: its media type and octets, remarks, and whether it is an archived NULL."""

    media_type: str
    data: bytes
    remarks: tuple[str, ...] = ()
    null: bool = False


def out_of_range(what: str) -> FragmentError:
    """A part that does not exist is an unknown name: 404."""
    return FragmentError(what, 404, "E_FRAG_OUT_OF_RANGE")


def not_possible(what: str) -> FragmentError:
    """A part that may exist but cannot be cut out here: 501."""
    return FragmentError(what, 501, "E_FRAG_NOT_IMPLEMENTED")
