"""Everything that PostgreSQL has comes back: definitions by pg_dump's word, contents by compare's."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment import transfer
from muniment.compare import compare
from muniment.siard import open_siard, validate
from muniment.sql.model import Database
from muniment.sql.original import split_original
from muniment.sql.selection import Selection
from servers.postgresql import Cluster

FEATURES = Path(__file__).with_name("postgresql_features.sql").read_text()
RICHES = Path(__file__).with_name("postgresql_riches.sql").read_text()
DEPTHS = Path(__file__).with_name("postgresql_depths.sql").read_text()
VERSIONS = Path(__file__).with_name("postgresql_versions.sql").read_text()
HEIRS = Path(__file__).with_name("postgresql_heirs.sql").read_text()
SAMPLES = ("northwind", "pagila", "musicbrainz")


def schema_of(cluster: Cluster, name: str) -> list[str]:
    """What pg_dump says about definitions; newer versions add a random word."""
    dump = cluster.dump(name, "--schema-only", "--no-owner")
    return [line for line in dump.splitlines() if not re.match(r"\\(un)?restrict ", line)]


def round_trip(cluster: Cluster, name: str, folder: Path) -> tuple[str, Path]:
    """Archive a database, restore the archive into a new one, compare; return the new one."""
    archive = folder / f"{name}.siard"
    transfer.archive(cluster.url(name), archive)
    again = cluster.new_database()
    report = transfer.restore(archive, cluster.url(again))
    assert report.left_out == ()
    assert report.notes == ()
    comparison = compare(cluster.url(again), str(archive))
    assert comparison.differences == ()
    assert comparison.equal
    return again, archive


@pytest.fixture(scope="module")
def rich(
    postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, Path]]:
    """The database of all features, its copy, and the archive between them."""
    name = postgresql.new_database()
    postgresql.psql(name, postgresql.known(FEATURES))
    yield name, *round_trip(postgresql, name, tmp_path_factory.mktemp("features"))


Rich = tuple[str, str, Path]


def described(archive: Path) -> Database:
    with open_siard(archive) as source:
        return source.describe()


def test_all_definitions_come_back(postgresql: Cluster, rich: Rich) -> None:
    name, again, _ = rich
    assert schema_of(postgresql, again) == schema_of(postgresql, name)


def test_all_rows_come_back(postgresql: Cluster, rich: Rich) -> None:
    name, again, _ = rich
    options = ("--data-only", "--inserts", "--exclude-table=everything", "--exclude-table=attached")
    left, right = (postgresql.dump(db, *options, "--no-blobs") for db in (name, again))
    lines = [[line for line in d.splitlines() if "restrict" not in line] for d in (left, right)]
    assert lines[0] == lines[1]
    everything = "SELECT to_jsonb(e) - 'l' FROM everything e ORDER BY id"
    assert postgresql.psql(name, everything) == postgresql.psql(again, everything)


def test_the_archive_equals_its_source(postgresql: Cluster, rich: Rich) -> None:
    comparison = compare(str(rich[2]), postgresql.url(rich[0]))
    assert comparison.differences == ()
    assert comparison.equal


def test_large_objects_come_back(postgresql: Cluster, rich: Rich) -> None:
    name, again, _ = rich
    sql = "SELECT md5(lo_get(l)) FROM everything WHERE l > 0; SELECT id, lo_get(content) FROM attached ORDER BY id"
    assert postgresql.psql(name, sql) == postgresql.psql(again, sql)


def test_types_are_described_as_siard_wants_them(rich: Rich) -> None:
    database = described(rich[2])
    table = database.schema("public").table("everything")
    types = {c.name: (str(c.type), c.cardinality) for c in table.columns}
    assert types["n12"] == ("NUMERIC(12,2)", None)
    if "neg" in types:  # which is not in earlier versions than 15
        assert types["neg"] == ("NUMERIC(5,0)", None)
        assert types["deep"] == ("NUMERIC(4,4)", None)
    assert types["tstz"] == ("TIMESTAMP WITH TIME ZONE(3)", None)
    assert types["iv"] == ("INTERVAL DAY TO SECOND(6)", None)
    assert types["ivym"] == ("INTERVAL YEAR TO MONTH", None)
    assert types["ivmix"] == ("VARCHAR(100)", None)
    assert types["mo"] == ("public.mood", None)
    assert types["pe"] == ("Odd Name.person", None)
    assert types["ta"] == ("CLOB", 6)
    assert types["i2d"] == ("CLOB", None)  # two dimensions
    assert types["lb"] == ("CLOB", None)  # starts with 0
    assert types["l"] == ("BLOB", None)
    kinds = {t.name: (t.category, str(t.base)) for t in database.schema("public").types}
    assert kinds["posint"] == ("distinct", "INTEGER")
    assert kinds["mood"] == ("distinct", "VARCHAR(12)")
    assert kinds["addr"][0] == "udt"


def test_partitions_and_heirs_are_seen_as_users_see_them(rich: Rich) -> None:
    public = described(rich[2]).schema("public")
    rows = {table.name: table.rows for table in public.tables}
    assert rows["parted"] == 3
    assert "parted_1" not in rows
    assert (rows["animal"], rows["dog"], rows["puppy"]) == (4, 3, 1)


def test_keys_are_described_in_full(rich: Rich) -> None:
    database = described(rich[2])
    pointing = database.schema("Odd Name").table("pointing")
    key = next(k for k in pointing.foreign_keys if k.name == "full_match")
    assert (key.match_type, key.delete_action) == ("FULL", "CASCADE")
    assert [(r.column, r.referenced) for r in key.references] == [("px", "x"), ("py", "y")]
    assert (key.referenced_schema, key.referenced_table) == ("public", "wide")
    names = {k.name for k in database.schema("public").table("gen").candidate_keys}
    assert names == {"gen_u"}  # not the partial index


def test_overloads_have_specific_names(rich: Rich) -> None:
    routines = described(rich[2]).schema("public").routines
    overloads = [r for r in routines if r.name == "add"]
    assert [r.specific_name for r in overloads] == ["add", "add_2"]
    assert [p.name for p in overloads[0].parameters] == ["a", "b"]
    assert next(r for r in routines if r.name == "p").parameters[0].mode == "INOUT"


def test_original_definitions_stand_behind_descriptions(rich: Rich) -> None:
    gen = described(rich[2]).schema("public").table("gen")
    words, original = split_original(gen.description)
    assert words == "Generated; 'quotes' and \\ back"
    assert original is not None and original.product == "PostgreSQL"
    assert any(sql.startswith("CREATE INDEX gen_e ") for sql in original.statements)


@pytest.mark.samples
@pytest.mark.parametrize("sample", SAMPLES)
def test_real_databases_come_back(
    postgresql: Cluster, samples: Path, tmp_path: Path, sample: str
) -> None:
    name = postgresql.new_database()
    script = gzip.decompress((samples / "db" / "pg" / f"{sample}.pg.sql.gz").read_bytes())
    sql = script.decode().replace(" NULLS NOT DISTINCT", "/*15*/ NULLS NOT DISTINCT/*-*/")
    postgresql.psql(name, postgresql.known(sql))
    again, _ = round_trip(postgresql, name, tmp_path)
    assert schema_of(postgresql, again) == schema_of(postgresql, name)


def objects(cluster: Cluster, name: str) -> dict[str, str]:
    """What pg_dump says about each object, by its heading."""
    dump = re.sub(r"(?m)^\\(un)?restrict .*\n", "", cluster.dump(name, "-s", "-O", "-C"))
    dump = dump.partition("--\n-- PostgreSQL database dump complete")[0]
    blocks = re.split(r"^--\n-- Name: (.*)\n--$", dump, flags=re.M)
    pairs = zip(blocks[1::2], blocks[2::2], strict=True)
    return {head.replace(name, "DB"): text.replace(name, "DB").rstrip() for head, text in pairs}


def lost(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The headings of objects that are not the same afterwards."""
    heads = {head for head, text in before.items() if after.get(head) != text}
    return {head.partition("; Schema: ")[0] for head in heads}


