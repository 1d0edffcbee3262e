"""metadata.xsd of every version, in our own words: that of 2.2 whole, the others as differences.

Each older version is derived from a newer one: a definition in ``metadata-2.0.xsd`` takes the place
of the one with the same name, or is added; the namespace becomes that of the version. Definitions
that an older version does not use are left, since nothing refers to them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lxml import etree

__all__ = ["compiled_schema", "schema_of"]

_XS = "http://www.w3.org/2001/XMLSchema"
_DERIVED_FROM = {"2.1": "2.2", "2.0": "2.2", "1.0": "2.0"}


@cache
def schema_of(version: str) -> bytes:
    """Return the definition of header/metadata.xml in a version of SIARD (M_5.0-1)."""
    if version == "2.2":
        return _file("metadata.xsd")
    return _derived(schema_of(_DERIVED_FROM[version]), _file(f"metadata-{version}.xsd"))


@cache
def compiled_schema(version: str) -> Any:
    """Return the definition as lxml validates with it."""
    return etree.XMLSchema(etree.fromstring(schema_of(version)))


def _file(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()


def _derived(newer: bytes, differences: bytes) -> bytes:
    changed = etree.fromstring(differences)
    old, new = (root.get("targetNamespace") for root in (etree.fromstring(newer), changed))
    # The namespace stands in declarations too, which lxml does not let be changed.
    root = etree.fromstring(newer.replace(old.encode(), new.encode()))
    root.set("version", changed.get("version"))
    here = {element.get("name"): element for element in root if _is_definition(element)}
    for element in changed:
        if not _is_definition(element):
            continue
        if (replaced := here.get(element.get("name"))) is not None:
            root.replace(replaced, element)
        else:
            root.append(element)
    derived: bytes = etree.tostring(root)
    return derived


def _is_definition(element: Any) -> bool:
    return isinstance(element.tag, str) and element.tag != f"{{{_XS}}}annotation"
