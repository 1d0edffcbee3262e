"""Who has which name: the life of each entry, as events that nobody can take back.

    unknown → noticed → reserved → (lapsed) → proposed → in-review → assigned → closed, stewarded

A name that was assigned, or used in the wild, is never given to another party.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from muniment.errors import NameRefused, NotFound, UsageError
from muniment.identifiers import parse_series
from muniment.identifiers.fragments import SCHEMES
from muniment.identifiers.registered import registered_scheme, scheme_faults
from muniment.names import Names
from muniment.registry.registration import Registration
from muniment.registry.review import Finding, check_snid, check_version, review

__all__ = ["KINDS", "Entry", "Registry"]

KINDS = ("namespace", "series", "scheme")
_FOR_EVER = ("assigned", "closed", "stewarded", "frozen", "blocked")

_SHOWN = ("at", "by", "reason", "until", "holder", "to", "waiver", "sample")  # of an event

# action: the states it is possible in, and the state it leads to (None: no change)
_MOVES: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "notice": (("unknown", "lapsed", "withdrawn", "rejected"), "noticed"),
    "observe": ((), None),
    "reserve": (("unknown", "noticed", "lapsed"), "reserved"),
    "extend": (("reserved",), None),
    "propose": (
        ("unknown", "noticed", "reserved", "lapsed", "withdrawn", "rejected", "proposed"),
        "proposed",
    ),
    "review": (("proposed",), "in-review"),
    "ask": (("proposed", "in-review"), "proposed"),
    "withdraw": (("proposed", "in-review", "noticed", "reserved"), "withdrawn"),
    "reject": (("in-review",), "rejected"),
    "approve": (("in-review",), "assigned"),
    "revise": (("assigned",), None),
    "close": (("assigned", "stewarded"), "closed"),
    "steward": (("assigned", "closed"), "stewarded"),
    "hand-on": (("assigned", "closed", "stewarded"), None),
    "freeze": (("assigned", "stewarded"), "frozen"),
    "release": (("frozen",), "assigned"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """The present state of one entry, and everything that happened to it."""

    kind: str
    name: str
    state: str = "unknown"
    steward: str = ""
    reserved_until: str = ""
    extended: bool = False
    observed: tuple[str, ...] = ()
    proposal: Mapping[str, Any] | None = None
    versions: tuple[Mapping[str, Any], ...] = ()
    history: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def version(self) -> int:
        """How many documents were approved."""
        return len(self.versions)

    @property
    def registration(self) -> Registration | None:
        """The registration in force."""
        return Registration.read(self.versions[-1]) if self.versions else None

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "state": self.state,
            "steward": self.steward,
            "version": self.version,
            "reserved_until": self.reserved_until or None,
            "observed": list(self.observed),
            "history": [dict(event) for event in self.history],
        }


class Registry:
    """The registry kept in a book of names."""

    def __init__(self, names: Names) -> None:
        self.names = names

    @property
    def root(self) -> str:
        """The namespace below which subnamespaces are given."""
        return self.names.root

    # Reading

    def entries(self) -> dict[tuple[str, str], Entry]:
        """Return every entry that was ever touched."""
        entries: dict[tuple[str, str], Entry] = {}
        for line, event in self.names.current().events("registry.%", without="registry.assign"):
            kind, _, name = event["subject"].partition(":")
            entry = entries.get((kind, name)) or Entry(kind, name)
            entries[kind, name] = _after(entry, line, event)
        today = self.names.clock().date().isoformat()
        return {key: _today(entry, today) for key, entry in entries.items()}

    def entry(self, kind: str, name: str) -> Entry:
        """Return an entry, which is unknown if nothing ever happened to it."""
        kind, name = _checked(kind, name)
        return self.entries().get((kind, name)) or Entry(kind, name)

    def registration(self, snid: str) -> Registration:
        """Return the registration in force of a subnamespace, or raise NotFound."""
        entry = self.entry("namespace", snid)
        if entry.registration is None:
            raise NotFound(f"urn:{self.root}:{snid} is not assigned ({entry.state})")
        return entry.registration

    def taken(self) -> set[str]:
        """Return the subnamespaces that nobody else can have."""
        entries = self.entries().values()
        return {e.name for e in entries if e.kind == "namespace" and e.state in _FOR_EVER}

    # Writing

    def act(
        self,
        action: str,
        kind: str,
        name: str,
        by: str,
        reason: str = "",
        also: Sequence[dict[str, Any]] = (),
        **data: Any,
    ) -> Entry:
        """Do what an action stands for, or raise NameRefused if it is not possible now.

        ``also`` are records that are written together with it.
        """
        kind, name = _checked(kind, name)
        if not by.strip():
            raise UsageError("say who does this with --by")
        with self.names.turn() as state:
            entry = self.entry(kind, name)
            self._check(action, entry, by)
            event = {"kind": f"registry.{action}", "subject": f"{kind}:{name}", "by": by}
            after = self.names.append(state, [{**event, "reason": reason, **data}, *also])
        self.names.journal.sync(after.end)
        return self.entry(kind, name)

    def _check(self, action: str, entry: Entry, by: str) -> None:
        states, _ = _MOVES[action]
        if entry.state == "blocked" and action != "observe":
            raise NameRefused(f"{entry.name} is blocked: names in it are in use already")
        if states and entry.state not in states:
            raise NameRefused(f"{entry.name} is {entry.state}; {action} is not possible")
        if action == "propose" and entry.state == "reserved" and by != entry.steward:
            raise NameRefused(
                f"{entry.name} is reserved for {entry.steward} until {entry.reserved_until}"
            )
        if action == "extend" and entry.extended:
            raise NameRefused(f"the reservation of {entry.name} was extended once already")
        if action in ("notice", "reserve", "propose") and entry.kind == "namespace":
            self._check_name(entry)

    def _check_name(self, entry: Entry) -> None:
        for finding in check_snid(entry.name, self.taken() - {entry.name}):
            if finding.stops:
                raise NameRefused(finding.message)

    def reserve(
        self, kind: str, name: str, by: str, days: int, reason: str = "", holder: str = ""
    ) -> Entry:
        """Keep a name for some days, for whoever asks or for another holder."""
        until = (self.names.clock().date() + timedelta(days=days)).isoformat()
        return self.act("reserve", kind, name, by, reason, until=until, holder=holder or by)

    def extend(self, kind: str, name: str, by: str, days: int, reason: str = "") -> Entry:
        """Keep a reserved name longer, which is possible once."""
        entry = self.entry(kind, name)
        start = date.fromisoformat(entry.reserved_until) if entry.reserved_until else date.min
        until = (start + timedelta(days=days)).isoformat()
        return self.act("extend", kind, name, by, reason, until=until)

    def propose(self, kind: str, name: str, by: str, body: Any, reason: str = "") -> Entry:
        """Hand in a registration, or a revision of one."""
        if kind == "namespace":
            registration = Registration.read(body)
            if registration.snid.lower() != name.lower():
                raise UsageError(f"the registration is for {registration.snid!r}, not for {name!r}")
        action = "revise" if self.entry(kind, name).state == "assigned" else "propose"
        return self.act(action, kind, name, by, reason, body=body)

    def review(self, kind: str, name: str) -> list[Finding]:
        """Make the automated checks of a proposal."""
        entry = self.entry(kind, name)
        if entry.proposal is None:
            raise NotFound(f"there is no proposal for {name}")
        if kind != "namespace":
            return list(_check_other(entry))
        registration = Registration.read(entry.proposal)
        year = self.names.clock().year
        taken = self.taken() - {entry.name}
        findings = review(registration, self.root, taken, self._earlier(entry), year)
        return [*findings, *check_version(registration, entry.version + 1)]

    def _earlier(self, entry: Entry) -> list[str]:
        """Names that were valid in earlier versions: their examples, and what was assigned."""
        examples = [each for body in entry.versions for each in Registration.read(body).valid]
        prefix = f"urn:{self.root}:{entry.name}:"
        assigned = [
            str(event["subject"])
            for _, event in self.names.current().events("registry.assign")
            if str(event["subject"]).startswith(prefix)
        ]
        return [*examples, *assigned]

    def decide(
        self, kind: str, name: str, by: str, approve: bool, reason: str, waiver: str = ""
    ) -> Entry:
        """Approve a proposal whose checks are good, or waived with a reason; or reject it."""
        entry = self.entry(kind, name)
        if entry.state == "proposed":
            entry = self.act("review", kind, name, by, "automated checks")
        revision = entry.state == "assigned" and entry.proposal is not None
        if not approve:
            if revision:
                return self._end_revision(entry, by, reason)
            return self.act("reject", kind, name, by, reason)
        stops = [finding for finding in self.review(kind, name) if finding.stops]
        if stops and not waiver.strip():
            listed = "; ".join(f"{each.check} {each.message}" for each in stops[:5])
            raise NameRefused(f"{name} cannot be approved: {listed}")
        if any(finding.code == "E_EARLIER_INVALID" for finding in stops):
            raise NameRefused(f"{name}: names that are valid must stay valid; no waiver helps")
        found = [f"{each.check} {each.code}" for each in stops]
        if revision:
            return self._approve_revision(entry, by, reason, waiver, found)
        also = _scheme_record(entry, by)
        entry = self.act("approve", kind, name, by, reason, also, waiver=waiver, waived=found)
        if kind == "series" and name not in self.names.rules().series:
            self.names.add_series(name, entry.steward, by=by)
        return entry

    def _approve_revision(
        self, entry: Entry, by: str, reason: str, waiver: str, found: list[str]
    ) -> Entry:
        subject = f"{entry.kind}:{entry.name}"
        event = {"kind": "registry.approve", "subject": subject, "by": by, "reason": reason}
        self.names.write([{**event, "waiver": waiver, "waived": found}, *_scheme_record(entry, by)])
        return self.entry(entry.kind, entry.name)

    def _end_revision(self, entry: Entry, by: str, reason: str) -> Entry:
        subject = f"{entry.kind}:{entry.name}"
        event = {"kind": "registry.reject", "subject": subject, "by": by, "reason": reason}
        self.names.write([event])
        return self.entry(entry.kind, entry.name)

    def hand_on(self, kind: str, name: str, by: str, to: str, reason: str) -> Entry:
        """Give an entry to another organisation; all its names go on."""
        entry = self.act("hand-on", kind, name, by, reason, to=to)
        if kind == "series" and name in self.names.rules().series:
            state = self.names.series(name).state
            self.names.change_series(name, state, reason or "handed on", by, steward=to)
        return entry

    def close(self, kind: str, name: str, by: str, reason: str) -> Entry:
        """End an entry: no new names, and all old ones stay."""
        entry = self.act("close", kind, name, by, reason)
        if kind == "series" and name in self.names.rules().series:
            self.names.change_series(name, "closed", reason, by)
        return entry


def _checked(kind: str, name: str) -> tuple[str, str]:
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not one of {', '.join(KINDS)}")
    return kind, parse_series(name) if kind == "series" else name.lower()


def _check_other(entry: Entry) -> Iterator[Finding]:
    """Check a series (its syntax was checked with its name) or a fragment scheme."""
    body = entry.proposal if isinstance(entry.proposal, Mapping) else {}
    for key in ("title", "description"):
        if not str(body.get(key) or "").strip():
            yield Finding("PDI-111", "E_SECTION", f"{key} is missing")
    if entry.kind == "scheme":
        yield from _check_scheme(entry, body)


def _scheme_record(entry: Entry, by: str) -> list[dict[str, Any]]:
    """Return the record by which the parser learns an approved scheme; no waiver mends it."""
    if entry.kind != "scheme":
        return []
    if entry.name in SCHEMES:
        raise NameRefused(f"the scheme {entry.name} is defined already")
    registered_scheme(entry.name, entry.proposal)
    return [{"kind": "scheme", "subject": entry.name, "body": entry.proposal, "by": by}]


def _check_scheme(entry: Entry, body: Mapping[str, Any]) -> Iterator[Finding]:
    if not (entry.name.replace("-", "").isalpha() and entry.name.isascii()):
        message = "the name of a scheme has letters and hyphens only"
        yield Finding("PDI-17", "E_SCHEME_NAME", message)
    if entry.name in SCHEMES:
        message = f"the scheme {entry.name} is defined already"
        yield Finding("PDI-111", "E_SCHEME_TAKEN", message)
    missing = [key for key in ("media_types", "positions", "examples") if not body.get(key)]
    for key in missing:
        yield Finding("PDI-79", "E_SECTION", f"{key} are missing")
    if missing:
        return
    for code, message in scheme_faults(entry.name, body):
        yield Finding("PDI-79", code, message)
    for earlier in entry.versions:
        examples = {"valid": earlier["examples"].get("valid")}
        for _, message in scheme_faults(entry.name, {**body, "examples": examples}):
            yield Finding("PDI-26", "E_EARLIER_INVALID", message)


def _after(entry: Entry, line: int, event: Mapping[str, Any]) -> Entry:
    """Return an entry as it is after one more event."""
    action = event["kind"].removeprefix("registry.")
    shown = {
        key: event.get(key)
        for key in ("at", "by", "reason", "until", "holder", "to", "waiver", "sample")
    }
    happened = {"line": line, "action": action, **{k: v for k, v in shown.items() if v}}
    entry = replace(entry, history=(*entry.history, happened))
    match action:
        case "reserve":
            holder = event.get("holder") or event["by"]
            entry = replace(entry, reserved_until=event["until"], steward=holder)
        case "extend":
            entry = replace(entry, reserved_until=event["until"], extended=True)
        case "observe":
            return replace(entry, observed=(*entry.observed, str(event.get("sample") or "")))
        case "propose" | "revise":
            steward = entry.steward or str(event["by"])
            entry = replace(entry, proposal=event["body"], steward=steward)
        case "approve" if entry.proposal is not None:
            versions = (*entry.versions, entry.proposal)
            return replace(entry, versions=versions, proposal=None, state="assigned")
        case "reject" if entry.state == "assigned":
            return replace(entry, proposal=None)
        case "hand-on":
            return replace(entry, steward=str(event["to"]))
    target = _MOVES[action][1]
    return entry if target is None else replace(entry, state=target)


def _today(entry: Entry, today: str) -> Entry:
    """A reservation lapses; what lapsed after it was used is blocked for everybody."""
    state = entry.state
    if state == "reserved" and entry.reserved_until < today:
        state = "lapsed"
    if state in ("lapsed", "withdrawn", "rejected") and entry.observed:
        state = "blocked"
    return replace(entry, state=state)
