"""Citing archived databases: parts of them, and queries over them that can be proved again."""

from muniment.citations.queries import Proof, QueryCitation, cite_query, prove
from muniment.citations.texts import cite_part, open_document

__all__ = ["Proof", "QueryCitation", "cite_part", "cite_query", "open_document", "prove"]
