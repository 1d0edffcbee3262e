"""Dublin Core without parsing is what parsing gives."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from muniment.objects import Datastream, DigitalObject, didl_document, mets_document, read_object
from muniment.web.oai.core import dublin_core, written_core

text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), max_size=20)
names = st.sampled_from(["title", "creator", "identifier", "date", "rights", "unheard"])
streams = st.just((Datastream("urn:uuid:1", "a.txt", "text/plain", 1, "00" * 32, "urn:uuid:2"),))
objects = st.builds(
    DigitalObject,
    st.just("urn:uuid:<&>"),
    st.just("2026-11-16T00:00:00Z"),
    st.lists(text, max_size=3).map(tuple),
    st.just(()) | streams,
    st.lists(st.tuples(names, text), max_size=4).map(tuple),
    facts=st.just(()),
    agent=st.just("muniment"),
)


def said(data: bytes) -> list[tuple[str, str | None]]:
    return [(each.tag, each.text) for each in etree.fromstring(data)]


@given(objects)
@example(DigitalObject("urn:uuid:<&>", "2026", ("urn:a:]]>", " "), (), (("title", "<&>\r\n"),)))
@example(DigitalObject("urn:uuid:<&>", "2026", ("urn:a:b\r",), (), (("title", "a\r"),)))
@example(DigitalObject("urn:uuid:<&>", "2026", ("a",), (), (("identifier", "a"), ("title", ""))))
def test_what_we_wrote_is_read_by_pattern(thing: DigitalObject) -> None:
    document = didl_document(thing, "http://localhost")
    quick = written_core(document, thing.package)
    exact = dublin_core(read_object(document), thing.package)
    if quick is not None:
        assert said(quick) == said(exact)


def test_ordinary_objects_need_no_parser() -> None:
    pairs = (("title", "Trees & <more>"), ("format", "text/plain"))
    thing = DigitalObject(
        "urn:uuid:1", "2026-11-16T00:00:00Z", ("pdi://a.ch/2", "urn:x:y"), (), pairs
    )
    assert written_core(didl_document(thing, "http://localhost"), "urn:uuid:1") is not None
    assert written_core(mets_document(thing, "http://localhost"), "urn:uuid:1") is None
    foreign = didl_document(thing, "http://localhost").replace(b"elements/1.1/", b"elements/9/")
    assert written_core(foreign, "urn:uuid:1") is None
