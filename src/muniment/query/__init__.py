"""SQL over SIARD archives without restoring them: ``open_archives({name: path}).execute(sql)``."""

from typing import TYPE_CHECKING

from muniment.lazily import on_demand

if TYPE_CHECKING:
    from muniment.query.session import Archives, Limits, Result, open_archives

__all__ = ["Archives", "Limits", "Result", "open_archives"]

__getattr__ = on_demand(__name__, dict.fromkeys(__all__, "session"))
