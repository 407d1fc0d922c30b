from pathlib import Path

from conformance import Conformance

from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal


class TestMemoryJournal(Conformance):
    def make(self, folder: Path) -> Journal:
        return MemoryJournal()
