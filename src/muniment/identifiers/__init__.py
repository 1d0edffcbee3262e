"""Names that last: persistent document identifiers, URNs, fragments and citations.

A pure library: texts in, frozen values out, no files and no network.
"""

from muniment.identifiers.parse import (
    Diagnosis,
    Profile,
    diagnose,
    parse_many,
    parse_pdi,
    parse_series,
)
from muniment.identifiers.pdi import Citation, Pdi
from muniment.identifiers.problems import Problem
from muniment.identifiers.urn import Urn, parse_urn
from muniment.identifiers.wildcards import matches

__all__ = [
    "Citation", "Diagnosis", "Pdi", "Problem", "Profile", "Urn", "diagnose", "matches",
    "parse_many", "parse_pdi", "parse_series", "parse_urn",
]  # fmt: skip
