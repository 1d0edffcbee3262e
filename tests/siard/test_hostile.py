"""Archives that mean harm: every command answers with a sentence, soon, and in little memory."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_archives import ARTIST, META_XML, VALID, Files, write
from click.testing import CliRunner

from muniment.cli.main import cli

XSD0 = "content/schema0/table0/table0.xsd"
PICTURE = "content/schema0/table1/lob6/record0.bin"
MOST = 600_000_000  # bytes of memory
LONGEST = 60  # seconds of a processor, for all commands together


def commands(path: Path) -> list[list[str]]:
    """Every command that opens an archive."""
    home = path.parent
    return [
        ["show", str(path)],
        ["show", str(path), "MAIN.ARTIST"],
        ["query", str(path), "SELECT * FROM ARTIST"],
        ["restore", str(path), f"sqlite:///{home}/back.db"],
        ["convert", str(path), str(home / "new.siard"), "--lobs", "internal"],
        ["compare", str(path), str(path)],
        ["validate", str(path), "--jobs", "1"],
    ]


def run(path: Path) -> list[int]:
    """Run all commands; return their exit codes."""
    started, codes = time.process_time(), []
    for command in commands(path):
        result: Any = CliRunner().invoke(cli, command)
        fault = result.exception
        assert fault is None or isinstance(fault, SystemExit), (command, fault)
        assert "fault of its own" not in result.output, result.output
        codes.append(result.exit_code)
    assert time.process_time() - started < LONGEST
    return codes


def entities(files: Files, name: str) -> Files:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "%b">' % (n, b"&%c;" % (n - 1) * 10) for n in range(98, 110)
    )
    data = files[name].replace(b"?>\n", b"?>\n" + bomb + b"]>", 1)
    data = data.replace(b"City museum", b"&m;").replace("Jürg".encode(), b"&m;")
    assert bomb in data
    return {**files, name: data}


def nested(files: Files, name: str) -> Files:
    end = {META_XML: b"</siardArchive>", ARTIST: b"</table>", XSD0: b"</xs:schema>"}[name]
    deep = b"<a1>" * 10_000 + b"</a1>" * 10_000
    return {**files, name: files[name].replace(end, deep + end)}


def nested_cell(files: Files) -> Files:
    deep = b"<a1>" * 10_000 + b"</a1>" * 10_000
    return {**files, ARTIST: files[ARTIST].replace("Jürg".encode(), deep)}


HARM: dict[str, Callable[[], Files]] = {
    "entities in the metadata": lambda: entities(VALID, META_XML),
    "entities in a table": lambda: entities(VALID, ARTIST),
    "entities in a schema": lambda: entities(VALID, XSD0),
    "deep metadata": lambda: nested(VALID, META_XML),
    "a deep table": lambda: nested(VALID, ARTIST),
    "a deep cell": lambda: nested_cell(VALID),
    "a deep schema": lambda: nested(VALID, XSD0),
    "no table file": lambda: {n: d for n, d in VALID.items() if n != ARTIST},
    "no metadata": lambda: {n: d for n, d in VALID.items() if n != META_XML},
    "empty metadata": lambda: {**VALID, META_XML: b""},
    "an empty table": lambda: {**VALID, ARTIST: b""},
    "no UTF-8 in the metadata": lambda: {
        **VALID, META_XML: VALID[META_XML].replace(b"City", b"C\xfcty")
    },
    "no UTF-8 in a table": lambda: {
        **VALID, ARTIST: VALID[ARTIST].replace("Jürg".encode(), b"J\xfcrg")
    },
    "an entry that climbs": lambda: {**VALID, "../../evil.txt": b"evil"},
    "an absolute entry": lambda: {**VALID, "/etc/evil": b"evil"},
    "a table that is a picture": lambda: {**VALID, ARTIST: bytes(range(256)) * 400},
    "half a table": lambda: {**VALID, ARTIST: VALID[ARTIST][: len(VALID[ARTIST]) // 2]},
}  # fmt: skip


@pytest.mark.parametrize("name", HARM)
def test_harmful_content_gets_a_sentence(name: str, tmp_path: Path) -> None:
    codes = run(write(tmp_path / "museum.siard", HARM[name]()))
    assert set(codes) <= {0, 1, 3}
    assert codes[-1] == 1
    assert not (tmp_path.parent / "evil.txt").exists()


def headers(data: bytes, name: str) -> list[tuple[int, bool]]:
    """Where the local header and the record of an entry stand; whether it is the local one."""
    found = []
    for signature, length, local in ((b"PK\x03\x04", 30, True), (b"PK\x01\x02", 46, False)):
        at = -1
        while (at := data.find(signature, at + 1)) >= 0:
            if data[at + length :].startswith(name.encode()):
                found.append((at, local))
    return found


def patched(name: str, local_at: int, record_at: int, value: int) -> Callable[[bytes], bytes]:
    def patch(data: bytes) -> bytes:
        result = bytearray(data)
        for at, local in headers(data, name):
            result[at + (local_at if local else record_at)] = value
        return bytes(result)

    return patch


def doubled(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as package, pytest.warns(UserWarning, match="Duplicate"):
        package.writestr(ARTIST, VALID[ARTIST])


PATCHES: dict[str, Callable[[bytes], bytes]] = {
    "an encrypted table": patched(ARTIST, 6, 8, 1),
    "encrypted metadata": patched(META_XML, 6, 8, 1),
    "a table of an unknown method": patched(ARTIST, 8, 10, 14),
    "an object of an unknown method": patched(PICTURE, 8, 10, 95),
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-10],
    "cut at the start": lambda data: data[100:],
    "the directory points elsewhere": lambda data: data.replace(b"PK\x01\x02", b"PK\x01\x03", 3),
    "a wrong checksum": lambda data: data.replace(
        struct.pack("<L", zlib.crc32(VALID[ARTIST])), b"\1\2\3\4"
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_harmful_container_gets_a_sentence(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    path.write_bytes(PATCHES[name](path.read_bytes()))
    codes = run(path)
    assert set(codes) <= {0, 1, 3}
    assert codes[-1] == 1
    assert codes[-3:-1] == [3, 3]  # nothing is converted, and nothing compared


def test_two_entries_of_one_name_get_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "museum.siard")
    doubled(path)
    assert run(path) == [3] * 6 + [1]


MEASURED = """
import json, re, sys
sys.path[:0] = [sys.argv[1]]
from pathlib import Path
import test_hostile
codes = test_hostile.run(Path(sys.argv[2]))
(peak,) = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([codes, int(peak) * 1024]))
"""


def measured(path: Path) -> tuple[list[int], int]:
    """Run all commands in a process of their own; return the exit codes and its memory."""
    here = str(Path(__file__).parent)
    environment = {**os.environ, "MUNIMENT_CACHE": str(path.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, here, str(path)],
        capture_output=True, check=True, timeout=600, env=environment,
    )  # fmt: skip
    codes, memory = json.loads(done.stdout.splitlines()[-1])
    return codes, memory


def zeros(size: int) -> bytes:
    """Deflate so many zero bytes without holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


