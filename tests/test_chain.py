"""One database through three products: PostgreSQL, MariaDB, SQLite, with an archive between each."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.compare import compare
from muniment.transfer import archive, restore

pytest.importorskip("muniment.databases.mariadb")
pytest.importorskip("muniment.databases.postgresql")

# The types that all three share, with the values that break careless code.
SHARED = """
CREATE TABLE place (
    id integer PRIMARY KEY, small smallint, big bigint, price numeric(12,2), fine numeric(18,9),
    ratio double precision, open boolean, name varchar(40), story text, born date,
    wakes time(6), seen timestamp(6), key bytea
);
CREATE TABLE visit (id integer PRIMARY KEY, place integer NOT NULL REFERENCES place (id));
INSERT INTO place VALUES
    (1, -32768, -9223372036854775808, -1234567890.12, 0.000000001, 0.1, true, '', '', '1000-01-01',
     '00:00:00', '1000-01-01 00:00:00', ''),
    (2, 32767, 9223372036854775807, 0, -999999999.999999999, 1e-300, false, ' a  b ', E'\\t\\r\\n\\\\',
     '9999-12-31', '23:59:59.999999', '9999-12-31 23:59:59.999999', '\\x00ff5c27'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 0, 0, 0.10, 1, -1.7976931348623157e308, NULL, 'Zürich 日本 🎵', repeat('Längs ', 5000),
     '2024-02-29', '12:30:00.5', '2024-02-29 12:30:00.05', decode(repeat('ab', 9000), 'hex'));
INSERT INTO visit SELECT n, 1 + n % 4 FROM generate_series(1, 500) AS n;
"""


def digests(a: str, b: str) -> list[tuple[str, int | None, bool]]:
    found = compare(a, b)
    assert all(d.rows[0] == d.rows[1] and d.digest[0] == d.digest[1] for d in found.tables), found
    return [(table.table, table.rows[0], table.equal) for table in found.tables]


def test_content_is_the_same_at_every_station(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    postgresql = request.getfixturevalue("postgresql")
    mariadb = request.getfixturevalue("mariadb")
    first = postgresql.new_database()
    postgresql.psql(first, SHARED)
    stations = [tmp_path / f"{name}.siard" for name in ("postgresql", "mariadb", "sqlite")]
    archive(postgresql.url(first), stations[0])
    second = mariadb.new_database()
    renamed = {"public": second}
    left_out = tmp_path / "left-out.sql"
    restore(stations[0], mariadb.url(second), schema_map=renamed, left_out=left_out)
    archive(mariadb.url(second), stations[1])
    restore(stations[1], f"sqlite:///{tmp_path / 'last.db'}")
    archive(f"sqlite:///{tmp_path / 'last.db'}", stations[2])
    expected = [("place", 4, True), ("visit", 500, True)]
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert digests(str(stations[a]), str(stations[b])) == expected
    mariadb.run(f"DROP DATABASE `{second}`")
    postgresql.drop_database(first)
