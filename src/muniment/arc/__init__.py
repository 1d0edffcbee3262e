"""ARC and WARC files: datastreams one behind the other, found by byte offset."""

from muniment.arc.formats import FORMATS, ArcFormat, format_of
from muniment.arc.index import ArcIndex, build_index, cdxj
from muniment.arc.reader import read_arc_file
from muniment.arc.records import ArcRecord
from muniment.arc.windows import open_record

__all__ = [
    "FORMATS", "ArcFormat", "ArcIndex", "ArcRecord", "build_index", "cdxj",
    "format_of", "open_record", "read_arc_file",
]  # fmt: skip
