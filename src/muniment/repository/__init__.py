"""The write-once store: tapes and ARC files, and a catalogue that can be thrown away."""

from muniment.repository.session import Added, Session, Source, keep_names
from muniment.repository.settings import Settings
from muniment.repository.store import Store

__all__ = ["Added", "Session", "Settings", "Source", "Store", "keep_names"]
