"""Throw damaged names at everything that reads names.

python tests/identifiers/fuzz.py 60      for so many seconds; prints what broke, if anything did
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from vectors import BAD, GOOD, URNS

from muniment.errors import IdentifierError
from muniment.identifiers import Profile, diagnose, parse_many, parse_series
from muniment.identifiers.abnf import alphabet, longest, parse_abnf
from muniment.identifiers.ddds import parse_substitution
from muniment.identifiers.fragments import parse_fragment, parse_position
from muniment.identifiers.openurl import parse_kev
from muniment.identifiers.registered import scheme_faults
from muniment.identifiers.urn import parse_pdi_urn, parse_urn, parse_urn_2141

SEEDS = [*(row[1] for row in GOOD), *(row[1] for row in BAD), *(text for text, _ in URNS)]
SEEDS += ['a = *2( "x" / %x41-5A )', "!^(a+)[b-c]$!\\1!i", "url_ver=Z39.88-2004&rft_id=x%20"]
READERS: list[Callable[[str], object]] = [
    *(lambda text, profile=profile: diagnose(text, profile) for profile in Profile),  # type: ignore[misc]
    lambda text: list(parse_many([text])), parse_series, parse_urn, parse_urn_2141,
    lambda text: parse_pdi_urn(text, "example"), parse_abnf, parse_substitution, parse_kev,
    lambda text: parse_fragment(text, 0), lambda text: parse_position(text, 0),
    lambda text: _review(text), lambda text: list(scheme_faults("x", {"positions": text})),
]  # fmt: skip


def _review(text: str) -> object:
    """Read a syntax as a registration's review does."""
    grammar = parse_abnf(text)
    start = next(iter(grammar.rules))
    node = grammar.node(start)
    program = grammar.compile(start)
    return alphabet(node), longest(node), program.match(text[:8192]), program.ambiguous()


_SLOW = 2.0  # seconds of CPU for one text
_LONGEST = 3000  # characters of an error


def damaged(chance: random.Random) -> str:
    """Return a name with some faults, or up to a megabyte of anything."""
    if chance.random() < 0.02:
        piece = chance.choice(SEEDS) if chance.random() < 0.5 else chance.choice("a(#@%*.,é\0\n")
        return piece * chance.randrange(1, 1_000_000 // len(piece))
    text = list(chance.choice(SEEDS))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(4):
            case 0:
                text[at : at + chance.randrange(4)] = []
            case 1:
                text.insert(
                    at, chr(chance.choice([chance.randrange(128), chance.randrange(0xD800)]))
                )
            case 2:
                text[at:at] = text[chance.randrange(len(text) + 1) :][: chance.randrange(20)]
            case 3:
                text[at:at] = chance.choice(SEEDS)
    return "".join(text)


def run(rounds: int, seed: int) -> list[str]:
    """Read damaged names; return what broke."""
    chance = random.Random(seed)
    broken = []
    for _ in range(rounds):
        text = damaged(chance)
        for number, read in enumerate(READERS):
            started = time.process_time()
            try:
                read(text)
            except IdentifierError as error:
                if len(str(error)) > _LONGEST:
                    broken.append(f"reader {number} says too much of {text[:300]!r}")
            except Exception as error:
                broken.append(f"reader {number}, {text[:300]!r}: {error!r}")
            if time.process_time() - started > _SLOW:
                broken.append(f"reader {number} is slow on {text[:300]!r}")
    return broken


if __name__ == "__main__":
    end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 10)
    seed, faults = time.time_ns(), []
    while time.monotonic() < end and not faults:
        seed += 1
        faults = run(200, seed)
    print("\n".join(faults) or "nothing broke")
    sys.exit(bool(faults))
