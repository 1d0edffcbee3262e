"""The levels of chapter 5: their rules, and what the standard's tables call mandatory there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree

from muniment.siard.rules.registry import Rule

__all__ = ["LEVELS", "RULES", "Level", "level_of"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its element, its rule, and its mandatory entries."""

    element: str
    rule: str
    mandatory: frozenset[str]


def _level(element: str, number: int, *mandatory: str) -> Level:
    return Level(element, f"M_5.{number}-1", frozenset(mandatory))


_LEVELS = (
    _level(
        "siardArchive", 1, "dbname", "dataOwner", "dataOriginTimespan", "archivalDate", "schemas",
        "users",
    ),
    _level("schema", 2, "name", "folder"),
    _level("type", 3, "name", "category", "instantiable", "final"),
    _level("attribute", 4, "name"),
    _level("table", 5, "name", "folder", "columns", "rows"),
    _level("column", 6, "name"),
    _level("field", 7, "name"),
    _level("primaryKey", 8, "name", "column"),
    _level("foreignKey", 9, "name", "referencedSchema", "referencedTable", "reference"),
    _level("reference", 10, "column", "referenced"),
    _level("candidateKey", 11, "name", "column"),
    _level("checkConstraint", 12, "name", "condition"),
    _level("trigger", 13, "name", "actionTime", "triggerEvent", "triggeredAction"),
    _level("view", 14, "name", "columns"),
    _level("routine", 15, "specificName", "name"),
    _level("parameter", 16, "name", "mode"),
    _level("user", 17, "name"),
    _level("role", 18, "name", "admin"),
    _level("privilege", 19, "type", "grantor", "grantee"),
)  # fmt: skip

LEVELS = {level.element: level for level in _LEVELS}


def level_of(element: Any) -> Level:
    """Return the level that an element of metadata.xml belongs to."""
    for node in (element, *element.iterancestors()):
        level = LEVELS.get(etree.QName(node).localname)
        # <type> is a level only in a list of types, <column> only in a list of columns.
        if level is not None and (len(node) or level.element not in ("type", "column")):
            return level
    return LEVELS["siardArchive"]


_COMPLETE = "Complete the metadata in metadata.xml."

# fmt: off
_TEXTS = (
    ("database", "M", "1.0",
     "that each stored digest is that of the content; that no two schemas have one name or folder; "
     "text that a tool put in place of an answer, as a note"),
    ("schema", "M", "1.0", "that names of tables and views differ, and folders too"),
    ("type", "O", "2.0",
     "that names differ; that a distinct type has a base and a UDT attributes; that its supertype "
     "is there, and that no type contains itself"),
    ("attribute", "M", "2.0", "that names differ; that a named type is there; its cardinality"),
    ("table", "M", "1.0", "that it has columns; that names of constraints differ"),
    ("column", "M", "1.0",
     "that names differ; that a named type is there; its cardinality; lobFolder and mimeType only "
     "where there are large objects; where lobFolder points"),
    ("field", "O", "2.0", "that names differ within a column"),
    ("primary key", "O", "1.0", "that its columns are there, each once"),
    ("foreign key", "O", "1.0",
     "that names differ; that the referenced table is there, with a key of those columns"),
    ("reference", "O", "1.0", "that both columns are there and of comparable types"),
    ("candidate key", "O", "1.0", "that names differ; that its columns are there, each once"),
    ("check constraint", "O", "1.0", "that names differ"),
    ("trigger", "O", "1.0", "that names differ; the words of triggerEvent; columns that it names"),
    ("view", "O", "1.0", "that names of its columns differ, and that their types are there"),
    ("routine", "O", "1.0", "that specific names differ"),
    ("parameter", "O", "1.0", "its mode; that a named type is there; its cardinality"),
    ("user", "O", "1.0", "that names differ"),
    ("role", "O", "1.0", "that names differ; that its administrator is a user or role"),
    ("privilege", "O", "1.0", "that grantor and grantee are users or roles"),
)
# fmt: on

RULES = tuple(
    Rule(
        level.rule,
        mandatory,
        f"What is mandatory for a {name} is completed."
        if mandatory == "M"
        else f"A {name} may be archived; then what is mandatory for it is completed.",
        f"That {', '.join(sorted(level.mandatory))} are there and not empty; {more}.",
        _COMPLETE,
        since=since,
    )
    for level, (name, mandatory, since, more) in zip(_LEVELS, _TEXTS, strict=True)
)
