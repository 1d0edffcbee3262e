"""The automated part of a review: every check of GFD.191, section 5, that a program can make."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from muniment.errors import IdentifierError
from muniment.identifiers.abnf import alphabet, longest
from muniment.identifiers.ddds import parse_substitution
from muniment.registry.registration import OPTIONAL, SECTIONS, TOGETHER, Registration

__all__ = ["Finding", "check_snid", "check_version", "review"]

_SNID = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,31}")
# Working groups, drafts, years and versions go away; names stay (OGF-40).
_VOLATILE = re.compile(
    r"(?:^|-)(?:wg|bof|rg|group|committee|team|project|draft|beta|test|new|v[0-9]{1,2})(?:-|$)"
    r"|(?:19|20)[0-9]{2}"
)
_URN_CHARS = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789()+,-.:=@;$_!*'%/?#~&"
)
_RESERVED = "%/?#"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result: its requirement, a code (E_ stops, W_ asks a person), a sentence."""

    check: str
    code: str
    message: str

    @property
    def stops(self) -> bool:
        """Whether approval needs a waiver because of it."""
        return self.code.startswith("E_")


def check_snid(snid: str, taken: Collection[str]) -> Iterator[Finding]:
    """Look at a subnamespace identifier alone (OGF-14, 15, 32, 40, 41)."""
    lowered = snid.lower()
    if not _SNID.fullmatch(snid):
        message = f"{snid!r} is not 1 to 32 letters, digits and hyphens, the first no hyphen"
        yield Finding("OGF-15", "E_SNID_SYNTAX", message)
        return
    if lowered.startswith("x-"):
        yield Finding("OGF-41", "E_SNID_X", "identifiers must not begin with x-")
    if lowered == "urn" or lowered.startswith("urn-"):
        yield Finding("OGF-15", "E_SNID_RESERVED", f"{lowered!r} is reserved by RFC 8141")
    if lowered in taken:
        yield Finding("OGF-14", "E_SNID_TAKEN", f"{lowered!r} is registered already")
    if lowered != snid:
        yield Finding("OGF-16", "W_SNID_CASE", f"case does not count: {snid} is {lowered}")
    if lowered.endswith("-"):
        message = "a hyphen at the end is not allowed in namespaces of RFC 8141"
        yield Finding("OGF-15", "W_SNID_TRAILING_HYPHEN", message)
    if len(lowered) < 3:
        yield Finding("OGF-32", "W_SNID_SHORT", "so short a name will be wanted by others")
    if _VOLATILE.search(lowered):
        message = "it seems to name a group, a year or a version, which will go away"
        yield Finding("OGF-40", "W_SNID_VOLATILE", message)
    if re.match("[a-z]{2}-", lowered) and not lowered.startswith("x-"):
        message = "two letters and a hyphen are kept for countries (RFC 8141)"
        yield Finding("OGF-15", "W_SNID_CC_HYPHEN", message)


def review(
    registration: Registration,
    root: str,
    taken: Collection[str] = (),
    earlier: Sequence[str] = (),
    year: int = 9999,
) -> list[Finding]:
    """Make every automated check; ``earlier`` are names that must stay valid (rule 6)."""
    findings = list(check_snid(registration.snid, taken))
    findings += _sections(registration)
    try:
        findings += _syntax(registration, root)
        findings += _examples(registration, year)
        findings += _equivalence(registration, year)
        findings += _earlier(registration, earlier, year)
    except IdentifierError as error:
        findings.append(Finding("OGF-33", "E_SYNTAX_ABNF", str(error)))
    findings += _promises(registration)
    near = get_close_matches(registration.snid.lower(), set(taken) - {registration.snid}, 1, 0.85)
    if near and near[0] != registration.snid.lower():
        message = f"it is easily mistaken for {near[0]!r}"
        findings.append(Finding("OGF-32", "W_SNID_SIMILAR", message))
    return findings


def _sections(registration: Registration) -> Iterator[Finding]:
    for number, title in SECTIONS.items():
        text = registration.sections.get(number, "").strip()
        other = registration.combined(number)
        if other is not None:
            if not registration.sections.get(other, "").strip() or registration.combined(other):
                message = f"section {number} is combined with {other}, which is not there"
                yield Finding("OGF-30", "E_SECTION", message)
            if not any({number, other} <= together for together in TOGETHER):
                message = f"section {number} cannot be combined with {other}"
                yield Finding("OGF-47", "E_SECTION", message)
        elif not text and number not in OPTIONAL:
            yield Finding("OGF-30", "E_SECTION", f"section {number}, {title}, is missing")

    if registration.snid.lower() not in registration.sections.get("1.1", "").lower():
        message = f"section 1.1 does not name the identifier {registration.snid}"
        yield Finding("OGF-39", "E_SECTION_SNID", message)


