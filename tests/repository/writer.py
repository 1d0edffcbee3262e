"""Adds objects to a store until it is killed; prints what was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

from muniment.repository import Session, Source, Store, session

session._GROUP = 3


def main(folder: Path, name: str, count: int) -> None:
    print("ready", flush=True)
    with Store(folder) as store, Session(store) as batch:
        for number in range(count):
            data = f"{name}-{number}\n".encode() * (1 + number % 700)
            batch.add(
                [Source(f"{number}.txt", data, "text/plain")],
                contents=[f"urn:kill:{name}:{number}"],
            )
            for added in batch.acknowledged:
                print(added.package, added.pdi, added.contents[0], flush=True)
            batch.acknowledged = []
    for added in batch.acknowledged:
        print(added.package, added.pdi, added.contents[0], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
