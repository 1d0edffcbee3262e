"""metadata.xsd: our spelling of Appendix D.1 accepts and rejects what the published one does."""

import subprocess
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from muniment.siard.metadata import metadata_schema

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "xsd" / "siard" / "metadata-2.2.xsd"
NAMESPACE = "http://www.bar.admin.ch/xmlns/siard/2/metadata.xsd"
XSI_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"

# Every element of chapter 5 at least once, every choice both ways.
EVERYTHING = etree.fromstring(f"""
<siardArchive xmlns="{NAMESPACE}" version="2.2">
  <dbname>shop</dbname>
  <description>d</description>
  <archiver>a</archiver>
  <archiverContact>c</archiverContact>
  <dataOwner>o</dataOwner>
  <dataOriginTimespan>t</dataOriginTimespan>
  <lobFolder>../lobs/</lobFolder>
  <producerApplication>p</producerApplication>
  <archivalDate>2024-05-06Z</archivalDate>
  <messageDigest><digestType>MD5</digestType><digest>00</digest></messageDigest>
  <messageDigest><digestType> SHA-256 </digestType><digest>00</digest></messageDigest>
  <clientMachine>m</clientMachine>
  <databaseProduct>p</databaseProduct>
  <connection>c</connection>
  <databaseUser>u</databaseUser>
  <schemas>
    <schema>
      <name>public</name>
      <folder>schema0</folder>
      <description>d</description>
      <types>
        <type>
          <name>money</name>
          <category>distinct</category>
          <instantiable>true</instantiable>
          <final>1</final>
          <base>DECIMAL(10, 2)</base>
          <description>d</description>
        </type>
        <type>
          <name>point</name>
          <category>udt</category>
          <underSchema>public</underSchema>
          <underType>thing</underType>
          <instantiable>false</instantiable>
          <final>0</final>
          <attributes>
            <attribute>
              <name>x</name>
              <type>DOUBLE PRECISION</type>
              <typeOriginal>float8</typeOriginal>
              <nullable>true</nullable>
              <defaultValue>0</defaultValue>
              <cardinality>4</cardinality>
              <description>d</description>
            </attribute>
            <attribute>
              <name>y</name>
              <typeSchema>public</typeSchema>
              <typeName>money</typeName>
              <typeOriginal>money</typeOriginal>
              <nullable>false</nullable>
              <defaultValue>0</defaultValue>
              <cardinality>4</cardinality>
              <description>d</description>
            </attribute>
          </attributes>
          <description>d</description>
        </type>
      </types>
      <tables>
        <table>
          <name>orders</name>
          <folder>table0</folder>
          <description>d</description>
          <columns>
            <column>
              <name>scan</name>
              <lobFolder>s0_t0_c1/</lobFolder>
              <type>BLOB(2G)</type>
              <mimeType>image/png</mimeType>
              <typeOriginal>bytea</typeOriginal>
              <nullable>true</nullable>
              <defaultValue>0</defaultValue>
              <description>d</description>
            </column>
            <column>
              <name>place</name>
              <lobFolder>s0_t0_c2/</lobFolder>
              <typeSchema>public</typeSchema>
              <typeName>point</typeName>
              <typeOriginal>point</typeOriginal>
              <fields>
                <field>
                  <name>x</name>
                  <lobFolder>x/</lobFolder>
                  <fields><field><name>x[1]</name></field><field><name>x[2]</name></field></fields>
                  <mimeType>text/plain</mimeType>
                  <description>d</description>
                </field>
              </fields>
              <nullable>false</nullable>
              <cardinality>2</cardinality>
            </column>
          </columns>
          <primaryKey>
            <name>pk</name><description>d</description><column>scan</column><column>place</column>
          </primaryKey>
          <foreignKeys>
            <foreignKey>
              <name>fk</name>
              <referencedSchema>public</referencedSchema>
              <referencedTable>orders</referencedTable>
              <reference><column>scan</column><referenced>scan</referenced></reference>
              <reference><column>place</column><referenced>place</referenced></reference>
              <matchType>FULL</matchType>
              <deleteAction>SET NULL</deleteAction>
              <updateAction>NO ACTION</updateAction>
              <description>d</description>
            </foreignKey>
          </foreignKeys>
          <candidateKeys>
            <candidateKey><name>ck</name><column>scan</column></candidateKey>
          </candidateKeys>
          <checkConstraints>
            <checkConstraint>
              <name>cc</name><condition>1 = 1</condition><description>d</description>
            </checkConstraint>
          </checkConstraints>
          <triggers>
            <trigger>
              <name>audit</name>
              <actionTime>INSTEAD OF</actionTime>
              <triggerEvent>INSERT</triggerEvent>
              <aliasList>NEW AS n</aliasList>
              <triggeredAction>BEGIN END</triggeredAction>
              <description>d</description>
            </trigger>
          </triggers>
          <rows>3</rows>
        </table>
      </tables>
      <views>
        <view>
          <name>v</name>
          <query>SELECT 1</query>
          <queryOriginal>SELECT 1</queryOriginal>
          <description>d</description>
          <columns><column><name>c</name><type>INTEGER</type></column></columns>
          <rows>1</rows>
        </view>
      </views>
      <routines>
        <routine>
          <specificName>f_1</specificName>
          <name>f</name>
          <description>d</description>
          <source>s</source>
          <body>b</body>
          <characteristic>c</characteristic>
          <returnType>INTEGER</returnType>
          <parameters>
            <parameter>
              <name>p</name>
              <mode>IN</mode>
              <type>INTEGER</type>
              <typeOriginal>int4</typeOriginal>
              <cardinality>2</cardinality>
              <description>d</description>
            </parameter>
            <parameter>
              <name>q</name>
              <mode>OUT</mode>
              <typeSchema>public</typeSchema>
              <typeName>money</typeName>
            </parameter>
          </parameters>
        </routine>
      </routines>
    </schema>
  </schemas>
  <users><user><name>u</name><description>d</description></user></users>
  <roles><role><name>r</name><admin>u</admin><description>d</description></role></roles>
  <privileges>
    <privilege>
      <type>SELECT</type>
      <object>orders</object>
      <grantor>u</grantor>
      <grantee>r</grantee>
      <option> GRANT </option>
      <description>d</description>
    </privilege>
  </privileges>
</siardArchive>""")

