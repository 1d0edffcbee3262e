"""header/metadata.xml: a Database written as SIARD 2.2, and read from any version of SIARD.

One table, ``_LEVELS``, says for every level of chapter 5 which element holds which attribute, in
the order of metadata.xsd. Each of its entries knows both directions, so reader and writer are
mirror images. What may be written is said once too, by metadata.xsd: the writer asks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import chain
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

from lxml import etree

from muniment.errors import FormatError, SiardError
from muniment.siard.text import escape_metadata, escape_name, unescape
from muniment.siard.versions import CURRENT, find_version
from muniment.sql import model
from muniment.sql.model import Database, MessageDigest
from muniment.sql.types import NamedType, PredefinedType, Type, parse_type

__all__ = ["format_metadata", "metadata_schema", "parse_metadata", "refuse_doctype"]

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_XS = "http://www.w3.org/2001/XMLSchema"


def format_metadata(database: Database) -> bytes:
    """Return the metadata.xml of SIARD 2.2; the same database gives the same bytes."""
    namespace = CURRENT.metadata_namespace
    root = etree.Element(f"{{{namespace}}}siardArchive", nsmap={None: namespace, "xsi": _XSI})
    root.set("version", CURRENT.number)
    root.set(f"{{{_XSI}}}schemaLocation", f"{namespace} metadata.xsd")
    _write(root, _LEVELS["siardArchive"], database)
    _refuse_invalid(root)
    etree.indent(root, "  ")
    written: bytes = etree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return written + b"\n"


def parse_metadata(data: bytes) -> Database:
    """Return the database that a metadata.xml of SIARD 1.0, 2.0, 2.1 or 2.2 describes."""
    root = _parse_xml(data)
    name = etree.QName(root)
    if name.localname != "siardArchive":
        raise SiardError(
            f"metadata.xml starts with <{name.localname}> instead of <siardArchive>: "
            "this is not a SIARD archive"
        )
    version = find_version(root.get("version"), name.namespace)
    if version.number == "1.0":
        _unwrap(root)
    try:
        database: Database = _read(_LEVELS["siardArchive"], root)
    except RecursionError:
        raise SiardError(
            "metadata.xml nests its fields hundreds of levels deep; no database does, "
            "so do not trust this archive"
        ) from None
    return replace(database, version=version.number)


def metadata_schema() -> bytes:
    """Return metadata.xsd, which goes into every archive beside metadata.xml (P_4.2-5)."""
    return resources.files(__package__).joinpath("metadata.xsd").read_bytes()


# XML in


def _parse_xml(data: bytes) -> Any:
    refuse_doctype(data)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,  # the source of one routine may be longer than 10 MB
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise SiardError(
            f"metadata.xml is not well-formed XML{_at_byte(data)}: {error.msg}. "
            "The archive is damaged; get it again from where it came"
        ) from error


def _at_byte(data: bytes) -> str:
    """The byte at which a document breaks, which lxml does not tell, if expat finds it."""
    parser = expat.ParserCreate()
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError):
        return f" at byte {parser.ErrorByteIndex}"
    return ""


class _RootReached(Exception):
    """The document has started without a DOCTYPE."""


def refuse_doctype(data: bytes) -> None:
    """Raise SiardError unless the root element comes before any DOCTYPE.

    lxml reports a DOCTYPE only after it has expanded the entities in the attributes; expat reports
    it as soon as it starts.
    """

    def doctype(*_: object) -> None:
        raise SiardError(
            "metadata.xml has a DOCTYPE, which SIARD does not need and attackers use; "
            "remove it if you trust the archive"
        )

    def start(*_: object) -> None:
        raise _RootReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = start
    try:
        parser.Parse(data, True)
    except _RootReached:
        return
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise SiardError(
            f"metadata.xml is not well-formed XML: {error}. "
            "The archive is damaged; get it again from where it came"
        ) from error


def _unwrap(root: Any) -> None:
    """Take off the line breaks that the tools of SIARD 1.0 put around text to indent it."""
    for element in root.iter():
        if not len(element) and element.text and element.text.startswith("\n"):
            element.text = element.text.strip()


# The two directions of a level

_NAMES = frozenset((
    "name", "specificName", "typeSchema", "typeName", "underSchema", "underType",
    "column", "referenced", "referencedSchema", "referencedTable",
))  # fmt: skip

_Children = dict[str, list[Any]]  # the elements within an element, by their name


@dataclass(frozen=True, slots=True)
class _Entry:
    """One attribute of a level: where it is read from, and how it is written under its element."""

    attribute: str
    read: Callable[[_Children], Any]
    write: Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of chapter 5: its class in the model, and its elements in order."""

    model: type
    entries: tuple[_Entry, ...]