def test_what_few_people_use_comes_back(postgresql: Cluster, tmp_path: Path) -> None:
    name, again = postgresql.new_database(), postgresql.new_database()
    postgresql.psql(name, postgresql.known(RICHES))
    made = transfer.archive(postgresql.url(name), tmp_path / "a.siard")
    report = transfer.restore(tmp_path / "a.siard", postgresql.url(again))
    before, after = objects(postgresql, name), objects(postgresql, again)
    assert lost(before, after) == {
        "DB; Type: DATABASE PROPERTIES", "USER MAPPING public SERVER far; Type: USER MAPPING",
    }  # fmt: skip
    noted = " ".join(made.notes)
    for words in ("password of the user mapping of PUBLIC", "rich.zero", "1 large objects"):
        assert words in noted
    assert "dont-archive-me" not in (tmp_path / "a.siard").read_bytes().decode("latin-1")
    assert [(item.kind, item.name) for item in report.left_out] == [("setting", "of the database")]
    assert "SET work_mem TO '5MB'" in str(report.left_out[0].sql)
    assert report.notes == ()
    assert compare(postgresql.url(name), str(tmp_path / "a.siard")).equal
    assert compare(postgresql.url(again), str(tmp_path / "a.siard")).differences == ()


@pytest.mark.parametrize("sql", [VERSIONS, HEIRS], ids=["versions", "heirs"])
def test_what_each_version_brought_comes_back(
    postgresql: Cluster, tmp_path: Path, sql: str
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, postgresql.known(sql))
    again, archive = round_trip(postgresql, name, tmp_path)
    assert schema_of(postgresql, again) == schema_of(postgresql, name)
    assert compare(postgresql.url(name), str(archive)).equal
    assert validate(archive, jobs=1).finish().valid