OURS = etree.XMLSchema(etree.fromstring(metadata_schema()))
POSITIONS = [EVERYTHING.getroottree().getpath(e) for e in EVERYTHING.iter()][1:]


def with_type(text):
    document = deepcopy(EVERYTHING)
    document.find(".//{*}column/{*}type").text = text
    return document


# The schema by itself


def test_every_element_of_the_standard_is_accepted():
    OURS.assertValid(EVERYTHING)


def test_the_example_document_has_every_element_that_the_schema_declares():
    declared = etree.fromstring(metadata_schema()).iter("{http://www.w3.org/2001/XMLSchema}element")
    used = {etree.QName(element).localname for element in EVERYTHING.iter()}
    assert {element.get("name") for element in declared} == used


def test_xmllint_accepts_the_schema_and_the_document(tmp_path):
    (tmp_path / "metadata.xsd").write_bytes(metadata_schema())
    (tmp_path / "metadata.xml").write_bytes(etree.tostring(EVERYTHING))
    command = ["xmllint", "--nonet", "--noout", "--schema", "metadata.xsd", "metadata.xml"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()


GOOD_TYPES = ["INT", "DEC (10 , 2)", "NCHAR VARYING(5)", "CLOB(2 G)", "TIMESTAMP(0)", "TIME(3)"]
GOOD_TYPES += ["INTERVAL YEAR(2) TO MONTH", "INTERVAL SECOND(2, 5)", "TIME WITH TIME ZONE(6)"]


@pytest.mark.parametrize("text", GOOD_TYPES)
def test_a_predefined_type_is_accepted(text):
    assert OURS.validate(with_type(text))


BAD_TYPES = ["", "int", "TEXT", "TIME(0)", "CHAR(0)", "VARCHAR(2K)", "NCHAR  VARYING(5)", " INT"]
BAD_TYPES += ["INTERVAL SECOND TO SECOND", "INTERVAL YEAR(0)", "TIMESTAMP(6) WITH TIME ZONE"]


@pytest.mark.parametrize("text", BAD_TYPES)
def test_another_type_is_rejected(text):
    assert not OURS.validate(with_type(text))


@pytest.mark.parametrize("version", ["2.1", "2.3", "2.2.1", ""])
def test_another_version_is_rejected(version):
    document = deepcopy(EVERYTHING)
    document.set("version", version)
    assert not OURS.validate(document)


def test_a_version_is_mandatory_and_may_have_blanks_around_it():
    document = deepcopy(EVERYTHING)
    document.set("version", " 2.2\n")
    assert OURS.validate(document)
    del document.attrib["version"]
    assert not OURS.validate(document)


# The schema beside the published one

beside = pytest.mark.skipif(not PUBLISHED.exists(), reason="the schema is not beside the project")


@pytest.fixture(scope="module")
def agree():
    published = etree.XMLSchema(etree.parse(PUBLISHED))

    def agree(document):
        return OURS.validate(document) == published.validate(document)

    return agree


FIELDS = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"]
NAMES = ["BIGINT", "BINARY", "BIT", "BLOB", "BOOLEAN", "CHAR", "CHARACTER", "CLOB", "DATALINK"]
NAMES += ["DATE", "DEC", "DECIMAL", "FLOAT", "INT", "INTEGER", "INTERVAL", "NCHAR", "NCLOB"]
NAMES += ["NUMERIC", "REAL", "ROW", "SMALLINT", "TIME", "TIMESTAMP", "VARBINARY", "VARCHAR", "XML"]
NAMES += ["DOUBLE PRECISION", "CHARACTER VARYING", "CHAR VARYING", "CHARACTER LARGE OBJECT"]
NAMES += ["CHAR LARGE OBJECT", "NATIONAL CHARACTER", "NATIONAL CHAR", "NATIONAL CHARACTER VARYING"]
NAMES += ["NATIONAL CHAR VARYING", "NCHAR VARYING", "NATIONAL CHARACTER LARGE OBJECT"]
NAMES += ["NATIONAL CHAR LARGE OBJECT", "NCHAR LARGE OBJECT", "BINARY VARYING"]
NAMES += ["BINARY LARGE OBJECT", "TIME WITH TIME ZONE", "TIME WITHOUT TIME ZONE"]
NAMES += ["TIMESTAMP WITH TIME ZONE"]
SIZES = ["", "(1)", "(5)", "(12)", " ( 5 )", "\t(\n5  )", "(0)", "(05)", "()", "(5", "5", "(٣)"]
SIZES += ["(5,2)", "( 5 , 12 )", "(5,0)", "(5,)", "(5K)", "(12M)", "(5G)", "(5T)", "(5 K )", "(K)"]
SIZES += [" ", "  (5)", "(5) ", "(-5)", "(5) WITH TIME ZONE"]
BLANKS = [" ", "  ", "\n", "", "_"]


def all_agree(agree, texts):
    document = deepcopy(EVERYTHING)
    column_type = document.find(".//{*}column/{*}type")
    for column_type.text in texts:
        assert agree(document), column_type.text


@pytest.mark.samples
@beside
@pytest.mark.parametrize("name", NAMES)
def test_both_schemas_agree_on_every_type(agree, name):
    names = {name.replace(" ", blank) for blank in BLANKS} | {name.lower(), f" {name}", name[1:]}
    all_agree(agree, [f"{spelt}{size}" for spelt in names for size in SIZES])


@pytest.mark.samples
@beside
@pytest.mark.parametrize("start", FIELDS)
def test_both_schemas_agree_on_every_interval(agree, start):
    sizes = ["", "(5)", "(12)", " ( 3 )", "(0)", "(3,2)", "(3, 12 )", "(3,0)"]
    ends = ["", *(f"{blank}TO{blank}{end}" for end in FIELDS for blank in BLANKS)]
    leads = [f"INTERVAL{blank}{start}{size}" for blank in BLANKS for size in sizes]
    all_agree(agree, [f"{lead}{end}{last}" for lead in leads for end in ends for last in sizes[:6]])


WORDS = st.sampled_from([*" ".join(NAMES).split(), *FIELDS, *SIZES, *BLANKS, "TO", "OF"])


@pytest.mark.samples
@beside
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=6).map(" ".join), st.lists(WORDS).map("".join)))
def test_both_schemas_agree_on_words_in_any_order(agree, text):
    all_agree(agree, [text])


