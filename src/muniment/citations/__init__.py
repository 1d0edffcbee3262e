"""Citing archived databases: parts of them, and queries over them that can be proved again."""

from typing import TYPE_CHECKING

from muniment.lazily import on_demand

if TYPE_CHECKING:
    from muniment.citations.queries import Proof, QueryCitation, cite_query, prove
    from muniment.citations.texts import cite_part, open_document

__all__ = ["Proof", "QueryCitation", "cite_part", "cite_query", "open_document", "prove"]

_TEXTS = ("cite_part", "open_document")
__getattr__ = on_demand(
    __name__, {name: "texts" if name in _TEXTS else "queries" for name in __all__}
)