def test_foreign_keys_that_rows_break_are_statements_alone(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    sql = """
        CREATE TABLE p (a int PRIMARY KEY, b numeric UNIQUE); INSERT INTO p VALUES (1, 1.5);
        CREATE TABLE broken (a int); INSERT INTO broken VALUES (1), (7), (NULL);
        ALTER TABLE broken ADD CONSTRAINT hoped FOREIGN KEY (a) REFERENCES p NOT VALID;
        COMMENT ON CONSTRAINT hoped ON broken IS 'not by all';
        CREATE TABLE kept (a int); INSERT INTO kept VALUES (1), (NULL);
        ALTER TABLE kept ADD CONSTRAINT known FOREIGN KEY (a) REFERENCES p NOT VALID;
        COMMENT ON CONSTRAINT known ON kept IS 'by all';
    """
    postgresql.psql(name, sql)
    again, archive = round_trip(postgresql, name, tmp_path)
    assert schema_of(postgresql, again) == schema_of(postgresql, name)
    assert validate(archive, jobs=1).finish().valid
    keys = {t.name: [k.name for k in t.foreign_keys] for _, t in described(archive).tables()}
    assert keys == {"p": [], "broken": [], "kept": ["known"]}
    report = transfer.archive(postgresql.url(name), tmp_path / "noted.siard")
    assert report.notes == (
        "key hoped of public.broken is archived as a statement alone: not all rows obey it.",
    )


def test_keys_that_only_hold_without_heirs_are_statements_alone(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    sql = """
        CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE, v int UNIQUE);
        CREATE TABLE h () INHERITS (p); COMMENT ON CONSTRAINT p_pkey ON p IS 'of its own rows';
        INSERT INTO p VALUES (1, 1, 1); INSERT INTO h VALUES (1, 1, 2), (2, 2, 3), (3, NULL, NULL);
        CREATE TABLE q (id int PRIMARY KEY); CREATE TABLE qh () INHERITS (q);
        /*<18*/ ALTER TABLE qh ALTER id DROP NOT NULL; INSERT INTO qh VALUES (NULL); /*-*/
        /*18*/ INSERT INTO qh VALUES (1), (1); /*-*/
        CREATE TABLE f (id int REFERENCES p); CREATE TABLE fh () INHERITS (f);
        INSERT INTO f VALUES (1); INSERT INTO fh VALUES (99);
    """
    postgresql.psql(name, postgresql.known(sql))
    again, archive = round_trip(postgresql, name, tmp_path)
    assert schema_of(postgresql, again) == schema_of(postgresql, name)
    assert validate(archive, jobs=1).finish().valid
    tables = {t.name: t for _, t in described(archive).tables()}
    assert tables["p"].primary_key is tables["q"].primary_key is None
    assert [k.name for k in tables["p"].candidate_keys] == ["p_v_key"]
    assert tables["f"].foreign_keys == ()


def test_a_parent_without_its_heirs_takes_their_rows(postgresql: Cluster, tmp_path: Path) -> None:
    name, again = postgresql.new_database(), postgresql.new_database()
    sql = """
        CREATE TABLE p (a int); CREATE TABLE h () INHERITS (p);
        INSERT INTO p VALUES (1); INSERT INTO h VALUES (NULL);
        /*<18*/ ALTER TABLE ONLY p ALTER a SET NOT NULL /*-*/
        /*18*/ ALTER TABLE p ADD CONSTRAINT never NOT NULL a NO INHERIT /*-*/
    """
    postgresql.psql(name, postgresql.known(sql))
    chosen = Selection(tables=("public.p",))
    transfer.archive(postgresql.url(name), tmp_path / "a.siard", chosen)
    report = transfer.restore(tmp_path / "a.siard", postgresql.url(again))
    assert [str(item) for item in report.left_out] == [
        'definition of public.p: column "a" of relation "p" contains null values'
    ]
    assert postgresql.psql(again, "SELECT count(*) FROM p").strip() == "2"


def test_heirs_keep_the_order_of_their_columns(postgresql: Cluster, tmp_path: Path) -> None:
    name = postgresql.new_database()
    postgresql.psql(
        name,
        "CREATE TABLE parent (a int NOT NULL, b int DEFAULT 1);"
        "CREATE TABLE heir (c text, b int, a int NOT NULL); ALTER TABLE heir INHERIT parent;"
        "ALTER TABLE parent ADD later int NOT NULL DEFAULT 5;"
        "INSERT INTO heir VALUES ('c', 2, 3); INSERT INTO parent VALUES (4)",
    )
    again, _ = round_trip(postgresql, name, tmp_path)
    for sql in (
        "SELECT * FROM heir",
        "SELECT a, b, later FROM ONLY parent",
        "SELECT a FROM parent",
    ):
        assert postgresql.psql(again, sql) == postgresql.psql(name, sql)
    assert "INHERITS (public.parent)" in postgresql.dump(again, "-s", "-t", "heir")


@pytest.fixture
def depths(postgresql: Cluster) -> Iterator[str]:
    """A database with owners, whose roles are there as long as it is."""
    name = postgresql.new_database()
    postgresql.psql(name, postgresql.known(DEPTHS))
    yield name
    postgresql.drop_database(name)
    postgresql.psql("postgres", 'DROP ROLE depth_alice, "depth Bob", depth_carol')


def test_owners_rights_and_partitions_come_back(
    postgresql: Cluster, depths: str, tmp_path: Path
) -> None:
    again = postgresql.new_database()
    transfer.archive(postgresql.url(depths), tmp_path / "a.siard")
    report = transfer.restore(tmp_path / "a.siard", postgresql.url(again))
    dumps = [
        postgresql.dump(db, "-s", "--exclude-table=app.passwd", "--no-security-labels")
        for db in (depths, again)
    ]
    first, second = ([x for x in d.splitlines() if "restrict " not in x] for d in dumps)
    assert first == second  # owners included
    left = [(item.kind, item.name) for item in report.left_out]
    assert left == [
        ("foreign table", "app.passwd"),
        ("security label", "COLUMN z.lab.a"),
        ("security label", "TABLE z.lab"),
    ]
    assert "force_not_null" in str(report.left_out[0].sql)
    assert compare(postgresql.url(again), str(tmp_path / "a.siard")).differences == ()
    postgresql.drop_database(again)


def test_owners_who_are_not_here_are_named_once(
    postgresql: Cluster, depths: str, tmp_path: Path
) -> None:
    again = postgresql.new_database()
    transfer.archive(postgresql.url(depths), tmp_path / "a.siard")
    postgresql.psql("postgres", 'ALTER ROLE "depth Bob" RENAME TO "depth Rob"')
    try:
        report = transfer.restore(tmp_path / "a.siard", postgresql.url(again))
    finally:
        postgresql.psql("postgres", 'ALTER ROLE "depth Rob" RENAME TO "depth Bob"')
    (owner,) = [item for item in report.left_out if item.kind == "owner"]
    assert str(owner) == "owner depth Bob of 1 object: there is no such role here"
    assert owner.sql == 'ALTER VIEW app.ownedv OWNER TO "depth Bob"'
    postgresql.drop_database(again)


def test_foreign_tables_are_listed_with_all_that_they_have(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name, again = postgresql.new_database(), postgresql.new_database()
    file = postgresql.folder / "foreign.csv"
    file.write_text("1,x\n")
    postgresql.psql(
        name,
        "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;"
        "CREATE FOREIGN TABLE f (a int CONSTRAINT must NOT NULL, b int GENERATED ALWAYS AS (a * 2)"
        " STORED, c text COLLATE \"C\" DEFAULT 'c') SERVER files"
        f" OPTIONS (filename '{file}', format 'csv')",
    )
    transfer.archive(postgresql.url(name), tmp_path / "a.siard")
    (item,) = transfer.restore(tmp_path / "a.siard", postgresql.url(again)).left_out
    postgresql.psql(again, f"DROP TABLE f; {item.sql}")
    assert schema_of(postgresql, again) == schema_of(postgresql, name)
    assert postgresql.psql(again, "SELECT a, c FROM f").strip() == "1|x"


def test_large_objects_that_no_column_knows_are_counted(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    postgresql.psql(name, "CREATE TABLE t (a oid); INSERT INTO t VALUES (lo_from_bytea(0, 'x'));")
    postgresql.psql(name, "SELECT lo_from_bytea(0, 'alone'), lo_from_bytea(0, 'too')")
    report = transfer.archive(postgresql.url(name), tmp_path / "a.siard")
    assert report.notes == ("not archived: 2 large objects that no archived column refers to.",)


def test_values_that_postgresql_prints_and_never_reads_come_back_as_text(
    postgresql: Cluster, tmp_path: Path
) -> None:
    name, again = postgresql.new_database(), postgresql.new_database()
    postgresql.psql(
        name,
        "CREATE TABLE d (x int DEFAULT 3);"
        "CREATE TABLE t AS SELECT adbin AS tree, 7 AS n FROM pg_attrdef;"
        "ALTER TABLE t ALTER n SET DEFAULT 5",
    )
    transfer.archive(postgresql.url(name), tmp_path / "a.siard")
    report = transfer.restore(tmp_path / "a.siard", postgresql.url(again))
    assert any("PostgreSQL takes no values of type pg_node_tree" in n for n in report.notes)
    values = "SELECT tree::text, n FROM t"
    assert postgresql.psql(again, values) == postgresql.psql(name, values)
    assert "DEFAULT 5" in postgresql.dump(again, "-s", "-t", "t")
