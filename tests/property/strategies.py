"""Databases to test with: every level of chapter 5, and text that is hard on XML."""

from __future__ import annotations

import string

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from muniment.sql import model
from muniment.sql.types import NamedType, PredefinedType

# What XML readers drop, normalise or forbid, and what looks like an escape without being one.
_PIECES = st.one_of(
    st.sampled_from([" ", "  ", "\t", "\n", "\r", "\r\n", "\x85", "\xa0", "\u2028", "\ufeff"]),
    st.sampled_from(["\\", "\\u", "\\u00", "\\u0041", "\\\\u0020", "\\U0041", "\\n"]),
    st.sampled_from(["\x00", "\x08", "\x0b", "\x0c", "\x1f", "\x7f", "\x9f", "\ufffe", "\uffff"]),
    st.sampled_from(["\ud800", "\udfff", "\ud83d\ude00", "\U0001f600", "\U0010ffff", "é", "字"]),
    st.sampled_from(["<", ">", "&", '"', "'", "]]>", "&amp;", "<!--", "<?xml?>"]),
)


def texts(min_size: int = 0) -> SearchStrategy[str]:
    """Any text at all, lone surrogates and control characters included."""
    pieces = st.one_of(_PIECES, st.text(max_size=4))
    joined = st.lists(pieces, min_size=min_size, max_size=5).map("".join)
    return joined.filter(lambda text: len(text) >= min_size)


