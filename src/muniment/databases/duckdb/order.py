"""Tables in the order in which they refer to one another, found in one pass over their keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

__all__ = ["Order"]

_Name = tuple[str, str]  # of a schema and of a table


class Order:
    """Names that wait for others: given all of them, in order, each with those that it needs.

    >>> order = Order({("s", "a"): {("s", "b")}, ("s", "b"): set(), ("s", "c"): {("s", "c")}})
    >>> [name for _, name in order.ready()], list(order.waiting)
    (['b', 'a'], [('s', 'c')])
    """

    def __init__(self, needs: Mapping[_Name, set[_Name]]) -> None:
        self.waiting = {name: needed & needs.keys() for name, needed in needs.items()}
        self._after: dict[_Name, list[_Name]] = {name: [] for name in needs}
        for name, needed in self.waiting.items():
            for each in needed:
                self._after[each].append(name)
        self._free = deque(name for name, needed in self.waiting.items() if not needed)

    @property
    def is_ready(self) -> bool:
        """Whether a name waits for nothing."""
        return bool(self._free)

    def ready(self) -> Iterator[_Name]:
        """Yield names that wait for nothing, until those that are left wait for one another."""
        while self._free:
            name = self._free.popleft()
            yield name
            self._leave(name)

    def first(self) -> _Name:
        """Take the first name that waits, whatever it waits for."""
        name = next(iter(self.waiting))
        self._leave(name)
        return name

    def _leave(self, name: _Name) -> None:
        del self.waiting[name]
        for each in self._after[name]:
            needed = self.waiting.get(each)
            if needed is not None:
                needed.discard(name)
                if not needed:
                    self._free.append(each)
