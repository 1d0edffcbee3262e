"""The commands of docs/serve.md on writing, access and the API work as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
from doors import serving

from muniment.repository import Session, Source, Store

DOCS = Path(__file__).resolve().parents[2] / "docs" / "serve.md"
OURS = ("Writing", "Who may read", "The API")


def blocks() -> list[str]:
    text = DOCS.read_text(encoding="utf-8")
    parts = [re.search(rf"(?ms)^## {title}\n(.*?)(?=^## |\Z)", text) for title in OURS]
    return [
        block for part in parts if part for block in re.findall(r"(?s)```sh\n(.*?)```", part[1])
    ]


def test_the_commands_work(tmp_path: Path) -> None:
    store = tmp_path / "archive"
    with Store.create(store, series="db.example.ch") as made, Session(made) as session:
        session.add([Source("t.txt", b"trees", "text/plain")], contents=["urn:example:trees"])
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.4 one")
    home = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{home}{os.pathsep}{os.environ['PATH']}"}
    found = blocks()
    assert len(found) == 4

    def run(script: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout

    with serving(store) as (base, _):
        tokens, putting, access, api = (
            block.replace("http://127.0.0.1:8180", base).replace("curl ", "curl -sSf ")
            for block in found
        )
        create, listing, revoke = tokens.strip().split("\n")
        run(create)
        [known] = json.loads(run(f"{listing} --json"))["tokens"]
        run(revoke.replace("3f6c1a90b2d4", known["id"]))
        assert "revoked" in run(listing)
        make, first, second = putting.strip().split("\n")
        pdi = json.loads(run(f"{make}\n{first}"))["pdi"]
        name = pdi.removeprefix("pdi://").removesuffix(".1")
        second = re.sub(r"db\.example\.ch/2026/11/16/1\.pdf", name, second)
        assert json.loads(run(f"{make}\n{second}"))["pdi"] == f"pdi://{name}.2"
        shown = run(re.sub(r"db\.example\.ch/2026/11/16/1\.pdf", name, access))
        assert "closed  " in shown
        assert "personal data until 2050" in shown
        assert httpx2.get(f"{base}/pdi/{name}.1").status_code == 401
        assert httpx2.get(f"{base}/pdi/{name}.2").status_code == 200
        read, mint = api.strip().split("\n")
        run("muniment store access archive urn:example:trees --level open --by me")
        assert json.loads(run(read))["contents"][-1] == "urn:example:trees"
        assert len(json.loads(run(f"{make}\n{mint}"))["pdis"]) == 3