def _read(level: _Level, element: Any) -> Any:
    children = _children(element)
    return level.model(**{entry.attribute: entry.read(children) for entry in level.entries})


def _write(element: Any, level: _Level, value: object) -> None:
    for entry in level.entries:
        entry.write(element, getattr(value, entry.attribute))


def _children(element: Any) -> _Children:
    """The children by name, whatever their namespace: writers differ in it."""
    children: _Children = {}
    for child in element:
        children.setdefault(child.tag.rpartition("}")[2], []).append(child)
    return children


def _add(parent: Any, name: str, text: str | None = None) -> Any:
    element = etree.SubElement(parent, f"{{{CURRENT.metadata_namespace}}}{name}")
    if text is not None:
        element.text = escape_name(text) if name in _NAMES else escape_metadata(text)
    return element


def _string(element: Any) -> str:
    return unescape(element.text or "")


# Entries that are one text


def _value(
    name: str,
    parse: Callable[[str], Any] = str,
    spell: Callable[[Any], str] = str,
    missing: Any = None,
    older: str = "",
    omitted: tuple[Any, ...] = (None,),
) -> _Entry:
    """An element that holds one value; ``older`` is its name in earlier versions of SIARD."""

    def read(children: _Children) -> Any:
        found = children.get(name) or children.get(older)
        return _parsed(found[0], parse) if found else missing

    def write(parent: Any, value: Any) -> None:
        if value not in omitted:
            _add(parent, name, spell(value))

    return _Entry(_snake(name), read, write)


def _parsed(element: Any, parse: Callable[[str], Any]) -> Any:
    text = _string(element)
    try:
        return parse(text)
    except ValueError as error:
        name = etree.QName(element).localname
        raise SiardError(
            f"metadata.xml, line {element.sourceline}: {name} cannot be {text[:80]!r}; "
            "correct it in metadata.xml"
        ) from error


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _text(name: str) -> _Entry:
    """A text that may be missing, which is not the same as empty."""
    return _value(name)


def _name(name: str, older: str = "") -> _Entry:
    """A text that the model always has, if only empty."""
    return _value(name, missing="", older=older)


def _mandatory(name: str) -> _Entry:
    """A text that the standard does not let be empty."""
    return _value(name, spell=lambda text: text or "unspecified", missing="")


def _choice(name: str, case: Callable[[str], str] = str.upper, missing: Any = None) -> _Entry:
    """One of a few words; metadata.xsd lists them, other writers differ in case and spaces."""

    def parse(text: str) -> Any:
        return case(" ".join(text.split())) or missing

    return _value(name, parse, missing=missing, omitted=(None, ""))


def _date(name: str) -> _Entry:
    return _value(name, str.strip, missing="")


def _number(name: str, missing: int | None = None) -> _Entry:
    return _value(name, lambda text: int(text) if text.strip() else missing, missing=missing)


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def _flag(name: str, missing: bool | None = None) -> _Entry:
    def parse(text: str) -> bool | None:
        word = text.strip().lower()
        if word and word not in _FLAGS:
            raise ValueError(text)
        return _FLAGS.get(word, missing)

    return _value(name, parse, lambda flag: "true" if flag else "false", missing=missing)


def _lob_folder() -> _Entry:
    """A URI, which is kept as URL-encoded ASCII (G_3.4-2).

    The ``folder`` of a column in 1.0 and 2.0 is left: it lies inside, and cells name all of it.
    """
    return _value("lobFolder", str.strip, _encode_uri)


def _encode_uri(uri: str) -> str:
    return quote(uri, safe="!#$%&'()*+,/:;=?@[]~", errors="surrogatepass")


# Entries that are a type


@lru_cache(maxsize=4096)
def _predefined(text: str) -> tuple[PredefinedType, bool]:
    """The nearest type that SIARD 2.2 can spell, and whether it says all that ``text`` does."""
    try:
        stated = parse_type(" ".join(text.split()))
    except (FormatError, ValueError):
        return _bit_string(text) or PredefinedType("VARCHAR"), False
    if _type_pattern().fullmatch(str(stated)):
        return stated, True
    bare = replace(
        stated, length=None, scale=None, interval=re.sub(r"\(.*?\)", "", stated.interval)
    )
    spellable = _type_pattern().fullmatch(str(bare))
    return (bare if spellable else PredefinedType("VARCHAR")), False


def _bit_string(text: str) -> PredefinedType | None:
    """What SQL:2008 has instead of the bit strings of SQL:1999, which SIARD 1.0 and 2.0 allow."""
    match = re.fullmatch(r"BIT( VARYING)? ?(?:\( ?(\d{1,18}) ?\))?", " ".join(text.upper().split()))
    if not match:
        return None
    octets = (int(match[2]) + 7) // 8 if match[2] else None
    return PredefinedType("VARBINARY" if match[1] else "BINARY", octets or None)


