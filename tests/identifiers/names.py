"""Strategies that make names of every shape."""

from __future__ import annotations

import string
from datetime import date

from hypothesis import strategies as st

from muniment.identifiers.characters import UNIQUE_ID, escape
from muniment.identifiers.fragments import Fragment
from muniment.identifiers.pdi import Citation, Pdi

_component = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=12)
_country = st.text(string.ascii_lowercase, min_size=2, max_size=2)
series = st.builds(
    lambda parts, country: ".".join([*parts, country]),
    st.lists(_component, min_size=1, max_size=3),
    _country,
)
unique_ids = st.one_of(
    st.integers(1, 10**9).map(str),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
    .map(lambda text: escape(text, UNIQUE_ID)),
)  # fmt: skip


@st.composite
def pdis(draw: st.DrawFn, depth: int = 2) -> Pdi:
    """Make a PDI, perhaps with a fragment or a citation."""
    day = draw(st.dates(date(1000, 1, 1), date(9999, 12, 31)))
    token = draw(st.sampled_from([None, "text", "html", "gif", "basic", "pdf", "siard", "utf-8"]))
    version = draw(st.one_of(st.none(), st.integers(1, 10**6))) if token else None
    parts = day.isoformat().split("-")
    pdi = Pdi(draw(series), *parts, draw(unique_ids), token, version)
    kind = draw(st.sampled_from(["plain", "fragment", "citation"]))
    if token is None or kind == "plain":
        return pdi
    if kind == "fragment":
        return pdi._replace(fragment=draw(_fragments(token)))
    if token in ("text", "html", "utf-8") and depth:
        position = str(draw(st.integers(0, 10**6)))
        return pdi._replace(citation=Citation(position, draw(pdis(depth=depth - 1))))
    return pdi


@st.composite
def _fragments(draw: st.DrawFn, token: str) -> Fragment:
    low, high = sorted(draw(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
    interval = (str(low), str(high))
    if token == "gif":
        frame = draw(st.sampled_from([(), ("3",)]))
        corners = (("1", str(low)), ("5", str(high + 1)))
        return Fragment(draw(st.sampled_from([None, "rect"])), (*corners, *frame))
    if token == "siard":
        rows = ((f"r{high + 1}",),) if draw(st.booleans()) else ()
        return Fragment("row", (("s0", "t2", f"r{low + 1}"), *rows))
    if token == "pdf":
        return Fragment("byte", interval)
    scheme = "sec" if token == "basic" else "char"
    return Fragment(draw(st.sampled_from([None, scheme])), interval)
