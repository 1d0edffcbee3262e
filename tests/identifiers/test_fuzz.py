"""A short run of the fuzzer; ``fuzz.py`` runs as long as you like."""

from __future__ import annotations

import fuzz


def test_damaged_names_get_a_diagnosis_in_little_time() -> None:
    assert fuzz.run(rounds=150, seed=7) == []
