"""metadata.xml: what is written, what is read from other writers, and what is refused."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from muniment.errors import SiardError
from muniment.siard.metadata import format_metadata, metadata_schema, parse_metadata
from muniment.siard.versions import CURRENT, VERSIONS, DigestStyle, find_version
from muniment.sql import model
from muniment.sql.types import NamedType, PredefinedType

SAMPLES = Path(__file__).parents[2].parent / "shared" / "samples" / "siard"
SCHEMA = etree.XMLSchema(etree.fromstring(metadata_schema()))
NAMESPACE = {"s": CURRENT.metadata_namespace}

COLUMN = model.Column("id", PredefinedType("INTEGER"), nullable=False)
TABLE = model.Table("orders", "table0", (COLUMN,), rows=3)
DATABASE = model.Database(
    "shop",
    data_owner="the shop",
    data_origin_timespan="1999-2024",
    archival_date="2024-05-06",
    schemas=(model.Schema("public", "schema0", tables=(TABLE,)),),
)


def with_table(**parts):
    table = replace(TABLE, **parts)
    return replace(DATABASE, schemas=(model.Schema("public", "schema0", tables=(table,)),))


def with_column(**parts):
    return with_table(columns=(replace(COLUMN, **parts),))


def element(data, path):
    return etree.fromstring(data).find(".//" + re.sub(r"(\w+)", r"s:\1", path), NAMESPACE)


def only_column(data):
    ((_, table),) = parse_metadata(data).tables()
    return table.columns[0]


def document(body, version="2.2", namespace=CURRENT.metadata_namespace):
    return f'<siardArchive xmlns="{namespace}" version="{version}">{body}</siardArchive>'.encode()


def column_document(column, version="2.2"):
    table = f"<table><name>t</name><folder>table0</folder><columns>{column}</columns></table>"
    schema = f"<schema><name>s</name><folder>schema0</folder><tables>{table}</tables></schema>"
    return document(f"<schemas>{schema}</schemas>", version)


def typed(text, original=""):
    return only_column(column_document(f"<column><type>{text}</type>{original}</column>"))


# Writing


def test_metadata_starts_as_siard_2_2_and_is_indented_by_two_spaces():
    lines = format_metadata(DATABASE).decode().splitlines()
    assert lines[0] == "<?xml version='1.0' encoding='UTF-8'?>"
    assert 'version="2.2"' in lines[1]
    assert f'xsi:schemaLocation="{CURRENT.metadata_namespace} metadata.xsd"' in lines[1]
    assert lines[2] == "  <dbname>shop</dbname>"
    assert lines[-1] == "</siardArchive>"


def test_metadata_is_written_as_2_2_whatever_was_read():
    assert parse_metadata(format_metadata(replace(DATABASE, version="1.0"))).version == "2.2"


def test_missing_and_empty_descriptions_stay_apart():
    for description in (None, ""):
        data = format_metadata(replace(DATABASE, description=description))
        assert (element(data, "description") is None) == (description is None)
        assert parse_metadata(data).description == description


@pytest.mark.parametrize("name", ["dbname", "data_owner", "data_origin_timespan"])
def test_an_empty_mandatory_text_is_written_as_unspecified(name):
    data = format_metadata(replace(DATABASE, **{name: ""}))
    assert getattr(parse_metadata(data), name) == "unspecified"


def test_an_empty_list_of_users_is_written_and_one_of_roles_is_not():
    data = format_metadata(DATABASE)
    assert element(data, "users") is not None
    assert element(data, "roles") is None


def test_unknown_nullability_is_left_out():
    assert element(format_metadata(with_column(nullable=None)), "column/nullable") is None
    assert element(format_metadata(with_column(nullable=True)), "column/nullable").text == "true"


def test_line_feeds_and_tabs_of_sql_stay_readable():
    query = "SELECT a,\n\tb\nFROM t"
    view = model.View("v", (COLUMN,), query=query)
    schema = model.Schema("public", "schema0", views=(view,))
    assert query.encode() in format_metadata(replace(DATABASE, schemas=(schema,)))


def test_what_xml_would_change_is_escaped():
    data = format_metadata(replace(DATABASE, description=" C:\\x\r\n\x00\x85a  b\ud800"))
    expected = r"\u0020C:\u005cx\u000d" + "\n" + r"\u0000\u0085a \u0020b\ud800"
    assert element(data, "description").text == expected


def test_a_type_is_written_in_its_short_form():
    data = format_metadata(with_column(type=PredefinedType("VARCHAR", 20)))
    assert element(data, "column/type").text == "VARCHAR(20)"


@pytest.mark.parametrize("name", ["TIME", "TIME WITH TIME ZONE"])
def test_a_time_of_precision_0_is_written_without_it(name):
    data = format_metadata(with_column(type=PredefinedType(name, 0)))
    assert element(data, "column/type").text == name


def test_a_timestamp_of_precision_0_keeps_it():
    data = format_metadata(with_column(type=PredefinedType("TIMESTAMP", 0)))
    assert element(data, "column/type").text == "TIMESTAMP(0)"


def test_a_type_of_the_same_schema_is_named_without_one():
    data = format_metadata(with_column(type=NamedType("", "money")))
    assert element(data, "column/typeSchema") is None
    assert only_column(data).type == NamedType("", "money")


def test_a_lob_folder_is_url_encoded():
    data = format_metadata(replace(DATABASE, lob_folder="../Ærø lobs/a%20b/"))
    assert parse_metadata(data).lob_folder == "../%C3%86r%C3%B8%20lobs/a%20b/"


def foreign_key(**parts):
    references = (model.Reference("id", "id"),)
    return model.ForeignKey("fk", "public", "customers", references, **parts)


def trigger(action_time):
    return model.Trigger("audit", action_time, "INSERT", "BEGIN END")


@pytest.mark.parametrize(
    ("database", "place", "culprit"),
    [
        (with_table(foreign_keys=(foreign_key(match_type="FUZZY"),)), "orders.fk", "FUZZY"),
        (with_table(foreign_keys=(foreign_key(delete_action="VANISH"),)), "orders.fk", "VANISH"),
        (with_table(foreign_keys=(foreign_key(update_action="x\x00"),)), "orders.fk", "u0000"),
        (with_table(triggers=(trigger("SOMETIMES"),)), "trigger public.orders.audit", "SOMETIMES"),
        (with_table(triggers=(trigger(""),)), "trigger public.orders.audit", "actionTime"),
        (with_table(folder="0table"), "table public.orders", "0table"),
        (with_table(columns=()), "table public.orders", "columns"),
        (with_column(type=PredefinedType("CHAR", 0)), "public.orders.id", "CHAR(0)"),
        (with_column(type=PredefinedType("SERIAL")), "public.orders.id", "SERIAL"),
        (with_column(type=NamedType("", "t"), mime_type="a/b"), "public.orders.id", "mimeType"),
        (with_column(lob_folder="100%"), "public.orders.id", "100%"),
        (replace(DATABASE, archival_date=""), "the database", "archivalDate"),
        (replace(DATABASE, schemas=()), "the database", "schemas"),
        (
            replace(DATABASE, message_digests=(model.MessageDigest("CRC32", "00"),)),
            "the database",
            "CRC32",
        ),
    ],
)
def test_what_siard_cannot_hold_is_refused_with_its_place(database, place, culprit):
    with pytest.raises(SiardError) as refused:
        format_metadata(database)
    assert place in str(refused.value)
    assert culprit in str(refused.value)
    assert "{" not in str(refused.value)


# Reading


@pytest.mark.parametrize("namespace", ["", "urn:nobody", "http://www.bar.admin.ch/xmlns/siard/2.2"])
def test_any_namespace_is_read(namespace):
    assert parse_metadata(document("<dbname>x</dbname>", namespace=namespace)).dbname == "x"


def test_any_prefix_is_read():
    data = b'<p:siardArchive xmlns:p="urn:x" version="2.1"><p:dbname>x</p:dbname></p:siardArchive>'
    assert parse_metadata(data).dbname == "x"


def test_a_byte_order_mark_and_utf_16_are_read():
    text = '<siardArchive version="2.1"><dbname>é</dbname></siardArchive>'
    assert parse_metadata(b"\xef\xbb\xbf" + text.encode()).dbname == "é"
    assert parse_metadata(text.encode("utf-16")).dbname == "é"


def test_order_comments_and_unknown_elements_do_not_matter():
    body = "<dataOwner>o</dataOwner><x>?</x><dbname>a<!-- c -->b<?pi?>c</dbname>"
    database = parse_metadata(document(body))
    assert (database.dbname, database.data_owner) == ("abc", "o")


def test_an_empty_archive_reads_as_an_empty_database():
    assert parse_metadata(document("")).schemas == ()


def test_lists_that_come_in_two_parts_are_read_whole():
    users = "<users><user><name>{}</name></user></users>"
    database = parse_metadata(document(users.format("a") + users.format("b")))
    assert [user.name for user in database.users] == ["a", "b"]


def test_a_backslash_that_another_writer_left_alone_stays_itself():
    database = parse_metadata(document(r"<dbname>C:\temp\u0020x\u12</dbname>"))
    assert database.dbname == "C:\\temp x\\u12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("character varying ( 20 )", PredefinedType("VARCHAR", 20)),
        ("\n  DEC(10, 2)\n", PredefinedType("DECIMAL", 10, 2)),
        ("INTERVAL SECOND(2, 5)", PredefinedType("INTERVAL", interval="SECOND(2,5)")),
        ("NCLOB(4G)", PredefinedType("NCLOB", 4 << 30)),
    ],
)
def test_every_spelling_of_a_type_is_read(text, expected):
    column = typed(text)
    assert (column.type, column.type_original) == (expected, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GEOMETRY(Point)", PredefinedType("VARCHAR")),
        ("BIGINT(20)", PredefinedType("BIGINT")),
        ("TIME(0)", PredefinedType("TIME")),
        ("CHAR(0)", PredefinedType("CHAR")),
        ("INTERVAL DAY TO SECOND(0)", PredefinedType("INTERVAL", interval="DAY TO SECOND")),
        ("INTERVAL SECOND TO SECOND", PredefinedType("VARCHAR")),
        ("BIT VARYING(12)", PredefinedType("VARBINARY", 2)),
        ("bit ( 8 )", PredefinedType("BINARY", 1)),
        ("BIT", PredefinedType("BINARY")),
        ("CHAR(" + "9" * 5000 + ")", PredefinedType("VARCHAR")),
    ],
)
def test_a_type_that_is_not_sql_2008_is_kept_as_the_original_type(text, expected):
    column = typed(text)
    assert (column.type, column.type_original) == (expected, text)
    SCHEMA.assertValid(etree.fromstring(format_metadata(with_column(type=column.type))))


def test_an_original_type_that_is_there_is_not_replaced():
    original = "<typeOriginal>sdo_geometry</typeOriginal>"
    assert typed("GEOMETRY", original).type_original == "sdo_geometry"
    assert typed("GEOMETRY", "<typeOriginal/>").type_original == "GEOMETRY"


def test_words_of_a_list_are_read_in_any_case():
    key = "<foreignKey><deleteAction> set  null </deleteAction><matchType/></foreignKey>"
    table = f"<table><foreignKeys>{key}</foreignKeys></table>"
    data = document(f"<schemas><schema><tables>{table}</tables></schema></schemas>")
    ((_, table),) = parse_metadata(data).tables()
    assert table.foreign_keys[0].delete_action == "SET NULL"
    assert table.foreign_keys[0].match_type is None


@pytest.mark.parametrize(("text", "expected"), [("1", True), (" FALSE ", False), ("", None)])
def test_booleans_are_read_in_every_spelling(text, expected):
    column = only_column(column_document(f"<column><nullable>{text}</nullable></column>"))
    assert column.nullable is expected


def test_a_number_that_is_none_is_refused_with_its_line():
    data = column_document("\n\n<column><cardinality>many</cardinality></column>")
    with pytest.raises(SiardError, match=r"line 3: cardinality cannot be 'many'"):
        parse_metadata(data)


# Earlier versions


def test_siard_1_0_names_its_digest_in_front():
    digest = document("<messageDigest>MD53FF5BB03779F7557F349A101E20925D6</messageDigest>", "1.0")
    found = model.MessageDigest("MD5", "3FF5BB03779F7557F349A101E20925D6")
    assert parse_metadata(digest).message_digests == (found,)


def test_siard_2_0_may_put_a_colon_after_the_name():
    digest = document(f"<messageDigest>SHA-256:{'ab' * 32}</messageDigest>", "2.0")
    found = model.MessageDigest("SHA-256", "ab" * 32)
    assert parse_metadata(digest).message_digests == (found,)


def test_an_empty_digest_of_siard_1_0_is_none():
    assert parse_metadata(document("<messageDigest/>", "1.0")).message_digests == ()


def test_a_digest_type_in_small_letters_is_read():
    body = "<messageDigest><digestType>md5</digestType><digest>ab</digest></messageDigest>"
    assert parse_metadata(document(body)).message_digests == (model.MessageDigest("MD5", "ab"),)


def test_the_folder_of_a_siard_1_0_column_lies_inside_and_is_no_lob_folder():
    column = "<column><name>c</name><folder>lob1</folder><type>BLOB</type></column>"
    assert only_column(column_document(column, "1.0")).lob_folder is None


def test_a_siard_1_0_routine_is_specific_by_its_name():
    routine = "<routines><routine><name>f</name></routine></routines>"
    data = document(f"<schemas><schema>{routine}</schema></schemas>", "1.0")
    assert parse_metadata(data).schemas[0].routines[0].specific_name == "f"


def test_siard_1_0_text_is_read_without_the_indentation_around_it():
    body = "<databaseProduct>\n    MS Access\n  </databaseProduct>"
    assert parse_metadata(document(body, "1.0")).database_product == "MS Access"
    assert parse_metadata(document(body, "2.1")).database_product == "\n    MS Access\n  "


def test_a_version_is_found_by_number_or_by_namespace():
    for version in VERSIONS:
        assert find_version(version.number) is version
    assert (
        find_version(None, "http://www.bar.admin.ch/xmlns/siard/2.0/metadata.xsd").number == "2.0"
    )
    assert find_version(None, CURRENT.metadata_namespace) is CURRENT


def test_only_siard_1_0_has_no_version_folder_and_digests_changed_after_2_0():
    assert [version.folder is None for version in VERSIONS] == [True, False, False, False]
    prefixed = [v.number for v in VERSIONS if v.digest_style is DigestStyle.PREFIXED]
    assert prefixed == ["1.0", "2.0"]


@pytest.mark.parametrize("version", ["3.0", "", "22", "2.22"])
def test_an_unknown_version_is_refused(version):
    with pytest.raises(SiardError, match=re.escape("reads 1.0, 2.0, 2.1, 2.2")):
        parse_metadata(document("", version))


# Untrusted input

BOMB = (
    b'<!DOCTYPE siardArchive [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    b'<siardArchive version="2.2"><dbname>&b;</dbname></siardArchive>'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_doctype_is_refused(encoding):
    with pytest.raises(SiardError, match="DOCTYPE"):
        parse_metadata(BOMB.decode().encode(encoding))


def test_an_entity_without_doctype_is_refused():
    with pytest.raises(SiardError, match="line 1"):
        parse_metadata(document("<dbname>&secret;</dbname>"))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"<siardArchive version='2.2'>\n<dbname>"])
def test_malformed_xml_is_refused_with_its_place_and_a_remedy(data):
    with pytest.raises(SiardError, match=r"line \d+, column \d+.*damaged"):
        parse_metadata(data)


def test_the_byte_at_which_xml_breaks_is_named():
    data = document("<dbname>shop</dbname>")
    at = data.index(b"shop")
    with pytest.raises(SiardError, match=f"at byte {at}:"):
        parse_metadata(data[:at] + b"\x01" + data[at:])


def test_another_kind_of_document_is_refused():
    with pytest.raises(SiardError, match="<html> instead of <siardArchive>"):
        parse_metadata(b"<html/>")


def test_fields_nested_without_end_are_refused():
    deep = "<fields><field>" * 900 + "</field></fields>" * 900
    with pytest.raises(SiardError, match="levels deep"):
        parse_metadata(column_document(f"<column>{deep}</column>"))


def test_a_text_longer_than_ten_megabytes_is_read():
    database = replace(DATABASE, description="x" * 11_000_000)
    assert parse_metadata(format_metadata(database)) == database


# Archives of other writers

ARCHIVES = sorted([*SAMPLES.glob("main/*.siard"), *SAMPLES.glob("ext/*/*.siard")])


@pytest.mark.samples
@pytest.mark.skipif(not ARCHIVES, reason="the samples are not beside the project")
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_metadata_of_other_writers_becomes_siard_2_2(archive):
    with zipfile.ZipFile(archive) as package:
        theirs = package.read("header/metadata.xml")
    database = parse_metadata(theirs)
    ours = format_metadata(database)
    SCHEMA.assertValid(etree.fromstring(ours))
    assert parse_metadata(ours) == replace(database, version="2.2")
    for name in ("schema", "table", "column", "view", "routine", "privilege", "reference"):
        assert count(ours, name) == count(theirs, name)


def count(data, name):
    return len(etree.fromstring(data).findall(f".//{{*}}{name}"))
