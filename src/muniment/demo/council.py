"""Builds the council's database: the same city in another product, with several schemas."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import chain
from pathlib import Path

__all__ = ["build_council"]

_DEFINITIONS = """
CREATE SCHEMA council;
CREATE SCHEMA finance;
CREATE TABLE council.member (
    id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, party VARCHAR, since DATE NOT NULL, until DATE
);
CREATE TABLE council.session (
    id INTEGER PRIMARY KEY, held_on DATE NOT NULL, chaired_by INTEGER NOT NULL,
    place VARCHAR, FOREIGN KEY (chaired_by) REFERENCES council.member (id)
);
CREATE TABLE council.decision (
    id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, subject VARCHAR NOT NULL,
    in_favour SMALLINT NOT NULL, against SMALLINT NOT NULL,
    permit_number INTEGER, votes STRUCT(member INTEGER, vote VARCHAR)[],
    FOREIGN KEY (session_id) REFERENCES council.session (id)
);
CREATE TABLE finance.account (
    code VARCHAR PRIMARY KEY, title VARCHAR NOT NULL, kind VARCHAR NOT NULL
);
CREATE TABLE finance.posting (
    id INTEGER PRIMARY KEY, account_code VARCHAR NOT NULL, booked_on DATE NOT NULL,
    amount DECIMAL(12, 2) NOT NULL, work_order INTEGER, text VARCHAR,
    FOREIGN KEY (account_code) REFERENCES finance.account (code)
);
COMMENT ON TABLE council.decision IS 'What was decided; permit_number leads to the tree register.';
COMMENT ON TABLE finance.posting IS 'Every booking; work_order leads to the tree register.';
CREATE VIEW finance.year AS
    SELECT year(booked_on) AS year, account_code, sum(amount) AS total
    FROM finance.posting GROUP BY ALL;
"""
_MEMBERS = ("Hinnerk Ahlers", "Wiebke Brodersen", "Yuki Tanabe", "Ólafur Steen", "Ruth Mandel",
            "Ivo Perić", "Aylin Demir", "Jens Petersen", "Mette Krogh")  # fmt: skip
_PARTIES = ("Harbour List", "Green Quay", None)
_SUBJECTS = ("Felling on the quay", "New limes for the market", "The budget", "Wege im Park",
             "桜の並木", "The storm of last night")  # fmt: skip
_ACCOUNTS = (("4100", "Pruning", "expense"), ("4200", "Felling", "expense"),
             ("4300", "Watering", "expense"), ("8100", "Fees for permits", "income"))  # fmt: skip
_SESSIONS, _POSTINGS = 120, 2400


def build_council(path: Path) -> None:
    """Build the database as a new DuckDB file; its contents are the same each time."""
    import duckdb

    if path.exists():
        raise FileExistsError(17, "exists already", str(path))
    with duckdb.connect(str(path)) as connection:
        connection.execute(_DEFINITIONS)
        for table, rows in _content().items():
            # One statement: DuckDB takes its time for each.
            mark = f"({', '.join('?' * len(rows[0]))})"
            marks = ", ".join([mark] * len(rows))
            connection.execute(f"INSERT INTO {table} VALUES {marks}", list(chain(*rows)))


Rows = list[tuple[object, ...]]


def _content() -> dict[str, Rows]:
    return {
        "council.member": _members(),
        "council.session": _sessions(),
        "council.decision": _decisions(),
        "finance.account": list(_ACCOUNTS),
        "finance.posting": _postings(),
    }


def _members() -> Rows:
    return [
        (n, name, _PARTIES[n % 3], date(1990 + 3 * n, 5, 1), None if n % 4 else date(2020, 4, 30))
        for n, name in enumerate(_MEMBERS, 1)
    ]


def _sessions() -> Rows:
    first = date(1994, 6, 7)
    return [
        (n, first + timedelta(days=95 * n), n % len(_MEMBERS) + 1,
         "Town hall" if n % 7 else "Turnhalle, wegen Umbaus")
        for n in range(1, _SESSIONS + 1)
    ]  # fmt: skip


def _decisions() -> Rows:
    rows: Rows = []
    for n in range(1, 2 * _SESSIONS + 1):
        votes = [
            {"member": m, "vote": "yes" if (n * m) % 5 else "no"}
            for m in range(1, len(_MEMBERS) + 1)
            if (n + m) % 6
        ]
        yes = sum(vote["vote"] == "yes" for vote in votes)
        permit = n // 4 if n % 4 == 0 else None
        subject = _SUBJECTS[n % len(_SUBJECTS)]
        rows.append((n, (n + 1) // 2, subject, yes, len(votes) - yes, permit, votes))
    return rows


def _postings() -> Rows:
    first = date(1995, 1, 2)
    return [
        (n, _ACCOUNTS[n % 4][0], first + timedelta(days=(n * 13) % 10_900),
         f"{(n * 7919) % 90_000 / 100:.2f}" if n % 4 != 3 else f"-{(n * 31) % 4000 / 100:.2f}",
         n if n % 4 != 3 else None, None if n % 5 else "Sammelbuchung")
        for n in range(1, _POSTINGS + 1)
    ]  # fmt: skip