TEXTS = ["", " ", "x", "0", "-1", "1.5", "true", "TRUE", "2024-02-30", "2024-05-06", "a b", "a\\b"]
TEXTS += ["%zz", "[", "1a", "aa", "a_b", "MD5", "SHA-512", "udt", "row", "FULL", " FULL", "CASCADE"]
TEXTS += ["SHA-1", " udt ", "SIMPLE", "PARTIAL", "SET DEFAULT", "a5", "a-", "9a"]
TEXTS += ["SET  NULL", "RESTRICT", "BEFORE", "AFTER", "INSTEAD  OF", "ADMIN", "GRANT", "NO ACTION"]


def drop(element):
    element.getparent().remove(element)


def drop_all_alike(element):
    for sibling in element.getparent().findall(element.tag):
        drop(sibling)


def duplicate(element):
    element.addnext(deepcopy(element))


def swap(element):
    if element.getnext() is not None:
        element.getnext().addnext(element)


def swap_over_two(element):
    swap(element)
    swap(element)


def empty(element):
    for child in list(element):
        element.remove(child)
    element.text = None


def rename(element):
    element.tag = f"{{{NAMESPACE}}}{'description' if 'name' in element.tag else 'name'}"


def leave_the_namespace(element):
    element.tag = etree.QName(element).localname


