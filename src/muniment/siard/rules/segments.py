"""Chapters 7 and 8: large objects outside the archive, their segments and parts; splitting."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from muniment.findings import Severity
from muniment.siard.rules.archive import Archive, Report
from muniment.siard.rules.registry import Rule

__all__ = ["RULES", "check_companions", "check_layout", "check_segments", "check_split"]

RULES = (
    Rule(
        "L_7.1-0", "M",
        "Large objects outside lie in NAME_lobs/ s[i]_t[j]_c[k]/ seg_[n]/ t[j]_c[k]_r[l].ext.",
        "The names of folders and files of each object outside. The text says should, so another "
        "layout is a warning; an object that is not found is an error of T_6.4-5.",
        "Lay out the folders as 7.1 has it, or convert the archive.",
        since="2.2",
        rows=True,
    ),
    Rule(
        "L_7.1-1", "O",
        "Segment folders may be packed as ZIP files.",
        "That each object in such a file is found and as stated.",
        "Deliver the ZIP files.",
        since="2.2",
        rows=True,
    ),
    Rule(
        "S_8.1-0", "M",
        "Segment folders are seg_0, seg_1 … of a column's folder.",
        "The numbers of the segments of each column, which begin with 0 and have no gap. The text "
        "says should, so a gap is a warning.",
        "Number the segments from 0 without a gap.",
        since="2.2",
        rows=True,
    ),
    Rule(
        "S_8.1.1-0", "M",
        "A large object in parts has the suffixes _part001, _part002 … in order.",
        "That no part is missing, and that all together are as long as the cell says.",
        "Deliver the missing parts.",
        since="2.2",
        rows=True,
    ),
    Rule(
        "S_8.1.2-0", "O",
        "A mapping file is called mapping.txt, lies beside the archive, and has a folder, a space "
        "and a URI on each line.",
        "Each line of mapping.txt, if it is there.",
        "Correct the line.",
        since="2.2",
    ),
    Rule(
        "S_8.1.3-0", "O",
        "A manifest of large objects has the form of md5sum: digest, space, * or space, name.",
        "Each line of files beside the archive whose name says manifest, or NAME_lobs_sha256.txt.",
        "Write the manifest with md5sum or sha256sum.",
        since="2.2",
    ),
    Rule(
        "S_8.2-0", "M",
        "A split archive has the suffixes _part001, _part002 … in order.",
        "The names of the parts beside the one given: that they begin with 001 and have no gap.",
        "Deliver the missing parts.",
        since="2.2",
    ),
)  # fmt: skip

_FILE = re.compile(r"(?:seg_(?P<segment>\d+)/)?t(?P<table>\d+)_c(?P<column>\d+)_r\d+(?:_\w+)*\.\w+")
_FOLDER = re.compile(r"s\d+_t(?P<table>\d+)_c(?P<column>\d+)/?")
_LINE = re.compile(r"\\?[0-9A-Fa-f]{32,128} [ *].+")
_PART = re.compile(r"(?P<name>.*)_part(?P<number>\d+)", re.DOTALL)
_OWN_MANIFEST = re.compile(r"_lobs_(?:md5|sha1|sha256)\.txt\Z")  # as Muniment names it
_MANIFESTS = ("", ".txt", ".md5", ".sha1", ".sha256")
_MOST = 1 << 24  # bytes of a text file that are looked at


def check_layout(report: Report, where: str, lob_folder: str, file: str, column: int) -> None:
    """L_7.1-0 for one object outside."""
    report.look("L_7.1-0")
    folder, name = _FOLDER.fullmatch(lob_folder.removeprefix("./")), _FILE.match(file)
    if not folder or not name:
        report(
            "L_7.1-0", where,
            f"{lob_folder!r} and {file!r} are not the folders and names of 7.1",
            Severity.WARNING,
            kind=where,
        )  # fmt: skip
    elif (folder["table"], int(folder["column"])) != (name["table"], int(name["column"])) or (
        int(name["column"]) != column
    ):
        report(
            "L_7.1-0", where, f"{lob_folder!r} and {file!r} do not name this table and column",
            Severity.WARNING,
            kind=where,
        )  # fmt: skip


def check_segments(report: Report, where: str, segments: set[int]) -> None:
    """S_8.1-0 for one column."""
    report.look("S_8.1-0")
    wanted = set(range(max(segments) + 1))
    if missing := sorted(wanted - segments):
        names = ", ".join(f"seg_{number}" for number in missing[:5])
        message = f"no object lies in {names}, although later segments are used"
        report("S_8.1-0", where, message, Severity.WARNING)


def segment_of(file: str) -> int | None:
    """The number of the segment that a file lies in."""
    match = re.match(r"(?:\./)?seg_(\d{1,9})(?:\.zip)?/", file)
    return int(match[1]) if match else None


def check_split(report: Report, path: Path) -> None:
    """S_8.2-0."""
    match = _PART.fullmatch(path.name)
    name = match["name"] if match else path.name
    numbers = sorted(_numbers(path.parent, name))
    if not numbers:
        return
    report.look("S_8.2-0")
    if path.name == name and path.exists():
        report("S_8.2-0", str(path), "the archive is there whole and in parts", Severity.WARNING)
    wanted = range(1, max(numbers) + 1)
    for missing in [number for number in wanted if number not in numbers][:5]:
        report("S_8.2-0", f"{name}_part{missing:03}", "this part is missing")


def _numbers(folder: Path, name: str) -> Iterable[int]:
    for other in folder.iterdir() if folder.is_dir() else ():
        match = _PART.fullmatch(other.name)
        if match and match["name"] == name and len(match["number"]) < 7:
            yield int(match["number"])


def check_companions(archive: Archive) -> None:
    """S_8.1.2-0 and S_8.1.3-0: text files beside the archive."""
    folder = archive.path.parent
    if not folder.is_dir():
        return
    for other in sorted(folder.iterdir()):
        if other.name.lower() == "mapping.txt" and other.is_file():
            _check_mapping(archive, other)
        elif _is_manifest(other.name) and other.is_file():
            _check_manifest(archive, other)


def _is_manifest(name: str) -> bool:
    if _OWN_MANIFEST.search(name):
        return True
    return "manifest" in name.lower() and Path(name).suffix in _MANIFESTS


def _lines(path: Path) -> list[str] | None:
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.read(_MOST).splitlines()
    except (OSError, UnicodeDecodeError):
        return None


def _check_mapping(archive: Archive, path: Path) -> None:
    report = archive.report
    report.look("S_8.1.2-0")
    if path.name != "mapping.txt":
        report("S_8.1.2-0", path.name, "the mapping file is called mapping.txt")
    lines = _lines(path)
    if lines is None:
        report("S_8.1.2-0", path.name, "it is not text in UTF-8")
    for number, line in enumerate(lines or (), 1):
        folder, space, uri = line.strip().partition(" ")
        if not line.strip():
            continue
        if not space or not folder or " " in uri.strip() or not _is_uri(uri.strip()):
            where = f"{path.name}, line {number}"
            report("S_8.1.2-0", where, "it is not a folder, a space and a URI", kind="line")


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _check_manifest(archive: Archive, path: Path) -> None:
    report = archive.report
    report.look("S_8.1.3-0")
    lines = _lines(path)
    if lines is None:
        report("S_8.1.3-0", path.name, "it is not text in UTF-8")
    for number, line in enumerate(lines or (), 1):
        if line.strip() and not _LINE.fullmatch(line):
            where = f"{path.name}, line {number}"
            report(
                "S_8.1.3-0", where, "it is not a digest and a name as md5sum writes", kind="line"
            )
