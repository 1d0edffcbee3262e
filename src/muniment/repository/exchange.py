"""Moving tapes and ARC files between stores: whole, or what a question selects.

Everything that leaves has a manifest that ``sha256sum -c`` understands. Everything that comes in is
read completely before a byte of it is kept; what is there already changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from uuid import UUID

from lxml import etree

from muniment.arc import ArcFormat, format_of
from muniment.errors import DigestMismatch, FormatError, StoreError, UsageError
from muniment.files import new_file
from muniment.markup import quoteattr
from muniment.objects import didl_statement
from muniment.objects.didl import parse
from muniment.repository.catalogue import Found
from muniment.repository.entries import Entry, entry_of, entry_xml
from muniment.repository.incoming import Incoming, Seen, chunks
from muniment.repository.provenance import harvest_of, harvested_about, note_imports, origins
from muniment.repository.session import Session
from muniment.repository.settings import new_uuid, now
from muniment.repository.store import Store
from muniment.tape.records import STORE
from muniment.tape.write import SOFTWARE, TAPE_END, tape_head, tape_record

if TYPE_CHECKING:
    pass

__all__ = [
    "MANIFEST",
    "Moved",
    "export_selection",
    "export_store",
    "import_files",
    "import_records",
]

MANIFEST = "manifest-sha256.txt"
_CHUNK = 1 << 20
_OAI = "http://www.openarchives.org/OAI/2.0/"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


class Moved(NamedTuple):
    """What was moved, and what was there already."""

    files: int
    records: int
    datastreams: int
    known: int


# Out


def export_store(store: Store, folder: Path) -> Moved:
    """Copy every sealed file, with a manifest."""
    _make(folder)
    lines = []
    for file in store.catalogue.files():
        if not file.sealed:
            continue
        digest = hashlib.sha256()
        with (
            store.open_file(file.id) as source,
            new_file(folder / file.name) as copy,
        ):
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                copy.write(chunk)
        lines.append((digest.hexdigest(), file.name))
    _write_manifest(folder, lines)
    counts = store.catalogue.counts()
    return Moved(len(lines), counts["records"], counts["datastreams"], 0)


def export_selection(store: Store, folder: Path, chosen: Iterable[Found]) -> Moved:
    """Write the chosen records, as they are, onto a new tape, and their datastreams beside it."""
    _make(folder)
    tape, arc, form = new_uuid(), new_uuid(), format_of(store.settings.format)
    tape_name, arc_name = f"{tape}.xml", f"{arc}{form.suffix}"
    records = streams = 0
    found = list(chosen)
    with new_file(folder / arc_name) as target:
        facts = {"software": SOFTWARE, "tape": f"urn:uuid:{tape}"}
        target.write(form.first(f"urn:uuid:{arc}", arc_name, now(), facts))
        for each in found:
            for identifier in _streams(store, each):
                _copy_stream(store, identifier, target, form)
                streams += 1
    if not streams:
        (folder / arc_name).unlink()
    arcs = [f"urn:uuid:{arc}"] if streams else []
    with new_file(folder / tape_name) as target:
        target.write(tape_head(f"urn:uuid:{tape}", arcs, now()))
        for each in found:
            target.write(_record_again(store, each))
            records += 1
        target.write(TAPE_END)
    names = [tape_name, *([arc_name] if streams else [])]
    _write_manifest(folder, [(_digest(folder / name), name) for name in names])
    return Moved(len(names), records, streams, 0)


def _streams(store: Store, found: Found) -> list[str]:
    if not found.streams:
        return []
    return [stream.identifier for stream in store.object(found).streams if stream.identifier]


def _record_again(store: Store, found: Found) -> bytes:
    """Return a record for another tape; a foreign one that leaned on its tape stands alone now."""
    document = store.document(found)
    known = store.catalogue.memberships(found)
    form = next((name for kind, name in known if kind == "form"), "")
    collections = tuple(name for kind, name in known if kind == "collection")
    digest = hashlib.sha256(document).hexdigest()
    entry = Entry(found.kind, digest, found.pdi, form=form, collections=collections)
    if found.kind == "object":
        thing = store.object(found)
        contents = tuple(name for name in thing.contents if name and name != found.pdi)
        streams = tuple(_streams(store, found))
        entry = entry._replace(contents=contents, streams=streams, size=found.size)
    about = origins(store, found)
    return tape_record(found.identifier, found.date, document, entry_xml(entry), *about)


def _copy_stream(store: Store, identifier: str, target: BinaryIO, form: ArcFormat) -> None:
    record = store.stream(identifier).record
    digest = record.sha256
    with store.open_stream(identifier) as source:
        found = hashlib.sha256()
        for chunk in chunks(source):
            found.update(chunk)
        if digest and digest != found.hexdigest():
            raise DigestMismatch(identifier, "SHA-256", digest, found.hexdigest())
        source.seek(0)
        header = form.header(
            new_uuid(), identifier, record.date, record.media_type, record.size, found.hexdigest(),
            record.kind,
        )  # fmt: skip

        def pieces() -> Iterator[bytes]:
            yield header
            yield from chunks(source)
            yield form.end

        for piece in form.pieces(pieces()):
            target.write(piece)


def _make(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)


def _write_manifest(folder: Path, lines: Sequence[tuple[str, str]]) -> None:
    with new_file(folder / MANIFEST) as stream:
        for digest, name in sorted(lines, key=lambda line: line[1]):
            stream.write(f"{digest}  {name}\n".encode())


# In


def import_files(store: Store, paths: Sequence[Path]) -> Moved:
    """Take in tapes and ARC files, or folders with a manifest; everything or nothing."""
    files: dict[Path, str] = {}
    for path in paths:
        files.update(_manifest(path) if path.is_dir() else {_existing(path): _digest(path)})
    seen = Seen()
    incoming = [Incoming(store, path, digest, seen) for path, digest in files.items()]
    wanted = [each for each in incoming if not each.known]
    with store.lock():
        for each in sorted(wanted, key=lambda each: not each.is_tape):
            each.take_in()
        if wanted:
            _write_receipt(store, wanted)
            with store.catalogue.change():
                note_imports(store)
    return Moved(
        len(wanted),
        sum(each.count for each in wanted if each.is_tape),
        sum(each.count for each in wanted if not each.is_tape),
        len(incoming) - len(wanted),
    )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return path


def _manifest(folder: Path) -> dict[Path, str]:
    """Return the files that a manifest lists, each proved."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder} has no {MANIFEST}; name the tapes and ARC files one by one")
    files = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _LINE.fullmatch(line)
        if not match or "/" in match[2]:
            raise StoreError(f"{path}: {line[:80]!r} is not a line of a manifest")
        file = _existing(folder / match[2])
        if (found := _digest(file)) != match[1]:
            raise DigestMismatch(str(file), "SHA-256", match[1], found)
        files[file] = match[1]
    return files


