"""How far the output of each container was read, kept on disk so that it outlives us.

The engine keeps the output, the journal keeps what was answered; what neither knows is where the
next reading begins. It is written before a reading is answered, with the answer under its key: an
action that is repeated after a crash gets the same text again. So is who was told how a container
ended, and which ports of this machine lead into it.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from textor.errors import CapabilityError
from textor.values import Json

#: So many answers are kept: more than one iteration reads at the same time.
ANSWERS = 16


class Positions:
    """One small file for each container in `folder`; nothing is kept when that is None."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, dict[str, Json]] = {}

    def of(self, id: str) -> dict[int, int]:
        """Bytes read of stdout (1) and stderr (2)."""
        known = self._load(id)
        return {number: int(known["read"].get(str(number), 0)) for number in (1, 2)}

    def answer(self, id: str, key: str) -> Json:
        """What the action with this key was answered; None when it was not."""
        return self._load(id)["answers"].get(key)

    def keep(self, id: str, key: str, read: dict[int, int], answer: Json) -> None:
        """Keep how far it is read and what was answered. Raises `CapabilityError` when that cannot be
        written (disk full); it is as if nothing had been read then."""
        known = self._load(id)
        answers = {**known["answers"], key: answer}
        for old in list(answers)[:-ANSWERS]:
            del answers[old]
        counts = {str(number): count for number, count in read.items()}
        try:
            self._write(id, {**known, "read": counts, "answers": answers})
        except OSError as error:
            raise CapabilityError(
                f"Nothing was read: how far it is read cannot be kept in {self._folder} ({error.strerror}).",
                "Free some space and read again; the output stays.",
            ) from None

    def note(self, id: str, what: str, value: Json) -> None:
        """Keep something small beside it. Without space it is known to this process alone."""
        known = {**self._load(id), what: value}
        with contextlib.suppress(OSError):
            self._write(id, known)
        self._known[id] = known

    def noted(self, id: str, what: str) -> Json:
        """What was noted last; None when nothing was."""
        return self._load(id).get(what)

    def forget(self, id: str) -> None:
        self._known.pop(id, None)
        if self._folder is not None:
            self._path(id).unlink(missing_ok=True)

    def forget_others(self, ids: set[str]) -> None:
        """Forget all containers but these."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.glob("*.*"):  # also what a crash left half written
                if path.suffix != ".json" or not any(id.startswith(path.stem) for id in ids):
                    path.unlink(missing_ok=True)

    def _load(self, id: str) -> dict[str, Json]:
        if id not in self._known:
            known: dict[str, Json] = {"read": {}, "answers": {}}
            if self._folder is not None and self._path(id).exists():
                try:
                    known |= json.loads(self._path(id).read_text())
                except ValueError:
                    pass  # a torn file: then everything is read again, and nothing is lost
            self._known[id] = known
        return self._known[id]

    def _write(self, id: str, known: dict[str, Json]) -> None:
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(id)
            new = path.with_suffix(".new")
            try:
                new.write_text(json.dumps(known))
                new.replace(path)
            except OSError:
                new.unlink(missing_ok=True)
                raise
        self._known[id] = known

    def _path(self, id: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{id[:32]}.json"
