"""``validate``: every rule of an archive's version, in one pass, findings as they are found."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from muniment.errors import MunimentError, SiardError, UsageError
from muniment.files import Inside
from muniment.findings import Finding, Limiter, Severity
from muniment.siard.lobs.folders import Root
from muniment.siard.metadata import parse_metadata
from muniment.siard.rooted import seen_rightly
from muniment.siard.rules import RULES
from muniment.siard.rules.archive import Archive, Report, TableFiles, safe_parser
from muniment.siard.rules.container import check_directory, check_name
from muniment.siard.rules.correspondence import check_correspondence, check_structure
from muniment.siard.rules.folders import (
    check_folders,
    check_header,
    check_table_folders,
)  # fmt: skip
from muniment.siard.rules.general import check_general
from muniment.siard.rules.metadata import check_metadata_xml
from muniment.siard.rules.references import check_references
from muniment.siard.rules.registry import rules_of
from muniment.siard.rules.segments import check_companions, check_split
from muniment.siard.rules.tables import check_table_schema
from muniment.siard.rules.tablexsd import NotASchema, TableSchema, parse_table_schema
from muniment.siard.scan import Progress, Scan
from muniment.siard.versions import CURRENT, Version, find_version
from muniment.siard.zip import ZipReader
from muniment.sql.model import Database

__all__ = ["Progress", "Validation", "validate"]

METADATA_LIMIT = 1 << 27
_READ_ALL = {"G_4.1-1", "M_5.1-1", "P_4.2-3"}  # rules that are known in full once all is read
_SCHEMA_LIMIT = 1 << 24


Tell = Callable[[Progress], None]


def validate(
    path: Path | str,
    *,
    rules: Iterable[str] = (),
    fast: bool = False,
    jobs: int = 0,
    progress: Tell | None = None,
    roots: Sequence[Root] = (),
) -> Validation:
    """Return a validation of an archive: iterate over it for its findings as they are found.

    ``rules`` are the only ones asked for; ``fast`` leaves out those that take a pass over the rows.
    Large objects may lie beneath ``roots`` as well.

    >>> from muniment.siard import validate
    >>> for finding in validate("shop.siard"):  # doctest: +SKIP
    ...     print(finding.rule, finding.severity, finding.where, finding.message)
    """
    known = {rule.id for rule in RULES}
    wanted = set(rules)
    if unknown := sorted(wanted - known):
        raise UsageError(f"there is no rule {', '.join(unknown)}; rules look like P_4.2-1")
    place = path if isinstance(path, Path) else Path(path)
    return Validation(place, wanted or known, fast, jobs, progress, tuple(roots))


class Validation:
    """The findings of an archive, and what they come to."""

    def __init__(
        self,
        path: Path,
        wanted: set[str],
        fast: bool,
        jobs: int,
        progress: Tell | None,
        roots: tuple[Root, ...] = (),
    ) -> None:
        self.path, self._roots = path, roots
        self.version = ""
        self.database: Database | None = None  # as far as its metadata can be read
        self.seconds = 0.0
        self.rows = self.tables = self.lobs = 0
        self.findings: list[Finding] = []
        self._wanted, self._fast, self._jobs, self._progress = wanted, fast, jobs, progress
        self._limiter = Limiter()
        self._waiting: list[Finding] = []
        self._looked_at: set[str] = set()
        self._rules = {r.id: r for r in RULES if r.id in wanted and not (fast and r.rows)}

    @property
    def valid(self) -> bool:
        """Whether no mandatory requirement is broken."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def rules(self) -> dict[str, str]:
        """For each rule that was asked for: pass, fail, warn or not-applicable."""
        worst: dict[str, Severity] = {}
        order = [Severity.ERROR, Severity.WARNING, Severity.NOTE]
        for finding in self.findings:
            known = worst.get(finding.rule, Severity.NOTE)
            worst[finding.rule] = min(known, finding.severity, key=order.index)
        words = {Severity.ERROR: "fail", Severity.WARNING: "warn", Severity.NOTE: "pass"}
        return {
            rule: words[worst[rule]] if rule in worst
            else "pass" if rule in self._looked_at else "not-applicable"
            for rule in self._rules
        }  # fmt: skip

    def counts(self) -> dict[Severity, int]:
        """How many cases of each severity there are."""
        return {
            severity: sum(f.count for f in self.findings if f.severity is severity)
            for severity in Severity
        }

    def __iter__(self) -> Iterator[Finding]:
        """Yield the findings; the archive is read while this goes on."""
        started = time.monotonic()
        for _ in self._run():
            yield from self._take()
        yield from self._take()
        for finding in self._limiter.rest():
            self.findings.append(finding)
            yield finding
        self.seconds = time.monotonic() - started

    def finish(self) -> Validation:
        """Find everything there is to find, then return the validation."""
        for _ in self:
            pass
        return self

    def _take(self) -> Iterator[Finding]:
        waiting, self._waiting = self._waiting, []
        for finding in waiting:
            self.findings.append(finding)
            yield finding

    def _tell(self, finding: Finding, kind: str) -> None:
        self._waiting += self._limiter.admit(finding, kind)

    def _run(self) -> Iterator[None]:
        """Check everything, step by step; findings are collected between the steps."""
        report = Report(self._rules, self._tell)
        report.looked_at = self._looked_at
        if not isinstance(self.path, Inside):  # there it has no name of its own, and no neighbours
            check_name(report, self.path)
            check_split(report, self.path)
        yield
        archive = self._open(report)
        yield
        if archive is None:
            return
        metadata = self._metadata(archive)
        yield
        if metadata is not None:
            yield from self._definitions(archive, metadata)
        yield from self._content(archive)

    def _open(self, report: Report) -> Archive | None:
        """Check the ZIP file; None if it cannot be read as one."""
        try:
            reader = ZipReader(self.path, twins=True)
            if not check_directory(report, reader):
                return None
            reader.directory.refuse_twins()  # an attack
        except (MunimentError, ValueError, OSError) as error:
            report("G_4.1-1", self.path.name, _reason(error, self.path))
            return None
        inner, root = seen_rightly(reader)
        return Archive(self.path, CURRENT, report, inner, reader, root)

    def _metadata(self, archive: Archive) -> bytes | None:
        """Read metadata.xml; None if nothing can be told from it."""
        name, report = "header/metadata.xml", archive.report
        data = None
        try:
            if archive.has(name):
                data = archive.read(name, METADATA_LIMIT)
                archive.metadata = _parsed(data)
                archive.version = _version(archive.metadata, report)
                self.database = archive.database = parse_metadata(data)
        except SiardError as error:
            if archive.root + name not in archive.damaged:
                report("M_5.0-1", name, _reason(error, self.path))
        self.version = archive.version.number if archive.metadata is not None else ""
        if self.version:
            self._rules.update(_narrowed(self._rules, self.version))
            for rule in set(self._rules) - set(rules_of(RULES, self.version)):
                del self._rules[rule]
        check_folders(archive)
        check_header(archive)
        return data if archive.database is not None else None

    def _definitions(self, archive: Archive, metadata: bytes) -> Iterator[None]:
        """Check everything that needs no rows."""
        check_metadata_xml(archive)
        yield
        check_general(archive, metadata)
        check_references(archive)
        yield
        problems = {}
        database = archive.database
        assert database is not None
        for schema, table in database.tables():
            folder = f"content/{schema.folder}/{table.folder}/{table.folder}"
            definition, problem = _schema(archive, f"{folder}.xsd")
            each = TableFiles(schema, table, f"{folder}.xml", f"{folder}.xsd", definition)
            archive.tables.append(each)
            problems[each.xsd] = problem
        check_structure(archive)
        check_table_folders(archive)
        for each in archive.tables:
            check_table_schema(archive, each, problems[each.xsd])
            check_correspondence(archive, each)
            yield
        if self.version == "2.2" and not isinstance(self.path, Inside):
            check_companions(archive)

    def _content(self, archive: Archive) -> Iterator[None]:
        reading = _READ_ALL & self._rules.keys() or any(r.rows for r in self._rules.values())
        if self._fast or not reading:
            return
        with tempfile.TemporaryDirectory(prefix="muniment-") as folder:
            scan = Scan(archive, Path(folder), self._jobs, self._progress, self._roots)
            yield from scan.run()
            self.rows, self.tables, self.lobs = scan.rows, len(archive.tables), scan.lobs


