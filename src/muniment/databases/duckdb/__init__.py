"""DuckDB files as sources and targets, ``duckdb:///file``."""

from typing import TYPE_CHECKING

from muniment.lazily import on_demand

if TYPE_CHECKING:
    from muniment.databases.duckdb.source import DuckdbSource, open_source
    from muniment.databases.duckdb.target import DuckdbTarget, create_target

__all__ = ["DuckdbSource", "DuckdbTarget", "create_target", "open_source"]

_SOURCE = ("DuckdbSource", "open_source")
__getattr__ = on_demand(
    __name__, {name: "source" if name in _SOURCE else "target" for name in __all__}
)
