"""Where a reply ends by itself: stop strings found in a stream, whoever cuts there.

A server that was given a stop string cuts before it and does not send it; one that does not know
such strings sends on. The kept text has the stop string in both cases (`Stop`).
"""

from __future__ import annotations


class Stops:
    """Feed text; what comes out ends with the first stop string, and then `found` is set."""

    def __init__(self, sequences: tuple[str, ...]) -> None:
        self._sequences = tuple(s for s in sequences if s)
        self._longest = max((len(s) for s in self._sequences), default=1)
        self._tail = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """The part of `text` that is kept. Linear: only the seam with the last piece is read twice."""
        if not self._sequences or self.found:
            return "" if self.found else text
        seam = len(self._tail)
        joined = self._tail + text
        ends = [(at + len(s), s) for s in self._sequences if (at := joined.find(s)) >= 0]
        if ends:
            end, self.found = min(ends)
            return joined[seam:end]
        self._tail = joined[1 - self._longest :] if self._longest > 1 else ""
        return text

    def missing(self, reason: str) -> str:
        """What the server has cut off: the only stop string, when the reply ended by itself there.

        A server does not tell a stop string from the model's own end; a dialect's stop string is
        the end of what it wrote in either case.
        """
        if reason == "stop" and not self.found and len(self._sequences) == 1:
            return self._sequences[0]
        return ""