def _syntax(registration: Registration, root: str) -> Iterator[Finding]:
    if not registration.abnf.strip() or not registration.start:
        yield Finding("OGF-33", "E_SYNTAX_MISSING", "there is no ABNF, or no start rule")
        return
    yield from _attributes(registration)
    node = registration.grammar.node(registration.start)
    characters = alphabet(node)
    if bad := sorted(characters - _URN_CHARS):
        message = f"the syntax allows characters that no URN can have: {' '.join(map(repr, bad))}"
        yield Finding("OGF-34", "E_CHARACTERS", message)
    if used := [mark for mark in _RESERVED if mark in characters]:
        yield Finding("OGF-18", "W_RESERVED", f"it uses the reserved characters {' '.join(used)}")
    if "%" in characters and not registration.percent:
        yield Finding("OGF-46", "E_PERCENT", "the ABNF has '%', but escapes are said not to be")
    if registration.percent and "hex-case" not in registration.steps:
        message = "escapes are allowed, so their normalisation must be defined (step hex-case)"
        yield Finding("OGF-37", "E_NORMALISATION", message)
    if registration.max_octets is None:
        yield Finding("OGF-35", "E_MAX_LENGTH", "the maximum length is not stated")
    elif (bound := longest(node)) is not None and bound > registration.max_octets:
        message = f"the ABNF allows {bound} octets, {registration.max_octets} are stated"
        yield Finding("OGF-35", "W_MAX_LENGTH", message)
    yield from _prefix(registration, root)
    ambiguous = registration.program.ambiguous()
    if ambiguous:
        message = "one name can be divided into its attributes in two ways"
        yield Finding("OGF-33", "E_AMBIGUOUS", message)
    elif ambiguous is None:
        message = "whether the syntax is ambiguous is too hard to say; a person has to look"
        yield Finding("OGF-33", "W_AMBIGUOUS", message)


def _attributes(registration: Registration) -> Iterator[Finding]:
    """The parts of a name are described: each that the start rule names (OGF-38, OGF-53)."""
    grammar = registration.grammar
    described = {name.lower() for name in registration.attributes}
    for name in sorted(described - set(grammar.rules)):
        yield Finding("OGF-38", "E_ATTRIBUTE", f"{name} is described, but is no rule of the ABNF")
    for name in grammar.parts(registration.start):
        if name not in described and longest(grammar.node(name)) != len(registration.snid):
            message = f"what {name.upper()} stands for is not described under attributes"
            yield Finding("OGF-38", "W_ATTRIBUTE", message)
    for name in sorted({*registration.limits, *registration.assignable}):
        if name.lower() not in described:
            message = f"{name} has limits, so it has to be described under attributes"
            yield Finding("OGF-45", "E_ATTRIBUTE", message)


def _prefix(registration: Registration, root: str) -> Iterator[Finding]:
    prefix = f"urn:{root}:{registration.snid}:".lower()
    for example in registration.valid:
        if not example.lower().startswith(prefix):
            yield Finding("OGF-13", "E_PREFIX", f"{example} does not begin with {prefix}")


def _examples(registration: Registration, year: int) -> Iterator[Finding]:
    if not registration.valid:
        yield Finding("OGF-57", "W_EXAMPLES", "there are no examples, so nothing can be tried")
    for example in registration.valid:
        for problem in registration.check(example, year):
            message = f"{example} should be valid: {problem.message}"
            yield Finding("OGF-33", "E_EXAMPLE_INVALID", message)
    for example in registration.invalid:
        if not registration.check(example, year):
            yield Finding("OGF-33", "E_EXAMPLE_VALID", f"{example} should be invalid and is not")


def _equivalence(registration: Registration, year: int) -> Iterator[Finding]:
    for one, other in _pairs(registration.equal):
        if registration.canonical(one) != registration.canonical(other):
            message = f"{one} and {other} should be equivalent and are not"
            yield Finding("OGF-48", "E_EQUIVALENCE", message)
    for one, other in _pairs(registration.different):
        if registration.canonical(one) == registration.canonical(other):
            message = f"{one} and {other} should be different and are not"
            yield Finding("OGF-48", "E_EQUIVALENCE", message)
    for example in registration.valid:
        canonical = registration.canonical(example)
        if registration.check(canonical, year):
            message = f"the canonical form {canonical} is not valid itself"
            yield Finding("OGF-48", "E_EQUIVALENCE", message)
        *prefix, rest = example.split(":", 3)
        if registration.canonical(":".join([*map(str.upper, prefix), rest])) != canonical:
            message = "urn: and the namespace identifiers must not depend on case"
            yield Finding("OGF-48", "E_EQUIVALENCE", message)


def _pairs(pairs: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        yield str(pair[0]), str(pair[1])


def _earlier(registration: Registration, names: Sequence[str], year: int) -> Iterator[Finding]:
    for name in names:
        if problems := registration.check(name, year):
            message = f"{name} was valid before and would not be any more: {problems[0].message}"
            yield Finding("OGF-5", "E_EARLIER_INVALID", message)


def check_version(registration: Registration, version: int) -> Iterator[Finding]:
    """Section 1.2 tells the version of the document, which counts approved ones (OGF-42)."""
    if str(version) not in re.findall("[0-9]+", registration.sections.get("1.2", "")):
        message = f"section 1.2 does not say that this is version {version}"
        yield Finding("OGF-42", "W_VERSION", message)


def _promises(registration: Registration) -> Iterator[Finding]:
    assignment = registration.assignment
    if assignment.get("mode") not in ("open", "delegated", "sequential", "consensus"):
        message = "assignment mode is one of open, delegated, sequential, consensus"
        yield Finding("OGF-55", "E_ASSIGNMENT", message)
    if assignment.get("subdelegation") and not assignment.get("uniqueness"):
        message = "subdelegation needs a measure that keeps names unique ('uniqueness')"
        yield Finding("OGF-36", "E_SUBDELEGATION", message)
    for rule, about in registration.attributes.items():
        if not isinstance(about, dict) or "volatile" not in about:
            message = f"it is not said whether {rule} can change"
            yield Finding("OGF-38", "E_ATTRIBUTE", message)
        elif about["volatile"] and not about.get("measure"):
            message = f"{rule} can change, and no measure keeps the name as it is"
            yield Finding("OGF-38", "E_VOLATILE", message)
    if registration.ddds:
        try:
            parse_substitution(registration.ddds)
        except IdentifierError as error:
            yield Finding("OGF-70", "E_DDDS", f"the rule of the service: {error}")