def _write_receipt(store: Store, incoming: Iterable[Incoming]) -> None:
    """Note on a tape of our own what came, so that it can be proved later."""
    files = "".join(
        f"<mu:file name={quoteattr(each.name)} from={quoteattr(each.path.name)} "
        f'size="{each.path.stat().st_size}" sha256="{each.digest}"/>'
        for each in incoming
    )
    identifier, created = f"urn:uuid:{new_uuid()}", now()
    element = f'<mu:receipt xmlns:mu="{STORE}" date="{created}">{files}</mu:receipt>'
    document = didl_statement(identifier, created, element.encode())
    entry = Entry("receipt", hashlib.sha256(document).hexdigest())
    with Session(store) as session:
        session.add_record(identifier, created, document, entry)


# Records of any kind


def import_records(store: Store, paths: Sequence[Path]) -> Moved:
    """Put XML documents, or the records of an OAI-PMH harvest, onto a new tape."""
    count = known = 0
    with Session(store) as session:
        for path in paths:
            for identifier, date, document, about in _documents(_existing(path)):
                there = store.catalogue.record(identifier)
                digest = hashlib.sha256(document).hexdigest()
                entry = entry_of(document, digest, identifier)._replace(about=about)
                session.add_record(identifier, date, document, entry)
                known += there is not None and there.sha256 == digest
                count += there is None
    return Moved(int(count > 0), count, 0, known)


def _documents(path: Path) -> Iterator[tuple[str, str, bytes, tuple[bytes, ...]]]:
    data = path.read_bytes()
    root = parse(data, str(path))
    if root.tag != f"{{{_OAI}}}OAI-PMH":
        identifier = root.get("DIDLDocumentId") or root.get("OBJID") or _named(data)
        yield identifier, now(), etree.tostring(root, encoding="utf-8"), ()
        return
    source, harvested = harvest_of(root)
    for record in root.iter(f"{{{_OAI}}}record"):
        header, metadata = record.find(f"{{{_OAI}}}header"), record.find(f"{{{_OAI}}}metadata")
        if header is None or metadata is None or not len(metadata):
            continue  # deleted
        identifier = header.findtext(f"{{{_OAI}}}identifier", "").strip()
        date = header.findtext(f"{{{_OAI}}}datestamp", "").strip()
        if not identifier or not date:
            raise FormatError(f"{path}: a record has no identifier or no datestamp")
        metadata[0].tail = None
        about = harvested_about(record, source, harvested)
        yield identifier, date, etree.tostring(metadata[0], encoding="utf-8"), about


def _named(data: bytes) -> str:
    """A document without an identifier is named by its bytes, so that importing twice is once."""
    return f"urn:uuid:{UUID(bytes=hashlib.sha256(data).digest()[:16], version=5)}"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
