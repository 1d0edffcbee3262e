"""PostgreSQL servers as sources and targets, ``postgresql://user@host/database``."""

from muniment.databases.postgresql.source import PostgresqlSource, open_source
from muniment.databases.postgresql.target import PostgresqlTarget, create_target

__all__ = ["PostgresqlSource", "PostgresqlTarget", "create_target", "open_source"]
