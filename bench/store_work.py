"""The work of the store's benchmarks that has no command of its own; one process per call."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from muniment.tape import build_index, scan, tape_head, tape_record
from muniment.tape.exact import read_exactly
from muniment.tape.write import TAPE_END

__all__ = ["make_files", "make_tape"]

_RECORD = 9000  # bytes, as in the paper of 2005
_DATE = "2005-09-09T21:00:04Z"


def make_tape(path: Path, records: int, size: int = _RECORD, awkward: bool = False) -> Path:
    """Write a tape of so many records, unless it is there."""
    if path.exists():
        return path
    line = (
        '<didl:Item id="i-{}"><dc:title>Digital object &amp; its {} parts</dc:title></didl:Item>\n'
    )
    partial = path.with_suffix(".partial")
    with partial.open("wb") as stream:
        stream.write(tape_head("urn:bench:tape", [], _DATE))
        for number in range(records):
            lines = "".join(line.format(number + n, n) for n in range(max(size // 85, 1)))
            hidden = (
                "<!-- </ta:record> --><![CDATA[</ta:record></ta:tapeRecord>]]>" if awkward else ""
            )
            document = (
                f'<didl:DIDL xmlns:didl="urn:d" xmlns:dc="urn:dc">{hidden}{lines}</didl:DIDL>'
            )
            record = tape_record(f"urn:bench:{number}", _DATE, document.encode())
            if awkward:
                record = record.replace(b"<ta:tapeRecord>", b"<!-- odd --><ta:tapeRecord\n a='>' >")
                record = record.replace(b"</ta:record></ta:tapeR", b"</ta:record\n></ta:tapeR")
            stream.write(record)
        stream.write(TAPE_END)
    partial.rename(path)
    return path


def make_files(folder: Path, count: int) -> Path:
    """Write so many small files and the list of them, unless it is there; return the list."""
    listing = folder / "list"
    if listing.exists():
        return listing
    names = []
    for number in range(count):
        path = folder / f"{number // 1000:04}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"object {number}\n" * (1 + number % 50))
        names.append(f"{path}\turn:bench:{number}\n")
    listing.write_text("".join(names))
    return listing


def index(tape: str, place: str) -> None:
    """Make the index of a tape."""
    build_index(Path(tape), Path(place))


def prove(tape: str) -> None:
    """Fail unless the quick scanner finds exactly what expat finds."""
    with Path(tape).open("rb") as one, Path(tape).open("rb") as two:
        for quick, exact in zip(scan(one, tape)[1], read_exactly(two, tape), strict=True):
            if quick[:6] != exact[:6]:
                raise SystemExit(f"{quick} is not {exact}")


def get(store: str, records: str, count: str) -> None:
    """Read records at random; print the microseconds that one takes."""
    from muniment.repository import Store

    chosen = [f"urn:bench:{random.randrange(int(records))}" for _ in range(int(count))]
    with Store(Path(store)) as opened:
        opened.read(opened.find(chosen[0]))
        started = time.perf_counter()
        for name in chosen:
            opened.read(opened.find(name))
        print((time.perf_counter() - started) / len(chosen) * 1e6)


def names(store: str) -> None:
    """Print the package and the PDI of every object."""
    from muniment.repository import Store

    with Store(Path(store)) as opened:
        for found in opened.catalogue.records(kind="object"):
            print(found.identifier, found.pdi, sep="\t")


_WORK: dict[str, Callable[..., None]] = {
    "index": index, "prove": prove, "get": get, "names": names,
}  # fmt: skip

if __name__ == "__main__":
    _WORK[sys.argv[1]](*sys.argv[2:])