def add_text(element):
    element.text = "x"


def add_attribute(element):
    element.set("version", "2.2")


def become_a_clob(element):
    element.set(XSI_TYPE, "clobType")
    element.set("file", "content/x.txt")
    element.set("length", "5")


MUTATIONS = [drop, duplicate, swap, swap_over_two, empty, rename, leave_the_namespace, add_text]
MUTATIONS += [add_attribute, become_a_clob, drop_all_alike]


def mutated(*changes):
    document = deepcopy(EVERYTHING)
    elements = [document.getroottree().xpath(position)[0] for position, _ in changes]
    for element, (_, mutation) in zip(elements, changes, strict=True):
        if element.getparent() is not None:  # not dropped by an earlier change
            mutation(element)
    return document


@pytest.mark.samples
@beside
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_both_schemas_agree_on_every_change_of_one_element(agree, mutation):
    for position in POSITIONS:
        assert agree(mutated((position, mutation))), position


@pytest.mark.samples
@beside
@pytest.mark.parametrize("text", TEXTS)
def test_both_schemas_agree_on_every_text_of_every_element(agree, text):
    document = deepcopy(EVERYTHING)
    for element in document.iter():
        if not len(element):
            before, element.text = element.text, text
            assert agree(document), element.tag
            element.text = before


@pytest.mark.samples
@beside
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(POSITIONS), st.sampled_from(MUTATIONS)), max_size=4))
def test_both_schemas_agree_on_several_changes_at_once(agree, changes):
    assert agree(mutated(*changes))


CELLS = [
    {},
    {"file": "a.bin", "length": "3", "digestType": " MD5 ", "digest": "x", "dlurlpathonly": "y"},
    {"length": "x"},
    {"digestType": "CRC32"},
    {"other": "x"},
]


@pytest.mark.samples
@beside
@pytest.mark.parametrize("name", ["clobType", "blobType"])
def test_both_schemas_agree_on_the_cells_of_large_objects(tmp_path, name):
    (tmp_path / "ours.xsd").write_bytes(metadata_schema())
    schemas = [cell_schema(tmp_path / "ours.xsd", name), cell_schema(PUBLISHED, name)]
    verdicts = [[schema.validate(cell) for cell in cells()] for schema in schemas]
    assert verdicts[0] == verdicts[1]
    assert set(verdicts[0]) == {True, False}


def cell_schema(location, name):
    return etree.XMLSchema(
        etree.fromstring(f"""
        <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:m="{NAMESPACE}">
          <xs:import namespace="{NAMESPACE}" schemaLocation="{location.as_uri()}"/>
          <xs:element name="c1" type="m:{name}"/>
        </xs:schema>""")
    )


def cells():
    for attributes in CELLS:
        for text in ("", "0aFF", "0", "hello"):
            cell = etree.Element("c1", attributes)
            cell.text = text
            yield cell
