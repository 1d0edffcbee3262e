"""Regular expressions as small programs that read a text once, from left to right.

Syntax rules of namespaces (ABNF) and rewrite rules of resolvers (POSIX) come from outside; whatever
they are, matching takes time proportional to the text. Groups tell which part of the text each
named rule stands for, and where a text fails, in which of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muniment.identifiers.problems import Problem

__all__ = ["Alt", "Chars", "Group", "Match", "Node", "Program", "Repeat", "Seq", "compile_node"]

_MOST = 20_000  # instructions
_MOST_WAYS = 60_000  # from one character to the next
_MOST_PAIRS = 1_000_000  # looked at in the search for two readings of one text


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    allowed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other; none at all is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several, the first that fits."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same several times, as often as possible; no ``most`` is without limit."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """A part whose text is to be known by a name."""

    name: str
    part: Node


Node = Chars | Seq | Alt | Repeat | Group


@dataclass(frozen=True, slots=True)
class Match:
    """The text of each group, and where the whole ends."""

    end: int
    groups: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a text can go no further, the groups that were being read, and those still missing."""

    position: int
    inside: frozenset[str]
    missing: tuple[str, ...]


# Instructions: ("char", set, owner), ("split", a, b), ("jump", a), ("save", name, 0 or 1), ("end",)
Code = list[tuple[object, ...]]
_Saves = tuple[tuple[str, int, int], ...]


class Program:
    """A compiled expression."""

    def __init__(self, code: Code) -> None:
        self._code = code
        # What can be reached from each place without reading, in order of preference. All of it
        # is gone through for each character of a text, so there may not be too much.
        self._closures: dict[int, list[tuple[int, _Saves]]] = {}
        self._reached = 0
        for place, operation in enumerate(code):
            if place == 0 or operation[0] == "char":
                self._closure(place + 1 if operation[0] == "char" else 0)
        self._closure(0)

    def match(self, text: str, longest: bool = False, start: int = 0) -> Match | Stop:
        """Match a whole text, or with ``longest`` the longest beginning of it."""
        code, end = self._code, len(self._code) - 1
        threads: dict[int, _Saves] = self._enter(0, (), start)
        best = (start, threads[end]) if longest and end in threads else None
        at = start
        for at in range(start, len(text)):
            character = text[at]
            following: dict[int, _Saves] = {}
            for place, saves in threads.items():
                if place != end and character in code[place][1]:  # type: ignore[operator]
                    for target, more in self._enter(place + 1, saves, at + 1).items():
                        following.setdefault(target, more)
            if not following:
                return self._ended(text, best, threads, at)
            threads = following
            if longest and end in threads:
                best = (at + 1, threads[end])
        if not longest and end in threads:
            best = (len(text), threads[end])
        return self._ended(text, best, threads, len(text))

    def _enter(self, place: int, saves: _Saves, at: int) -> dict[int, _Saves]:
        found: dict[int, _Saves] = {}
        for target, marks in self._closure(place):
            if target not in found:
                found[target] = (*saves, *((name, side, at) for name, side, _ in marks))
        return found

    def _ended(
        self, text: str, best: tuple[int, _Saves] | None, threads: dict[int, _Saves], at: int
    ) -> Match | Stop:
        if best is not None:
            return Match(best[0], _texts(text, best[1]))
        end = len(self._code) - 1
        inside = frozenset(str(self._code[p][2]) for p in threads if p != end and self._code[p][2])
        return Stop(at, inside, self._missing(list(threads)) if at == len(text) else ())

    def _closure(self, place: int) -> list[tuple[int, _Saves]]:
        """Return the instructions that read next, with the groups passed on the way there."""
        if place not in self._closures:
            found = self._closures[place] = list(self._follow(place))
            self._reached += len(found)
            if self._reached > _MOST_WAYS:
                message = "the syntax has too many parts that may all be empty"
                raise Problem("E_SYNTAX_SIZE", message).error()
        return self._closures[place]

    def _follow(self, place: int) -> Iterator[tuple[int, _Saves]]:
        stack: list[tuple[int, _Saves]] = [(place, ())]
        seen: set[tuple[int, _Saves]] = set()
        while stack:
            at, saves = stack.pop()
            operation = self._code[at]
            if (at, saves) in seen:
                continue
            if len(seen) > _MOST:
                message = "the syntax has too many parts that may all be empty"
                raise Problem("E_SYNTAX_SIZE", message).error()
            seen.add((at, saves))
            match operation:
                case ("split", int(first), int(second)):
                    stack += [(second, saves), (first, saves)]
                case ("jump", int(target)):
                    # An empty turn of a loop would go on for ever.
                    stack.append((target, saves))
                case ("save", str(name), int(side)):
                    mark = (name, side, 0)
                    if saves.count(mark) < 2:
                        stack.append((at + 1, (*saves, mark)))
                case _:
                    yield at, saves

    def _missing(self, places: list[int]) -> tuple[str, ...]:
        """Return the groups that the shortest way to the end still opens."""
        queue = deque((place, ()) for place in places)
        seen: set[int] = set(places)
        end = len(self._code) - 1
        while queue:
            place, opened = queue.popleft()
            if place == end:
                return opened
            for target, saves in self._closure(place + 1):
                if target not in seen:
                    seen.add(target)
                    new = tuple(name for name, side, _ in saves if side == 0)
                    queue.append((target, (*opened, *new)))  # type: ignore[arg-type]
        return ()

    def ambiguous(self) -> bool | None:
        """Whether one text can be divided in two ways; None if that is too hard to say."""
        end, left = len(self._code) - 1, _MOST_PAIRS
        queue: deque[tuple[int, int, bool]] = deque()
        seen: set[tuple[int, int, bool]] = set()
        pairs = self._pairs(0, 0, False)
        while True:
            for following in pairs:
                left -= 1
                if left < 0:
                    return None
                if following not in seen:
                    seen.add(following)
                    queue.append(following)
            if not queue:
                return False
            one, other, differ = queue.popleft()
            if differ and one == other == end:
                return True
            if end in (one, other) or not self._meet(one, other):
                pairs = iter(())
            else:
                pairs = self._pairs(one + 1, other + 1, differ)

    def _pairs(self, one: int, other: int, differ: bool) -> Iterator[tuple[int, int, bool]]:
        for first, saves in self._closure(one):
            for second, more in self._closure(other):
                yield first, second, differ or saves != more

    def _meet(self, one: int, other: int) -> bool:
        first, second = self._code[one][1], self._code[other][1]
        assert isinstance(first, frozenset) and isinstance(second, frozenset)
        return not first.isdisjoint(second)


