"""URNs of the seed namespace and candidates for subnamespaces, with what has to be said of each.

VALID: text, canonical form, why it cannot be assigned now. REFUSED: text, error. CANDIDATES:
subnamespace identifier, errors, warnings, while ``example`` is registered.
"""

from __future__ import annotations

VALID: list[tuple[str, str, tuple[str, ...]]] = [
    (
        "urn:ogf:example:cluster:2009:example.net:42",
        "urn:ogf:example:cluster:2009:example.net:42",
        (),
    ),
    (
        "URN:OGF:Example:CLUSTER:2009:EXAMPLE.net:42",
        "urn:ogf:example:cluster:2009:example.net:42",
        (),
    ),
    (
        "urn:ogf:example:cluster:2010:example.net:00784505476220484608",
        "urn:ogf:example:cluster:2010:example.net:00784505476220484608",
        (),
    ),
    (
        "urn:ogf:example:supercomputer:2011:colossus.bletchleypark.org.uk:1",
        "urn:ogf:example:supercomputer:2011:colossus.bletchleypark.org.uk:1",
        (),
    ),
    (
        "urn:ogf:example:supercomputer:2011:xn--tcklt4eq6h7d1cbe.example.org:1",
        "urn:ogf:example:supercomputer:2011:xn--tcklt4eq6h7d1cbe.example.org:1",
        (),
    ),
    (
        "urn:ogf:example:desktop:2011:example.net:1",
        "urn:ogf:example:desktop:2011:example.net:1",
        ("N_TYPE_RESERVED",),
    ),
    (
        "urn:ogf:example:cluster:2011:example.net:1?load",
        "urn:ogf:example:cluster:2011:example.net:1?load",
        ("N_QUERY_RESERVED",),
    ),
    (
        "urn:ogf:example:cluster:2011:example.net:1#rack4",
        "urn:ogf:example:cluster:2011:example.net:1#rack4",
        ("N_FRAGMENT_RESERVED",),
    ),
    (
        "urn:ogf:example:cluster:2011:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.net:111111111111111111111111111111111111111",
        "urn:ogf:example:cluster:2011:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.net:111111111111111111111111111111111111111",
        (),
    ),
]

REFUSED: list[tuple[str, str]] = [
    ("urn:ogf:example:supercomputer:2011:colossus.bletchleypark.org.uk:mark1", "E_INDEX"),
    ("urn:ogf:example:supercomputer:2011:colossus.bletchleypark.org.uk", "E_MISSING_INDEX"),
    ("urn:ogf:example:supercomputer:1949:colossus.bletchleypark.org.uk:1", "E_YEAR_IMPLAUSIBLE"),
    (
        "urn:ogf:example:supercomputer:2000:%e3%82%b9%e3%83%bc%e3%83%91%e3%83%bc%e3%82%b3%e3%83%b3%e3%83%94%e3%83%a5%e3%83%bc%e3%82%bf.example.org:1",
        "E_PERCENT",
    ),
    ("urn:ogf:example:cluster:2011:example..net:1", "E_DOMAIN"),
    ("urn:ogf:example:cluster:2011:-bad.example.net:1", "E_DOMAIN"),
    ("urn:ogf:example:cluster:2011:localhost:1", "E_DOMAIN"),
    ("urn:ogf:example:cluster:11:example.net:1", "E_YEAR"),
    ("urn:ogf:example:abcdefghijklmnopq:2011:example.net:1", "E_SYNTAX"),
    (
        "urn:ogf:example:cluster:2011:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.net:1111111111111111111111111111111111111111",
        "E_LENGTH",
    ),
    ("urn:ogf:example", "E_OGF_SYNTAX"),
    ("urn:ogf::42", "E_OGF_SYNTAX"),
    ("urn:ogf:unknown:42", "E_SNID_UNASSIGNED"),
    ("urn:ogf:example:", "E_OGF_SYNTAX"),
    ("urn:oqf:example:cluster:2009:example.net:42", "E_OGF_SYNTAX"),
]

CANDIDATES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("example", ("E_SNID_TAKEN",), ()),
    ("Example", ("E_SNID_TAKEN",), ("W_SNID_CASE",)),
    ("network", (), ()),
    ("gfd", (), ()),
    ("a", (), ("W_SNID_SHORT",)),
    ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (), ()),
    ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ("E_SNID_SYNTAX",), ()),
    ("-abc", ("E_SNID_SYNTAX",), ()),
    ("abc-", (), ("W_SNID_TRAILING_HYPHEN",)),
    ("x-nml", ("E_SNID_X",), ()),
    ("X-nml", ("E_SNID_X",), ("W_SNID_CASE",)),
    ("nml_x", ("E_SNID_SYNTAX",), ()),
    ("example-wg", (), ("W_SNID_VOLATILE",)),
    ("nml.base", ("E_SNID_SYNTAX",), ()),
    ("fr-archive", (), ("W_SNID_CC_HYPHEN",)),
    ("urn", ("E_SNID_RESERVED",), ()),
    ("urn-7", ("E_SNID_RESERVED",), ()),
    ("9p", (), ("W_SNID_SHORT",)),
]
