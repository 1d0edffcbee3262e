"""A process that answers one query and ends: whatever the query does, it does it here.

``python -m muniment.query.worker`` reads a request as JSON from stdin and writes the rows as an
Arrow stream to stdout. The memory of the process is limited by the system; its time by the parent,
which ends it. Errors are a sentence on stderr.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Answer the request on stdin."""
    # What is slow to load comes first: a process that waits for its request has it all.
    import pyarrow as pa

    from muniment.errors import MunimentError
    from muniment.query.session import Limits, attach

    line = sys.stdin.buffer.readline()
    if not line:
        return
    request = json.loads(line)
    _limit_memory(request["process_mb"])
    limits = Limits(request["seconds"], request["rows"], request["memory_mb"], threads=1)
    archives, indexes, roots = (
        pickle.loads(b64decode(request[kind]))  # written by the process that started this one
        for kind in ("archives", "indexes", "roots")
    )
    try:
        with attach(archives, indexes, limits, roots=roots) as session:
            result = session.execute(request["sql"])
            with pa.ipc.new_stream(sys.stdout.buffer, result.schema) as stream:
                for batch in result.batches:
                    stream.write_batch(batch)
        sys.stdout.buffer.flush()
    except (MunimentError, pa.ArrowException) as error:
        _fail(str(error))
    except MemoryError:
        _fail("the query needs more memory than it may have; ask for less")


def _limit_memory(megabytes: int) -> None:
    """Let this process have so much more than it has now, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if _has_proc() else 0
    limit = pages * resource.getpagesize() + (megabytes << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft: Any = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _has_proc() -> bool:
    return Path("/proc/self/statm").exists()


def _fail(sentence: str) -> None:
    sys.stderr.write(json.dumps({"error": sentence}) + "\n")
    sys.stderr.flush()
    sys.exit(3)


if __name__ == "__main__":
    main()
