"""How many rows of a table DuckDB writes at once, chosen by how large they are.

DuckDB holds a whole row group in memory while it is filled and written: 122,880 rows, which for
texts of two kilobytes took two gigabytes. The size is that of a file for as long as it is open, so
a file is opened anew where rows of another size come.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["USUAL_ROWS", "rows_together"]

USUAL_ROWS = 122_880  # DuckDB's own
_LEAST_ROWS = 2048  # a vector of DuckDB, which never takes less
_USUAL_BYTES = 1 << 25  # of that many rows: more is too much
_FEWER_BYTES = 1 << 23  # of a row group where rows are large
_FEW_BYTES = 1 << 24  # rows of less do no harm, whatever the row groups


def rows_together(rows: pa.Table, now: int) -> int:
    """Return how many rows like these are to be one row group, where ``now`` are.

    Opening a file takes a moment: small tables and small differences are not worth it.
    """
    if rows.nbytes < _FEW_BYTES and rows.num_rows <= now:
        return now
    size = rows.nbytes / rows.num_rows
    if size * USUAL_ROWS <= _USUAL_BYTES:
        return USUAL_ROWS
    wanted = max(int(_FEWER_BYTES / size) // _LEAST_ROWS, 1) * _LEAST_ROWS
    return now if wanted // 4 < now <= wanted else wanted
