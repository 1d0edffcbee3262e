"""SQL over SIARD archives without restoring them: ``open_archives({name: path}).execute(sql)``."""

from muniment.query.session import Archives, Limits, Result, open_archives

__all__ = ["Archives", "Limits", "Result", "open_archives"]