def _parsed(data: bytes) -> Any:
    parse_safely = safe_parser()
    try:
        if b"<!DOCTYPE" in data[:65536]:
            raise SiardError("metadata.xml has a DOCTYPE, which SIARD does not need")
        root = etree.fromstring(data, parse_safely)
        if root.getroottree().docinfo.doctype:
            raise SiardError("metadata.xml has a DOCTYPE, which SIARD does not need")
        return root
    except (etree.XMLSyntaxError, ValueError) as error:
        raise SiardError(f"it is not well-formed XML: {error}") from error


def _version(root: Any, report: Report) -> Version:
    name = etree.QName(root)
    if name.localname != "siardArchive":
        raise SiardError(f"it starts with <{name.localname}> instead of <siardArchive>")
    try:
        return find_version(root.get("version"), name.namespace)
    except SiardError:
        for version in ("2.2", "2.1", "2.0", "1.0"):
            found = find_version(version)
            if found.metadata_namespace == name.namespace:
                message = f"the version {root.get('version')!r} is none of SIARD's"
                report("M_5.1-1", "header/metadata.xml", message)
                return found
        raise


def _narrowed(rules: dict[str, Any], version: str) -> dict[str, Any]:
    known = rules_of(RULES, version)
    return {rule: known[rule] for rule in rules if rule in known}


def _schema(archive: Archive, name: str) -> tuple[TableSchema | None, str]:
    if not archive.has(name):
        return None, "it is missing"
    try:
        return parse_table_schema(archive.read(name, _SCHEMA_LIMIT), safe_parser()), ""
    except (NotASchema, MunimentError) as error:
        return None, str(error)


def _reason(error: Exception, path: Path) -> str:
    text = str(error)
    for start in (f"{path}: ", f"{path} "):
        text = text.removeprefix(start)
    return text