@cache
def _type_pattern() -> re.Pattern[str]:
    """What metadata.xsd accepts as a predefined type."""
    patterns = etree.fromstring(metadata_schema()).xpath(
        "//xs:simpleType[@name='predefinedTypeType']//xs:pattern/@value", namespaces={"xs": _XS}
    )
    return re.compile("|".join(patterns), re.ASCII)


def _spell_type(predefined: PredefinedType) -> str:
    # metadata.xsd has no TIME(0); in SQL:2008 a TIME without precision is one with precision 0.
    if predefined.name in ("TIME", "TIME WITH TIME ZONE") and predefined.length == 0:
        return predefined.name
    return str(predefined)


def _base() -> _Entry:
    return _value("base", lambda text: _predefined(text)[0], _spell_type)


def _type() -> _Entry:
    return _Entry("type", _read_type, _write_type)


def _read_type(children: _Children) -> Type:
    text = _first_text(children, "type")
    if "typeName" in children and not text.strip():
        return NamedType(_first_text(children, "typeSchema"), _first_text(children, "typeName"))
    return _predefined(text)[0]


def _write_type(parent: Any, value: Type) -> None:
    if isinstance(value, PredefinedType):
        _add(parent, "type", _spell_type(value))
        return
    if value.schema:
        _add(parent, "typeSchema", value.schema)
    _add(parent, "typeName", value.name)


def _type_original() -> _Entry:
    """The original type; a type that could not be taken over as it stands is kept here."""
    entry = _text("typeOriginal")

    def read(children: _Children) -> Any:
        stated = _first_text(children, "type")
        if stated.strip() and not _predefined(stated)[1]:
            return entry.read(children) or stated
        return entry.read(children)

    return replace(entry, read=read)


def _first_text(children: _Children, name: str) -> str:
    return _string(children[name][0]) if name in children else ""


# Entries that are levels themselves


def _one(name: str) -> _Entry:
    def read(children: _Children) -> Any:
        return _read(_LEVELS[name], children[name][0]) if name in children else None

    def write(parent: Any, value: Any) -> None:
        if value is not None:
            _write(_add(parent, name), _LEVELS[name], value)

    return _Entry(_snake(name), read, write)


def _many(name: str, attribute: str) -> _Entry:
    """Elements that repeat without a list around them."""

    def read(children: _Children) -> Any:
        return tuple(_read(_LEVELS[name], element) for element in children.get(name, ()))

    def write(parent: Any, values: tuple[Any, ...]) -> None:
        for value in values:
            _write(_add(parent, name), _LEVELS[name], value)

    return _Entry(attribute, read, write)


def _list(name: str, item: str, required: bool = False) -> _Entry:
    """A list in an element of its own, which is left out when empty unless it is required."""
    entry = _many(item, _snake(name))

    def read(children: _Children) -> Any:
        lists = (entry.read(_children(element)) for element in children.get(name, ()))
        return tuple(chain.from_iterable(lists))

    def write(parent: Any, values: tuple[Any, ...]) -> None:
        if values or required:
            entry.write(_add(parent, name), values)

    return _Entry(entry.attribute, read, write)


def _key_columns() -> _Entry:
    def read(children: _Children) -> Any:
        return tuple(_string(element) for element in children.get("column", ()))

    def write(parent: Any, names: tuple[str, ...]) -> None:
        for name in names:
            _add(parent, "column", name)

    return _Entry("columns", read, write)


def _message_digests() -> _Entry:
    def read(children: _Children) -> Any:
        elements = children.get("messageDigest", ())
        # SIARD 1.0 has to have the element, so it is empty where there is no digest.
        return tuple(_read_digest(e) for e in elements if len(e) or _string(e).strip())

    return replace(_many("messageDigest", "message_digests"), read=read)


def _read_digest(element: Any) -> Any:
    if len(element):
        return _read(_LEVELS["messageDigest"], element)
    text = _string(element).strip()
    for digest_type in ("MD5", "SHA-1", "SHA-256"):  # DigestStyle.PREFIXED
        if text.startswith(digest_type):
            return MessageDigest(digest_type, text.removeprefix(digest_type).lstrip(": "))
    return MessageDigest("", text)


# The table: chapter 5, in the order of metadata.xsd

_UNIQUE_KEY = _Level(model.UniqueKey, (_name("name"), _text("description"), _key_columns()))