def predefined_types() -> SearchStrategy[PredefinedType]:
    """Every predefined type, with and without its parameters."""
    lengths = st.one_of(st.none(), st.integers(1, 1 << 40))
    plain = ["SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "BOOLEAN", "XML", "DATE"]
    sized = ["FLOAT", "CHAR", "VARCHAR", "CLOB", "NCHAR", "NCHAR VARYING", "NCLOB", "BINARY"]
    sized += ["VARBINARY", "BLOB", "TIME", "TIME WITH TIME ZONE"]
    return st.one_of(
        st.builds(PredefinedType, st.sampled_from([*plain, "DATALINK"])),
        st.builds(PredefinedType, st.sampled_from(sized), lengths),
        st.builds(
            PredefinedType,
            st.sampled_from(["NUMERIC", "DECIMAL"]),
            st.integers(1, 40),
            st.one_of(st.none(), st.integers(0, 40)),
        ),
        st.builds(
            PredefinedType,
            st.sampled_from(["TIMESTAMP", "TIMESTAMP WITH TIME ZONE"]),
            st.one_of(st.none(), st.integers(0, 12)),
        ),
        st.builds(PredefinedType, st.just("INTERVAL"), interval=_intervals()),
    )


def _intervals() -> SearchStrategy[str]:
    size = st.one_of(st.just(""), st.integers(1, 12).map(lambda digits: f"({digits})"))
    start = st.sampled_from(["YEAR", "MONTH", "DAY", "HOUR", "MINUTE"])
    end = st.sampled_from(["MONTH", "DAY", "HOUR", "MINUTE", "SECOND"])
    return st.one_of(
        st.builds("{}{}".format, start, size),
        st.builds("{}{} TO {}{}".format, start, size, end, size),
        st.builds("SECOND({},{})".format, st.integers(1, 9), st.integers(0, 9)),
    )


def types() -> SearchStrategy[PredefinedType | NamedType]:
    """A predefined type, or the name of one of the archive's own."""
    return st.one_of(predefined_types(), st.builds(NamedType, texts(), texts()))


_OPTIONAL_TEXT = st.one_of(st.none(), texts())
_FLAG = st.one_of(st.none(), st.booleans())
_COUNT = st.one_of(st.none(), st.integers(0, 1 << 70))
_FOLDER = st.from_regex(r"\A[a-zA-Z][a-zA-Z0-9][a-zA-Z0-9_]{0,6}\Z")
_URI = st.one_of(
    st.none(),
    st.sampled_from(["", "../lobs/", "file:///d:/sips/sip%201.zip/", "./x_lobs/?a=b#c"]),
    st.text(string.ascii_letters + string.digits + "-._~/", max_size=8),
)


def _some(items: SearchStrategy[object], least: int = 0) -> SearchStrategy[tuple[object, ...]]:
    return st.lists(items, min_size=least, max_size=max(least, 2)).map(tuple)


def _fields(depth: int = 2) -> SearchStrategy[tuple[object, ...]]:
    if not depth:
        return st.just(())
    fields = st.builds(
        model.Field, texts(), _URI, st.deferred(lambda: _fields(depth - 1)), *[_OPTIONAL_TEXT] * 2
    )
    return st.one_of(st.just(()), _some(fields))


def columns() -> SearchStrategy[model.Column]:
    """A column of any type; only one of a predefined type has a MIME type (5.6)."""
    parts = {
        "name": texts(),
        "type_original": _OPTIONAL_TEXT,
        "nullable": _FLAG,
        "default_value": _OPTIONAL_TEXT,
        "cardinality": _COUNT,
        "description": _OPTIONAL_TEXT,
        "lob_folder": _URI,
        "fields": _fields(),
    }
    named = st.builds(NamedType, texts(), texts())
    return st.one_of(
        st.builds(model.Column, type=predefined_types(), mime_type=_OPTIONAL_TEXT, **parts),
        st.builds(model.Column, type=named, **parts),
    )


def _user_types() -> SearchStrategy[model.UserType]:
    attribute = st.builds(
        model.Attribute,
        texts(),
        types(),
        _OPTIONAL_TEXT,
        _FLAG,
        _OPTIONAL_TEXT,
        _COUNT,
        _OPTIONAL_TEXT,
    )
    return st.builds(
        model.UserType,
        texts(),
        st.sampled_from(["distinct", "udt"]),
        _OPTIONAL_TEXT,
        _OPTIONAL_TEXT,
        st.booleans(),
        st.booleans(),
        st.one_of(st.none(), predefined_types()),
        _some(attribute),
        _OPTIONAL_TEXT,
    )


def _unique_keys() -> SearchStrategy[model.UniqueKey]:
    return st.builds(model.UniqueKey, texts(), _some(texts(), least=1), _OPTIONAL_TEXT)


def _foreign_keys() -> SearchStrategy[model.ForeignKey]:
    action = st.sampled_from([None, "CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"])
    return st.builds(
        model.ForeignKey,
        texts(),
        texts(),
        texts(),
        _some(st.builds(model.Reference, texts(), texts()), least=1),
        st.sampled_from([None, "FULL", "PARTIAL", "SIMPLE"]),
        action,
        action,
        _OPTIONAL_TEXT,
    )


def _triggers() -> SearchStrategy[model.Trigger]:
    times = st.sampled_from(["BEFORE", "AFTER", "INSTEAD OF"])
    return st.builds(
        model.Trigger, texts(), times, texts(), texts(), _OPTIONAL_TEXT, _OPTIONAL_TEXT
    )


def tables() -> SearchStrategy[model.Table]:
    """A table with keys, constraints and triggers; they need not fit its columns."""
    return st.builds(
        model.Table,
        texts(),
        _FOLDER,
        _some(columns(), least=1),
        st.integers(0, 1 << 70),
        _OPTIONAL_TEXT,
        st.one_of(st.none(), _unique_keys()),
        _some(_foreign_keys()),
        _some(_unique_keys()),
        _some(st.builds(model.CheckConstraint, texts(), texts(), _OPTIONAL_TEXT)),
        _some(_triggers()),
    )


def _views() -> SearchStrategy[model.View]:
    return st.builds(model.View, texts(), _some(columns(), least=1), *[_OPTIONAL_TEXT] * 3, _COUNT)


def _routines() -> SearchStrategy[model.Routine]:
    parameter = st.builds(
        model.Parameter, texts(), texts(), types(), _OPTIONAL_TEXT, _COUNT, _OPTIONAL_TEXT
    )
    return st.builds(model.Routine, texts(), texts(), *[_OPTIONAL_TEXT] * 5, _some(parameter))


def _schemas() -> SearchStrategy[model.Schema]:
    return st.builds(
        model.Schema,
        texts(),
        _FOLDER,
        _OPTIONAL_TEXT,
        _some(_user_types()),
        _some(tables()),
        _some(_views()),
        _some(_routines()),
    )


def _privileges() -> SearchStrategy[model.Privilege]:
    option = st.sampled_from([None, "ADMIN", "GRANT"])
    return st.builds(
        model.Privilege, texts(), texts(), texts(), _OPTIONAL_TEXT, option, _OPTIONAL_TEXT
    )


def databases() -> SearchStrategy[model.Database]:
    """A whole database that SIARD 2.2 can hold."""
    dates = st.builds("{}{}".format, st.dates(), st.sampled_from(["", "Z", "+02:00"]))
    digest_types = st.sampled_from(["MD5", "SHA-1", "SHA-256"])
    optional = ["description", "archiver", "archiver_contact", "producer_application"]
    optional += ["client_machine", "database_product", "connection", "database_user"]
    return st.builds(
        model.Database,
        texts(min_size=1),
        texts(min_size=1),
        texts(min_size=1),
        dates,
        lob_folder=_URI,
        message_digests=_some(st.builds(model.MessageDigest, digest_types, texts())),
        schemas=_some(_schemas(), least=1),
        users=_some(st.builds(model.User, texts(), _OPTIONAL_TEXT)),
        roles=_some(st.builds(model.Role, texts(), texts(), _OPTIONAL_TEXT)),
        privileges=_some(_privileges()),
        **dict.fromkeys(optional, _OPTIONAL_TEXT),
    )
