"""The definitions of older versions accept and refuse what the published ones do."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from muniment.siard.rules.metadata import whole_document
from muniment.siard.schemas import compiled_schema, schema_of
from muniment.siard.versions import find_version

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "xsd" / "siard"
VERSIONS = ["1.0", "2.0", "2.1", "2.2"]
# Values at the edges of the types: SQL types in all spellings, folders, digests, words, numbers.
VALUES = [
    "", " ", "x", "1", "-1", "true", "maybe", "2020-01-01", "2020-13-01", "1.0", "2.0", "2.1", "2.2",
    "INTEGER", "INT", "DATALINK", "BIT", "BIT(8)", "BIT VARYING(8)", "VARCHAR", "VARCHAR(10)",
    "CHARACTER VARYING (10)", "VARCHAR( 10 )", "DECIMAL(10,2)", "DECIMAL(10, 2)", "DEC(10)",
    "DECIMAL(10,0)", "NUMERIC(0)", "CLOB(2G)", "CLOB(2 G)", "BLOB", "BINARY VARYING", "VARBINARY(4)",
    "NCHAR VARYING(4)", "NATIONAL CHARACTER LARGE OBJECT", "TIME(0)", "TIMESTAMP(0)", "TIME(3)",
    "TIMESTAMP WITH TIME ZONE(3)", "INTERVAL DAY TO SECOND(6)", "INTERVAL SECOND(2, 3)",
    "INTERVAL SECOND(2)", "XML", "FLOAT(53)", "BOOLEAN", "MD5", "MD50cc175b9c0f1b6a831c399e269772661",
    "SHA-1", "SHA-1da39a3ee5e6b4b0d3255bfef95601890afd80709", "SHA-256:" + "0" * 64, "SHA-256" + "0" * 64,
    "SHA-1" + "A" * 27 + "=", "BEFORE", "INSTEAD OF", "FULL", "CASCADE", "ANYTHING", "GRANT", "udt",
    "distinct", "row", "array", "f", "folder 1", "1folder", "_x", "a/b c", "http://[x",
]  # fmt: skip


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    number: str = request.param
    return number


def test_every_definition_knows_its_namespace_and_a_whole_document(version: str) -> None:
    root = etree.fromstring(schema_of(version))
    assert root.get("targetNamespace") == find_version(version).metadata_namespace
    compiled_schema(version).assertValid(whole_document(version))


def variants(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield the document changed in one place each."""
    for number, element in enumerate(root.iter()):
        label = f"{number} {etree.QName(element).localname}"
        if element.getparent() is not None:
            yield f"drop {label}", change(root, number, lambda e: e.getparent().remove(e))
            yield f"double {label}", change(root, number, lambda e: e.addnext(deepcopy(e)))
            yield f"first {label}", change(root, number, lambda e: e.getparent().insert(0, e))
        yield f"more in {label}", change(root, number, lambda e: etree.SubElement(e, "more"))
        yield f"attribute {label}", change(root, number, lambda e: e.set("more", "1"))
        if not len(element):
            for value in VALUES:
                yield (
                    f"{value!r} as {label}",
                    change(root, number, lambda e, v=value: setattr(e, "text", v)),
                )


def change(root: Any, number: int, how: Any) -> Any:
    copy = deepcopy(root)
    how(next(e for n, e in enumerate(copy.iter()) if n == number))
    return copy


def test_it_decides_as_the_published_one_does(version: str) -> None:
    published = PUBLISHED / f"metadata-{version}.xsd"
    if not published.exists():
        pytest.skip("the published schemas are not beside the project")
    theirs, ours = etree.XMLSchema(etree.parse(published)), compiled_schema(version)
    refused = 0
    for label, document in variants(whole_document(version)):
        assert ours.validate(document) == theirs.validate(document), label
        refused += not ours.validate(document)
    assert refused > 500