# A table is read by its rows, so it keeps its own line breaks.
# fmt: off
_LEVELS: dict[str, _Level] = {
    "siardArchive": _Level(Database, (
        _mandatory("dbname"), _text("description"), _text("archiver"), _text("archiverContact"),
        _mandatory("dataOwner"), _mandatory("dataOriginTimespan"), _lob_folder(),
        _text("producerApplication"), _date("archivalDate"), _message_digests(),
        _text("clientMachine"), _text("databaseProduct"), _text("connection"),
        _text("databaseUser"), _list("schemas", "schema", required=True),
        _list("users", "user", required=True), _list("roles", "role"),
        _list("privileges", "privilege"),
    )),
    "messageDigest": _Level(MessageDigest, (_choice("digestType", missing=""), _name("digest"))),
    "schema": _Level(model.Schema, (
        _name("name"), _name("folder"), _text("description"), _list("types", "type"),
        _list("tables", "table"), _list("views", "view"), _list("routines", "routine"),
    )),
    "type": _Level(model.UserType, (
        _name("name"), _choice("category", str.lower, missing=""), _text("underSchema"),
        _text("underType"), _flag("instantiable", missing=True), _flag("final", missing=True),
        _base(), _list("attributes", "attribute"), _text("description"),
    )),
    "attribute": _Level(model.Attribute, (
        _name("name"), _type(), _type_original(), _flag("nullable"), _text("defaultValue"),
        _number("cardinality"), _text("description"),
    )),
    "table": _Level(model.Table, (
        _name("name"), _name("folder"), _text("description"),
        _list("columns", "column", required=True), _one("primaryKey"),
        _list("foreignKeys", "foreignKey"), _list("candidateKeys", "candidateKey"),
        _list("checkConstraints", "checkConstraint"), _list("triggers", "trigger"),
        _number("rows", missing=0),
    )),
    "column": _Level(model.Column, (
        _name("name"), _lob_folder(), _type(), _text("mimeType"), _type_original(),
        _list("fields", "field"), _flag("nullable"), _text("defaultValue"),
        _number("cardinality"), _text("description"),
    )),
    "field": _Level(model.Field, (
        _name("name"), _lob_folder(), _list("fields", "field"), _text("mimeType"),
        _text("description"),
    )),
    "primaryKey": _UNIQUE_KEY,
    "foreignKey": _Level(model.ForeignKey, (
        _name("name"), _name("referencedSchema"), _name("referencedTable"),
        _many("reference", "references"), _choice("matchType"), _choice("deleteAction"),
        _choice("updateAction"), _text("description"),
    )),
    "reference": _Level(model.Reference, (_name("column"), _name("referenced"))),
    "candidateKey": _UNIQUE_KEY,
    "checkConstraint": _Level(model.CheckConstraint, (
        _name("name"), _name("condition"), _text("description"),
    )),
    "trigger": _Level(model.Trigger, (
        _name("name"), _choice("actionTime", missing=""), _name("triggerEvent"),
        _text("aliasList"), _name("triggeredAction"), _text("description"),
    )),
    "view": _Level(model.View, (
        _name("name"), _text("query"), _text("queryOriginal"), _text("description"),
        _list("columns", "column", required=True), _number("rows"),
    )),
    "routine": _Level(model.Routine, (
        _name("specificName", older="name"), _name("name"), _text("description"),
        _text("source"), _text("body"), _text("characteristic"), _text("returnType"),
        _list("parameters", "parameter"),
    )),
    "parameter": _Level(model.Parameter, (
        _name("name"), _name("mode"), _type(), _type_original(), _number("cardinality"),
        _text("description"),
    )),
    "user": _Level(model.User, (_name("name"), _text("description"))),
    "role": _Level(model.Role, (_name("name"), _name("admin"), _text("description"))),
    "privilege": _Level(model.Privilege, (
        _name("type"), _text("object"), _name("grantor"), _name("grantee"), _choice("option"),
        _text("description"),
    )),
}
# fmt: on


# XML out: nothing leaves that metadata.xsd does not accept


@cache
def _schema() -> Any:
    return etree.XMLSchema(etree.fromstring(metadata_schema()))


def _refuse_invalid(root: Any) -> None:
    schema = _schema()
    if schema.validate(root):
        return
    fault = schema.error_log[0]
    element = root.getroottree().xpath(fault.path)[0]
    if fault.type_name == "SCHEMAV_ELEMENT_CONTENT":
        problem = re.sub(r"\{.*?\}", "", fault.message).rstrip(". ")
    else:
        problem = f"{etree.QName(element).localname} cannot be {(element.text or '')[:80]!r}"
    raise SiardError(
        f"{_place(element)} does not fit into SIARD 2.2: {problem}. "
        "Correct it, or leave it out of the archive"
    )


def _place(element: Any) -> str:
    """The kind and the full name of what an element belongs to: "table public.orders"."""
    path = [node for node in (*reversed([*element.iterancestors()]), element) if _own_name(node)]
    if not path:
        return "the database"
    kind = etree.QName(path[-1]).localname
    return f"{kind} {'.'.join(_own_name(node) for node in path)}"


def _own_name(node: Any) -> str:
    return unescape(node.findtext("{*}name") or "")
