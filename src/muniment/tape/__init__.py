"""XMLtapes: many XML records in one valid XML file, found by byte offset."""

from muniment.tape.index import TapeEntry, TapeIndex, build_index
from muniment.tape.reader import Tape
from muniment.tape.records import TapeHead, TapeRecord
from muniment.tape.scan import scan
from muniment.tape.write import TAPE_END, tape_head, tape_record

__all__ = [
    "TAPE_END", "Tape", "TapeEntry", "TapeHead", "TapeIndex", "TapeRecord", "build_index", "scan",
    "tape_head", "tape_record",
]  # fmt: skip
