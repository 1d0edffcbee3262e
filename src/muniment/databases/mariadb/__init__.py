"""MariaDB and MySQL servers as sources and targets, ``mariadb://user@host/database``."""

from muniment.databases.mariadb.source import MariadbSource, open_source
from muniment.databases.mariadb.target import MariadbTarget, create_target

__all__ = ["MariadbSource", "MariadbTarget", "create_target", "open_source"]
