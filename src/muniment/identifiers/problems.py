"""What is wrong with a name, and where: the same values for every kind of name."""

from __future__ import annotations

from dataclasses import dataclass, field

from muniment.errors import IdentifierError

__all__ = ["Problem", "Problems"]

_LONGEST = 600  # characters of a message


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a name. Codes that begin with E_ refuse it; D_ and W_ only tell."""

    code: str
    message: str
    position: int = 0

    @property
    def fatal(self) -> bool:
        """Whether the name is refused because of it."""
        return self.code.startswith("E_")

    def error(self) -> IdentifierError:
        """Return the error to raise; what a message quotes may be long, a sentence is not."""
        message = self.message
        if len(message) > _LONGEST:
            half = _LONGEST // 2
            message = f"{message[:half]} … {message[-half:]}"
        return IdentifierError(self.code, message, self.position)


@dataclass(slots=True)
class Problems:
    """The remarks that a reader collects on its way."""

    found: list[Problem] = field(default_factory=list)

    def note(self, code: str, message: str, position: int = 0) -> None:
        """Remember something that does not stop the reading."""
        self.found.append(Problem(code, message, position))