def _texts(text: str, saves: _Saves) -> dict[str, str]:
    open_, found = {}, {}
    for name, side, at in saves:
        if side == 0:
            open_[name] = at
        elif name in open_:
            found[name] = text[open_[name] : at]
    return found


def compile_node(node: Node) -> Program:
    """Compile an expression, or raise IdentifierError if it is too large."""
    code: Code = []
    _emit(node, code, "")
    code.append(("end",))
    return Program(code)


def _emit(node: Node, code: Code, owner: str) -> None:
    if len(code) > _MOST:
        message = f"the syntax has more than {_MOST} steps: its repetitions are too large"
        raise Problem("E_SYNTAX_SIZE", message).error()
    match node:
        case Chars(allowed):
            code.append(("char", allowed, owner))
        case Seq(parts):
            for part in parts:
                _emit(part, code, owner)
        case Alt(parts):
            _emit_alternatives(parts, code, owner)
        case Repeat(part, least, most):
            _emit_repeat(part, least, most, code, owner)
        case Group(name, part):
            code.append(("save", name, 0))
            _emit(part, code, owner or name)
            code.append(("save", name, 1))


def _emit_alternatives(parts: tuple[Node, ...], code: Code, owner: str) -> None:
    jumps = []
    for part in parts[:-1]:
        split = len(code)
        code.append(())
        _emit(part, code, owner)
        jumps.append(len(code))
        code.append(())
        code[split] = ("split", split + 1, len(code))
    _emit(parts[-1], code, owner)
    for jump in jumps:
        code[jump] = ("jump", len(code))


def _emit_repeat(part: Node, least: int, most: int | None, code: Code, owner: str) -> None:
    for _ in range(least):
        start = len(code)
        _emit(part, code, owner)
        if len(code) == start:
            return  # nothing, however often
    if most is None:
        split = len(code)
        code.append(())
        _emit(part, code, owner)
        code.append(("jump", split))
        code[split] = ("split", split + 1, len(code))
        return
    splits = []
    for _ in range(most - least):
        splits.append(len(code))
        code.append(())
        _emit(part, code, owner)
        if len(code) == splits[-1] + 1:
            break
    for split in splits:
        code[split] = ("split", split + 1, len(code))
