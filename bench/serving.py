"""The steps that measure the server: real load generators on one side, nginx as the yardstick."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from measure import Failed, memory_of, muniment, run
from report import Result
from store_work import make_files

__all__ = ["SERVING_STEPS"]

GET_RECORD, RESOLVE = 2_000, 3_000  # requests/s
LISTED = 20_000  # records/s
PATIENCE = 50.0  # ms in which 99 of 100 are answered at half the load
GROWTH = 1.2  # of the memory while requests go on
_CONNECTIONS = 32
_SECONDS = 10
_TOOLS = {"wrk": "wrk", "nginx": "nginx-light", "curl": "curl"}
_WORK = Path(__file__).with_name("store_work.py")
# Names are asked for in an order that no cache can foresee; with a delay, at a steady rate.
_SCRIPT = """
local paths, delay_ms = {}, %d
for line in io.lines("%s") do paths[#paths + 1] = line end
math.randomseed(17)
request = function() return wrk.format("GET", paths[math.random(#paths)]) end
if delay_ms > 0 then delay = function() return delay_ms end end
"""


class Bench(Protocol):
    """What the steps need of a benchmark."""

    large: int
    data: Path

    def file(self, rows: int, suffix: str) -> Path: ...


def _serve(bench: Bench) -> Iterator[Result]:
    _ensure("wrk")
    count = max(bench.large // 125, 300)  # 20,000 of 2.5 million
    store = _store(bench, count)
    names = _names(store, count)
    records = [f"/oai?verb=GetRecord&metadataPrefix=didl&identifier={n}" for n, _ in names]
    resolved = [f"/pdi/{pdi.removeprefix('pdi://')}" for _, pdi in names]
    seconds = _SECONDS if bench.large >= 1_000_000 else 1
    with _serving(store) as (address, process):
        for paths in (records, resolved):  # everything is loaded and read once
            _loaded(address, paths, seconds, 0)
        _harvested(address, count)
        before = memory_of(process)
        for step, paths, goal in (
            ("GetRecord", records, GET_RECORD), ("resolve a PDI", resolved, RESOLVE),
        ):  # fmt: skip
            full = _loaded(address, paths, seconds, 0)
            met = full.rate >= goal and not full.errors
            yield Result(
                f"{step}, {count:,} objects", f"{full.rate:,.0f} /s", f"≥ {goal:,} /s", met
            )
            half = _loaded(address, paths, seconds, goal // 2)
            slow = f"{half.slowest:.1f} ms at {half.rate:,.0f} /s"
            met = half.slowest < PATIENCE and not half.errors
            yield Result(f"{step}, the slowest of 100", slow, f"< {PATIENCE:.0f} ms", met)
        rate = _harvested(address, count)
        goal_text = f"≥ {LISTED:,} records/s"
        yield Result("ListRecords", f"{rate:,.0f} records/s", goal_text, rate >= LISTED)
        after = memory_of(process)
        shown = f"{before / 1e6:.0f} → {after / 1e6:.0f} MB"
        yield Result("serve, memory", shown, "flat", after <= GROWTH * before)


def _serve_large(bench: Bench) -> Iterator[Result]:
    """A large datastream out of the store, and the same file from nginx."""
    _ensure("nginx", "curl")
    size = max(bench.large * 430, 50_000_000)  # a GiB of 2.5 million
    store, path = bench.file(size, ".serving"), bench.file(size, ".bin")
    with path.open("wb") as stream, Path("/dev/urandom").open("rb") as source:
        for _ in range(size // 1_000_000):
            stream.write(source.read(1_000_000))
    run(muniment("store init", "store", "init", str(store)))
    run(muniment("store add", "store", "add", str(store), str(path), "--content-id", "urn:b:large"))
    question = "/openurl?url_ver=Z39.88-2004&rft_id=urn:b:large"
    with _serving(store) as (address, process), _nginx(path) as other:
        rates: dict[str, list[float]] = {"ours": [], "nginx": []}
        before = memory_of(process)
        for _ in range(3):
            rates["nginx"].append(_fetched(other, size))
            rates["ours"].append(_fetched(address + question, size))
        after = memory_of(process)
    ours, theirs = max(rates["ours"]), max(rates["nginx"])
    step = f"a datastream of {size / 1e6:,.0f} MB"
    beside = f"nginx: {theirs / 1e6:,.0f} MB/s"
    yield Result(
        step, f"{ours / 1e6:,.0f} MB/s", "≥ half of nginx", ours >= theirs / 2, beside,
        theirs / ours,
    )  # fmt: skip
    shown = f"{before / 1e6:.0f} → {after / 1e6:.0f} MB"
    yield Result(f"{step}, memory", shown, "flat", after <= GROWTH * before)


SERVING_STEPS: dict[str, Callable[[Bench], Iterator[Result]]] = {
    "serve": _serve,
    "serve-large": _serve_large,
}


def _store(bench: Bench, count: int) -> Path:
    listing = make_files(bench.data / f"files-{count}", count)
    store = bench.file(count, ".served")
    shutil.rmtree(store, ignore_errors=True)
    run(muniment("store init", "store", "init", str(store)))
    run(muniment("store add", "store", "add", str(store), "--from", str(listing)))
    return store


def _names(store: Path, count: int) -> list[tuple[str, str]]:
    """Return package and PDI of every object."""
    command = [sys.executable, str(_WORK), "names", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    if len(found) != count:
        raise Failed(f"the store has {len(found)} objects, not {count}")
    return [(package, pdi) for package, pdi in found]


@contextmanager
def _serving(store: Path) -> Iterator[tuple[str, int]]:
    """Run the server as users do; it ends when the step does."""
    start = "from muniment.cli.main import main; main()"
    command = [sys.executable, "-c", start, "serve", str(store), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as server:
        try:
            assert server.stdout is not None
            match = re.search(r"http://[^/ ]+", server.stdout.readline())
            if match is None:
                raise Failed("the server did not start")
            _wait_for(match[0])
            yield match[0], server.pid
        finally:
            server.terminate()
            server.wait(60)


@contextmanager
def _nginx(path: Path) -> Iterator[str]:
    """Serve the folder of a file with nginx, as plain as it can be."""
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="nginx-") as folder:
        (Path(folder) / "conf").write_text(
            f"daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/log;"
            f"events {{}} http {{ access_log off; sendfile on; tcp_nopush on;"
            f"client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;"
            f"fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;"
            f"server {{ listen 127.0.0.1:{port}; root {path.parent}; }} }}"
            + (" user root;" if os.getuid() == 0 else "")
        )
        command = [_found("nginx"), "-c", f"{folder}/conf", "-p", folder]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                _wait_for(f"http://127.0.0.1:{port}")
                yield f"http://127.0.0.1:{port}/{quote(path.name)}"
            finally:
                server.terminate()
                server.wait(60)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str) -> None:
    parts = urlsplit(address)
    for _ in range(300):
        try:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            time.sleep(0.1)
    raise Failed(f"{address} does not answer")


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk found: requests/s, the time in ms of the 99th of 100, and failures."""

    rate: float
    slowest: float
    errors: int


def _loaded(address: str, paths: Sequence[str], seconds: int, rate: int) -> Load:
    """Let wrk ask, as fast as it can or at a rate."""
    delay = _CONNECTIONS * 1000 // rate if rate else 0
    with tempfile.TemporaryDirectory(prefix="wrk-") as folder:
        listing, script = Path(folder) / "paths", Path(folder) / "script.lua"
        listing.write_text("".join(f"{path}\n" for path in paths))
        script.write_text(_SCRIPT % (delay, listing))
        command = [
            _found("wrk"), "-t1", f"-c{_CONNECTIONS}", f"-d{seconds}s", "--latency", "-s",
            str(script), address,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
    return _parse_wrk(done.stdout)


def _parse_wrk(text: str) -> Load:
    rate = re.search(r"Requests/sec:\s*([\d.]+)", text)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    if rate is None or slow is None:
        raise Failed(f"wrk: {text.strip()[-200:]}")
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", text)
    errors = int(failed[1]) if failed else 0
    errors += sum(map(int, sockets.groups())) if sockets else 0
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[slow[2]]
    return Load(float(rate[1]), float(slow[1]) * unit, errors)


def _harvested(address: str, count: int) -> float:
    """Follow the tokens of ListRecords to the end; return records/s."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    question, found = "metadataPrefix=didl", 0
    started = time.perf_counter()
    while question:
        connection.request("GET", f"/oai?verb=ListRecords&{question}")
        data = connection.getresponse().read()
        found += data.count(b"<record>")
        token = re.search(rb"<resumptionToken[^>]*>([^<]+)<", data[-1000:])
        question = f"resumptionToken={quote(token[1].decode())}" if token else ""
    seconds = time.perf_counter() - started
    connection.close()
    if found != count:
        raise Failed(f"the harvest has {found} records, not {count}")
    return found / seconds


def _fetched(url: str, size: int) -> float:
    """Return the bytes a second at which curl gets a file."""
    form = "%{size_download} %{time_total}"
    command = [_found("curl"), "-sSf", "-o", "/dev/null", "-w", form, url]
    done = subprocess.run(command, capture_output=True, text=True)
    got, seconds = [*done.stdout.split(), "0", "1"][:2]
    if done.returncode or abs(int(got) - size) >= 1_000_000:
        raise Failed(f"curl: {done.stderr.strip() or got}")
    return int(got) / float(seconds)


def _found(tool: str) -> str:
    found = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")
    if found is None:
        raise Failed(f"there is no {tool}")
    return found


def _ensure(*tools: str) -> None:
    """Install what is missing from the distribution's packages."""
    missing = []
    for tool in tools:
        try:
            _found(tool)
        except Failed:
            missing.append(_TOOLS[tool])
    if not missing:
        return
    root = [] if os.getuid() == 0 else ["sudo"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    command = [*root, *quiet, "apt-get", "install", "-qq", "-y", *missing]
    print(f"  installing {' '.join(missing)} …", file=sys.stderr)
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        raise Failed(f"these packages are missing: {' '.join(missing)}")
