"""DuckDB files as sources and targets, ``duckdb:///file``."""

from muniment.databases.duckdb.source import DuckdbSource, open_source
from muniment.databases.duckdb.target import DuckdbTarget, create_target

__all__ = ["DuckdbSource", "DuckdbTarget", "create_target", "open_source"]
