"""Chapter 4.2: which folders and files there are, and how they are called."""

from __future__ import annotations

import re

from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, Marks
from muniment.siard.rules.registry import Rule

__all__ = ["RULES", "check_folders", "check_header", "check_table_folders", "surplus"]

RULES = (
    Rule(
        "P_4.2-1", "M",
        "The root holds the folders content/ and header/ and nothing else.",
        "The first part of every entry's name; that both folders are there.",
        "Pack what is inside the folders again, so that content/ and header/ are at the top.",
    ),
    Rule(
        "P_4.2-2", "M",
        "content/ holds schema folders, which hold table folders, and nothing else.",
        "Every entry in content/ down to the table folders.",
        "Remove what does not belong there.",
    ),
    Rule(
        "P_4.2-3", "M",
        "A table folder holds an XML and an XSD file of its own name, and large objects.",
        "The names of both files; files beside them; files in large-object folders that no cell "
        "refers to.",
        "Name both files like their folder; remove files that belong to no cell.",
    ),
    Rule(
        "P_4.2-4", "M",
        "An empty folder header/siardversion/ with the version's number marks the format.",
        "That it is there, empty, alone, and of the version that metadata.xml states.",
        "Add the folder, and only the one of the archive's version.",
        since="2.0",
    ),
    Rule(
        "P_4.2-5", "M",
        "header/ holds metadata.xml and metadata.xsd; more files are allowed.",
        "That both are there.",
        "Add the missing file; an archive without metadata.xml cannot be read.",
    ),
    Rule(
        "P_4.2-6", "M",
        "Names begin with a letter and hold only a-z, A-Z, 0-9, _ and one dot before the "
        "extension; 20 characters at most are recommended.",
        "Every part of every name, but for the version's own folder; longer ones are a note.",
        "Rename the files and folders, and correct what refers to them.",
    ),
)  # fmt: skip

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)?")
_LONGEST = 20


def check_folders(archive: Archive) -> None:
    """P_4.2-1, P_4.2-2 and P_4.2-6: what can be told from the names alone."""
    report = archive.report
    report.look("P_4.2-1", "P_4.2-2", "P_4.2-6")
    if archive.root:
        report(
            "P_4.2-1", archive.root,
            "everything lies in this folder instead of at the top of the archive",
        )  # fmt: skip
    tops = set()
    for name in archive.whole.names():
        if not name.startswith(archive.root):
            report("P_4.2-1", name, "it lies outside the folders of the archive", kind="outside")
            continue
        inner = name[len(archive.root) :]
        top = inner.partition("/")[0]
        tops.add(top)
        if inner and (top not in ("content", "header") or "/" not in inner):
            report("P_4.2-1", name, "only content/ and header/ may be at the top", kind="root")
        _check_name(archive, inner)
        _check_content(archive, inner)
    for folder in sorted({"content", "header"} - tops):
        report("P_4.2-1", f"{folder}/", "the folder is missing")


def _check_name(archive: Archive, name: str) -> None:
    parts = name.rstrip("/").split("/")
    if parts[:2] == ["header", "siardversion"]:
        return
    for part in parts:
        if (
            (part and not _NAME.fullmatch(part))
            or part in (".", "..")
            or (not part and len(parts) > 1)
        ):
            archive.report(
                "P_4.2-6", name, f"{part!r} is not a name that SIARD allows", kind="name"
            )
        elif len(part) > _LONGEST:
            archive.report(
                "P_4.2-6", name,
                f"{part!r} is longer than the {_LONGEST} characters recommended",
                Severity.NOTE,
                kind="long",
            )  # fmt: skip


def _check_content(archive: Archive, name: str) -> None:
    parts = name.split("/")
    if parts[0] == "content" and len(parts) in (2, 3) and parts[-1]:
        level = "schema" if len(parts) == 2 else "table"
        archive.report("P_4.2-2", name, f"a file where only {level} folders may be", kind="file")


def check_header(archive: Archive) -> None:
    """P_4.2-4 and P_4.2-5."""
    report = archive.report
    report.look("P_4.2-4", "P_4.2-5")
    for name in ("metadata.xml", "metadata.xsd"):
        if not archive.has(f"header/{name}"):
            report("P_4.2-5", f"header/{name}", "it is missing")
    wanted = archive.version.folder
    if wanted is None:
        return
    marks = {
        "/".join(name.split("/")[:3]) + "/"
        for name in archive.names()
        if name.startswith("header/siardversion/") and len(name.rstrip("/").split("/")) > 2
    }
    if wanted not in marks:
        other = f"; there is {', '.join(sorted(marks))}" if marks else ""
        report("P_4.2-4", wanted, f"the folder that marks the version is missing{other}")
    for mark in sorted(marks - {wanted}) if wanted in marks else ():
        report("P_4.2-4", mark, f"besides {wanted} there is a mark of another version")
    for name in archive.names():
        if name.startswith(wanted) and name != wanted:
            report("P_4.2-4", name, "the folder that marks the version is not empty", kind="full")


def check_table_folders(archive: Archive) -> None:
    """P_4.2-3, as far as it needs no rows."""
    report = archive.report
    report.look("P_4.2-3")
    folders = {
        f"content/{each.schema.folder}/{each.table.folder}/": each for each in archive.tables
    }
    for name in archive.names():
        parts = name.split("/")
        folder = "/".join(parts[:3]) + "/"
        if len(parts) != 4 or not parts[3] or folder not in folders:
            continue
        own = parts[2]
        if parts[3] in (f"{own}.xml", f"{own}.xsd"):
            continue
        if re.fullmatch(r"table\d*\.(?:xml|xsd)", parts[3], re.IGNORECASE):
            message = f"it should be named like its folder {own}"
        else:
            message = "a file beside the table's two that is not in a folder of large objects"
        report("P_4.2-3", name, message)


def surplus(archive: Archive, used: Marks) -> None:
    """P_4.2-3, once the rows are known: files in large-object folders that no cell refers to."""
    folders = {f"content/{each.schema.folder}/{each.table.folder}" for each in archive.tables}
    for entry in archive.whole.directory.entries(but=used):
        if not entry.name.startswith(archive.root):
            continue
        name = entry.name[len(archive.root) :]
        parts = name.split("/")
        if len(parts) > 4 and parts[-1] and "/".join(parts[:3]) in folders:
            archive.report(
                "P_4.2-3", name, "no cell refers to this file", Severity.WARNING, kind="surplus"
            )