def bomb(path: Path, name: str, packed: bytes, claimed: int) -> Path:
    """Write an archive in which one entry claims to be enormous."""
    plain = write(path.with_name("plain.siard"))
    with zipfile.ZipFile(plain) as source, path.open("wb") as stream:
        records = []
        for info in source.infolist():
            data = source.read(info)
            body, size, crc = zlib.compress(data, 9)[2:-4], len(data), info.CRC
            if info.filename == name:
                body, size, crc = packed, claimed, 0
            extra = struct.pack("<2HQQ", 1, 16, size, len(body))
            label, at = info.filename.encode(), stream.tell()
            fixed = (45, 0x800, 8, 0, 0, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(label), len(extra))
            stream.write(struct.pack("<4s5H3L2H", b"PK\x03\x04", *fixed) + label + extra + body)
            records.append(
                struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 45, *fixed, 0, 0, 0, 0, at)
                + label + extra
            )  # fmt: skip
        start = stream.tell()
        stream.write(b"".join(records))
        size = stream.tell() - start
        count = len(records)
        stream.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, size, start, 0))
    return path


@pytest.mark.parametrize("name", [ARTIST, META_XML, XSD0, PICTURE])
def test_an_entry_that_claims_a_terabyte_takes_little(name: str, tmp_path: Path) -> None:
    codes, memory = measured(bomb(tmp_path / "museum.siard", name, zeros(129 << 20), 1 << 40))
    assert codes[-1] == 1
    assert set(codes) <= {0, 1, 3}
    assert memory < MOST


def test_metadata_of_500_megabytes_take_little(tmp_path: Path) -> None:
    start, _, end = VALID[META_XML].partition(b"City museum")
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = [packer.compress(start)]
    packed += [packer.compress(b"x" * 1_000_000) for _ in range(500)]
    body = b"".join(packed) + packer.compress(end) + packer.flush()
    codes, memory = measured(bomb(tmp_path / "museum.siard", META_XML, body, 500_000_000))
    assert codes == [3] * 6 + [1]
    assert memory < MOST
