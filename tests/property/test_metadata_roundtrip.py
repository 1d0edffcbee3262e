"""Laws of metadata.xml: it says exactly what the database is, and says it in valid XML."""

import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from strategies import databases, predefined_types, texts

from muniment.errors import SiardError
from muniment.siard.metadata import format_metadata, metadata_schema, parse_metadata
from muniment.siard.text import escape_metadata, unescape
from muniment.sql.model import Database, Schema
from muniment.sql.types import parse_type

SCHEMA = etree.XMLSchema(etree.fromstring(metadata_schema()))

# A database is a large value, and its size is the point.
whole_databases = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(texts())
def test_escaped_text_reads_back_unchanged(text):
    assert unescape(escape_metadata(text)) == text


ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@given(texts())
def test_escaped_text_passes_through_xml_unchanged(text):
    written = f"<t>{escape_metadata(text).translate(ENTITIES)}</t>".encode()
    assert (etree.fromstring(written).text or "") == escape_metadata(text)


@given(texts())
def test_a_reader_that_trims_or_joins_spaces_loses_nothing(text):
    escaped = escape_metadata(text)
    assert escaped.strip(" \t\r\n") == escaped
    assert "  " not in escaped


@given(st.text(alphabet=st.characters(exclude_characters="\\")))
def test_text_without_a_backslash_was_never_escaped(text):
    assert unescape(text) == text


@given(predefined_types())
def test_every_type_reads_back_from_its_text(predefined):
    assert parse_type(str(predefined)) == predefined


@whole_databases
@given(databases())
def test_metadata_reads_back_exactly(database):
    assert parse_metadata(format_metadata(database)) == database


@whole_databases
@given(databases())
def test_metadata_is_valid_for_lxml(database):
    SCHEMA.assertValid(etree.fromstring(format_metadata(database)))


@settings(whole_databases, max_examples=20)
@given(databases())
def test_metadata_is_valid_for_xmllint(tmp_path_factory, database):
    schema = tmp_path_factory.getbasetemp() / "metadata.xsd"
    schema.write_bytes(metadata_schema())
    command = ["xmllint", "--nonet", "--noout", "--schema", str(schema), "-"]
    checked = subprocess.run(command, input=format_metadata(database), capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()


@settings(whole_databases, max_examples=20)
@given(databases())
def test_the_same_database_gives_the_same_bytes(database):
    data = format_metadata(database)
    assert format_metadata(parse_metadata(data)) == data


SCHEMA_0 = Schema("s", "schema0")
SMALL = format_metadata(Database("x", archival_date="2024-05-06", schemas=(SCHEMA_0,)))


@given(st.one_of(st.binary(), st.text().map(str.encode)), st.integers(0, len(SMALL)), st.booleans())
def test_any_bytes_are_a_database_or_a_siard_error(noise, at, whole):
    damaged = noise if whole else SMALL[:at] + noise + SMALL[at:]
    try:
        assert isinstance(parse_metadata(damaged), Database)
    except SiardError as error:
        assert str(error)
