"""Who may read what: open to all, for staff, or closed. Decisions stay in the book of names.

A decision is about a document, a version or format of it, an interval, a series, a record without a
PDI, or everything (``*``). Of those that cover a document the most specific one holds, as with
assertions. Names and the fact that something is kept are no secret; content and description are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muniment.errors import IdentifierError, NotFound, UsageError
from muniment.identifiers import Pdi, parse_pdi
from muniment.names import Names
from muniment.names.assertions import covering, covering_pdi, subject_key
from muniment.names.index import Index
from muniment.repository.naming import is_pdi

if TYPE_CHECKING:
    from muniment.repository.catalogue import Found
    from muniment.repository.store import Store

__all__ = ["EVERYTHING", "LEVELS", "Access", "Decision", "access_of", "set_access", "subjects_of"]

LEVELS = ("open", "staff", "closed")
EVERYTHING = "*"
_INHERIT = "inherit"  # what more general subjects say holds again


@dataclass(frozen=True, slots=True)
class Decision:
    """Who may read a subject, and why."""

    subject: str
    level: str
    reason: str = ""
    law: str = ""
    by: str = ""
    at: str = ""

    def readable(self, staff: bool = False) -> bool:
        """Whether everybody may read it, or those on the staff."""
        return self.level == "open" or (staff and self.level == "staff")

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "access": self.level,
            "subject": self.subject,
            "reason": self.reason or None,
            "law": self.law or None,
            "by": self.by or None,
            "at": self.at or None,
        }


_OPEN = Decision(EVERYTHING, "open")


class Access:
    """All decisions of a store that hold now."""

    def __init__(
        self, decisions: Mapping[str, Decision], history: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._decisions, self.history = decisions, history
        self._of_subject: dict[str, list[int]] = {}
        for number, event in enumerate(history):
            for subject in event["subjects"]:
                self._of_subject.setdefault(subject, []).append(number)
        self._general = decisions.get(EVERYTHING, _OPEN)
        self.all_open = all(each.level == "open" for each in decisions.values())

    def of_pdi(self, pdi: Pdi | str) -> Decision:
        """Return what holds for a PDI; ask with format and version where they are known."""
        if self.all_open:
            return _OPEN
        name = pdi if isinstance(pdi, Pdi) else parse_pdi(pdi)
        return self._last(covering_pdi(name))

    def of_subject(self, subject: str) -> Decision:
        """Return what holds for a PDI, interval, series, or ``*``."""
        return self._general if subject == EVERYTHING else self._last(covering(subject))

    def of_record(self, found: Found) -> Decision:
        """Return what holds for a record and all its datastreams."""
        if self.all_open:
            return _OPEN
        return self._last([*_covering(found.pdi), found.identifier])

    def of_stream(self, records: Sequence[Found]) -> Decision:
        """Return what holds for a datastream: the most open of the records that have it."""
        decisions = [self.of_record(found) for found in records] or [self._general]
        return min(decisions, key=lambda each: LEVELS.index(each.level))

    def changed(self, found: Found) -> str:
        """Return when the level of a record was last changed by a decision, "" if never."""
        covering = [EVERYTHING, *_covering(found.pdi), found.identifier]
        numbers = {number for each in covering for number in self._of_subject.get(each, ())}
        levels: dict[str, str] = {}
        level, moment = "open", ""
        for event in (self.history[number] for number in sorted(numbers)):
            levels |= dict.fromkeys(event["subjects"], event["level"])
            told = (levels.get(each, _INHERIT) for each in covering)
            new = [each for each in told if each != _INHERIT][-1:] or ["open"]
            if new != [level]:
                [level], moment = new, event["at"][:19] + "Z"
        return moment

    def _last(self, subjects: Iterable[str]) -> Decision:
        holds = self._general
        for subject in subjects:
            holds = self._decisions.get(subject, holds)
        return holds


def _covering(pdi: str) -> list[str]:
    try:
        return list(covering_pdi(parse_pdi(pdi))) if pdi else []
    except IdentifierError:  # on a tape of another maker
        return []


def access_of(names: Names) -> Access:
    """Return the decisions that hold now."""
    return names.derived(_read)


def _read(index: Index) -> Access:
    decisions: dict[str, Decision] = {}
    history = [event for _, event in index.events("access")]
    for event in history:
        for subject in event["subjects"]:
            decisions.pop(subject, None)
            if event["level"] != _INHERIT:
                decisions[subject] = Decision(
                    subject, event["level"], event["reason"], event["law"], event["by"],
                    event["at"][:19] + "Z",
                )  # fmt: skip
    return Access(decisions, history)


def set_access(
    names: Names, subjects: Sequence[str], level: str, *, reason: str, by: str, law: str = ""
) -> None:
    """Write a decision down; ``inherit`` takes back what was decided for these subjects alone."""
    if level not in (*LEVELS, _INHERIT):
        raise UsageError(f"{level!r} is not one of {', '.join((*LEVELS, _INHERIT))}")
    if level == "closed" and not reason.strip():
        raise UsageError("what is closed needs a reason: it is shown in its place")
    record = {"kind": "access", "subjects": list(subjects), "level": level, "reason": reason}
    names.write([{**record, "law": law, "by": by}])


def subjects_of(store: Store, name: str) -> list[str]:
    """Return the subjects that a name stands for.

    A PDI, interval or series stands for itself; a package or datastream for its version; a content
    identifier for all versions, those to come included.
    """
    if name == EVERYTHING:
        return [EVERYTHING]
    if is_pdi(name) or (name.endswith("/") and ":" not in name):
        key = subject_key(name)
        if "#" in key or "@" in key:
            raise UsageError(f"{name} is a part; access is decided for whole documents")
        if not key.endswith("/") and not parse_pdi(key).wildcards:
            _check_known(store, parse_pdi(key))
        return [key]
    found = store.versions(name)
    if not found:
        raise NotFound(f"there is nothing called {name} in {store.folder}")
    names = [(each.pdi, each.identifier) for each in found]
    if found[0].identifier == name or store.catalogue.stream(name) is not None:
        return [pdi or package for pdi, package in names]
    generic = (str(parse_pdi(pdi).generic) if pdi else package for pdi, package in names)
    return list(dict.fromkeys(generic))


def _check_known(store: Store, pdi: Pdi) -> None:
    if store.names.resolve(pdi).status == "unknown" and not store.versions(str(pdi)):
        raise NotFound(f"{pdi} is not known in {store.folder}")
