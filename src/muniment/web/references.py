"""An open archive, or a part of it, as something that can be cited."""

from __future__ import annotations

from datetime import UTC, datetime

from muniment.citations.styles import Reference
from muniment.web.site import OpenArchive

__all__ = ["reference_of"]


def reference_of(archive: OpenArchive, part: str, fragment: str, base: str = "") -> Reference:
    """Return an archive, or a part of it, as something that can be cited."""
    database = archive.database
    name = archive.pdi or archive.file
    identifier = f"{name}#{fragment}" if fragment else name
    url = ""
    if archive.pdi and base:
        url = f"{base}/pdi/{identifier.removeprefix('pdi://').replace('#', '%23')}"
    owner = database.data_owner if database.data_owner != "unspecified" else ""
    return Reference(
        title=database.dbname,
        identifier=identifier,
        seen=datetime.now(UTC).date(),
        author=owner,
        publisher=database.archiver or "",
        issued=database.archival_date.rstrip("Z"),
        version=archive.pdi.rpartition(".")[2] if archive.pdi else "",
        part=part,
        url=url,
        sha256=archive.digest,
        medium="Archived database, SIARD",
    )
