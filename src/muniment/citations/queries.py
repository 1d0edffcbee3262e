"""Queries as citable resources (RDA recommendations on data citation).

A stored query is a PDI of its own: ``.sql`` is the recipe, ``.csv``, ``.json`` and ``.siard`` are
renditions of its result. What it was run against, when, by whom, how many rows and which digest are
assertions. The same query over the same sources with the same result gets the same name again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment import transfer
from muniment.citations.facts import facts_of
from muniment.citations.running import Outcome, run
from muniment.citations.texts import name_archive, open_document, title_of
from muniment.errors import NotFound
from muniment.identifiers import Pdi, parse_pdi
from muniment.names import Names
from muniment.names.assertions import say_many
from muniment.names.content import keep

__all__ = ["Proof", "QueryCitation", "cite_query", "prove"]


@dataclass(frozen=True, slots=True)
class QueryCitation:
    """A query that has a name."""

    pdi: Pdi
    sql: str
    sources: Mapping[str, str]
    rows: int
    digest: str
    text: str
    renditions: tuple[str, ...]
    known: bool

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "pdi": str(self.pdi),
            "citation": self.text,
            "sql": self.sql,
            "sources": dict(self.sources),
            "rows": self.rows,
            "siard_digest_1": self.digest,
            "renditions": list(self.renditions),
            "known": self.known,
        }


def cite_query(
    names: Names, series: str, sql: str, archives: Mapping[str, Path], by: str, title: str = ""
) -> QueryCitation:
    """Run a query, keep it with its result, and give it a name; or return the name it has."""
    with run(sql, archives) as outcome:
        sources = {
            alias: str(name_archive(names, series, path, by)) for alias, path in archives.items()
        }
        key = _key(outcome, sources)
        subjects = _with_value(names, "queryKey", key)
        if subjects:
            return _known(names, parse_pdi(subjects[0]))
        pdi = names.mint(series, format="sql", by="")[0]
        renditions = _keep(names, pdi, outcome, by)
    over = [
        f"{title_of(names, parse_pdi(source), archives[alias])} ({source})"
        for alias, source in sources.items()
    ]
    text = _text(names, pdi, outcome, over, by, title)
    subject = str(pdi.generic)
    facts: list[tuple[str, str, Any]] = [
        (subject, "type", "query"),
        (subject, "title", title or "Query"),
        (subject, "creator", by),
        (subject, "query", outcome.sql),
        (subject, "executedAgainst", sources),
        (subject, "executedAt", names.stamp()),
        (subject, "engine", outcome.engine),
        (subject, "rowCount", outcome.rows),
        (subject, "columns", [list(column) for column in outcome.columns]),
        (subject, "siard-digest-1", outcome.digest),
        (subject, "citation", text),
        (subject, "queryKey", key),
    ]
    say_many(names, facts, by or "muniment")
    return QueryCitation(
        pdi, outcome.sql, sources, outcome.rows, outcome.digest, text, renditions, False
    )


def _key(outcome: Outcome, sources: Mapping[str, str]) -> str:
    parts = [outcome.sql, sorted(sources.items()), outcome.digest]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _with_value(names: Names, predicate: str, value: Any) -> list[str]:
    return [each.subject for each in names.assertions_with(predicate, value)]


def _known(names: Names, pdi: Pdi) -> QueryCitation:
    facts = facts_of(names, pdi)
    found = names.resolve(pdi._replace(format="sql")).renditions
    formats = tuple(str(each.pdi.format) for each in found)
    return QueryCitation(
        pdi.generic._replace(format="sql", version=1), facts["query"], facts["executedAgainst"],
        facts["rowCount"], facts["siard-digest-1"], facts["citation"], formats, True,
    )  # fmt: skip


def _keep(names: Names, pdi: Pdi, outcome: Outcome, by: str) -> tuple[str, ...]:
    """Keep the recipe and the renditions of the result."""
    with tempfile.TemporaryDirectory(prefix="muniment-cite-") as folder:
        files = {token: Path(folder) / f"result.{token}" for token in ("sql", "csv", "json")}
        files["siard"] = Path(folder) / "result.siard"
        files["sql"].write_text(outcome.sql + "\n", encoding="utf-8")
        _render(outcome.database, files["csv"], files["json"])
        transfer.archive(outcome.database, files["siard"], options=transfer.ArchiveOptions(jobs=1))
        for token, path in files.items():
            digest, length, location = keep(names, path)
            names.bind(pdi._replace(format=token, version=1), digest, length, location, by=by)
    return tuple(files)


def _render(url: str, csv: Path, json_: Path) -> None:
    import duckdb

    from muniment.query.formats import write_csv, write_json_lines

    with duckdb.connect(url.removeprefix("duckdb:///"), read_only=True) as connection:
        for path in (csv, json_):
            rows = connection.sql("SELECT * FROM result ORDER BY rowid")
            reader = rows.to_arrow_reader(10_000)
            with path.open("wb") as stream:
                if path is csv:
                    write_csv(reader.schema, reader, stream, exact=True)
                else:
                    write_json_lines(reader, stream)
        _join_lines(json_)


def _join_lines(path: Path) -> None:
    """Make one JSON document, an array of rows, of a file with a row on each line."""
    lines = path.rename(path.with_suffix(".lines"))
    with lines.open("rb") as source, path.open("wb") as stream:
        stream.write(b"[" + next(source, b"").rstrip(b"\n"))
        for line in source:
            stream.write(b",\n" + line.rstrip(b"\n"))
        stream.write(b"]\n")
    lines.unlink()


def _text(
    names: Names, pdi: Pdi, outcome: Outcome, over: Sequence[str], by: str, title: str
) -> str:
    """Return the citation in words (R10)."""
    now = names.clock()
    author = f"{by} " if by else ""
    rows = f"{outcome.rows} row{'' if outcome.rows == 1 else 's'}"
    return (
        f"{author}({now.year}): {title or 'Query'} over {', '.join(over)}. {rows}, siard-digest-1 "
        f"{outcome.digest}. {pdi.generic}. Run on {now.date().isoformat()}."
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a cited query gives the same again."""

    pdi: Pdi
    same: bool
    differences: tuple[str, ...]
    rows: int
    digest: str

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "pdi": str(self.pdi),
            "same": self.same,
            "differences": list(self.differences),
            "rows": self.rows,
            "siard_digest_1": self.digest,
        }


def prove(names: Names, pdi: Pdi, archives: Mapping[str, Path] | None = None) -> Proof:
    """Run a cited query again, over its kept sources or over the archives given instead."""
    facts = facts_of(names, pdi)
    if facts.get("type") != "query":
        raise NotFound(f"{pdi} is not a cited query")
    paths = {
        alias: (archives or {}).get(alias) or open_document(names, parse_pdi(source))
        for alias, source in facts["executedAgainst"].items()
    }
    with run(facts["query"], paths) as outcome:
        differences = []
        if outcome.rows != facts["rowCount"]:
            differences.append(f"{outcome.rows} rows instead of {facts['rowCount']}")
        columns = [list(column) for column in outcome.columns]
        if columns != facts["columns"]:
            differences.append(f"columns {columns} instead of {facts['columns']}")
        if outcome.digest != facts["siard-digest-1"] and not differences:
            differences.append("the same number of rows, with other values")
        same = outcome.digest == facts["siard-digest-1"]
        return Proof(pdi.generic, same, tuple(differences), outcome.rows, outcome.digest)
