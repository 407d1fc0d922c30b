"""Compiles free lines of a plan by meaning: match, weak, ambiguous or fail, with candidates.

    matcher = Matcher(embedder)
    compiled = await matcher.compile(["give the mail the subject [Hello]"], catalogue)

A line that is written like a phrase is a match and needs no embedder; others are ranked (`ranking`)
and become a match when the calibration of the embedder finds the first candidate probable enough
and nothing speaks against it. Everything else is for the model or the person to decide.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from textor.actions import Catalogue
from textor.arguments import ArgumentError
from textor.dialects.matching.calibration import LEXICAL, NO_FEATURES, Calibration, Labelled
from textor.dialects.matching.constants import CALIBRATIONS
from textor.dialects.matching.index import Index, Indexes
from textor.dialects.matching.ranking import RANKED, Ranked, fitting, rank, spoken
from textor.dialects.matching.views import View, read_line
from textor.dialects.plan_lines import Line, Phrases
from textor.dialects.plan_reader import Written
from textor.dialects.plan_slots import arguments_of
from textor.values import Json

if TYPE_CHECKING:
    from textor.dialects.matching.ranking import Vector
    from textor.embedding import Embedder

State = Literal["match", "weak", "ambiguous", "fail"]
Mode = Literal["meaning", "aie"]

#: Without a calibration for the embedder: what a match needs, and what makes it fail.
BARE_SCORE, BARE_LEAD, BARE_LEAST = 0.60, 0.12, 0.30
#: The rule of the AIE article: cosines of line and phrase. Two that are so near are ambiguous.
AIE_MATCH, AIE_WEAK, AIE_TIE = 0.998, 0.50, 0.01


class Candidate(msgspec.Struct, frozen=True):
    """A capability that the line may mean.

    `score` is the mean cosine (without an embedder the share of common words), `probability` the
    calibrated one, 0 where nothing is calibrated; `objection` is why it cannot be a match.
    """

    capability: str
    score: float
    probability: float
    objection: str = ""


class Compiled(msgspec.Struct, frozen=True):
    """One line, compiled.

    `capability` and `arguments` are those of the match; a weak or ambiguous line has those of its
    first candidate, where they fit, for a person to confirm. `parameters` are the texts in
    brackets, verbatim; `candidates` are five at most, best first. `fault` says why it is no match. `exact`:
    it is written like a phrase, so that nothing was guessed. `note`: it was not meant as an action at
    all (a preamble, something quoted), so that passing it over leaves nothing undone.
    """

    line: str
    state: State
    candidates: tuple[Candidate, ...] = ()
    parameters: tuple[str, ...] = ()
    capability: str = ""
    arguments: dict[str, Json] = {}
    fault: str = ""
    exact: bool = False
    note: bool = False

    def as_action(self) -> dict[str, Json]:
        """The fields of the `Action` that this line becomes: to run, to be asked about, or at fault."""
        near = "; ".join(f"{c.capability} ({c.score:.2f})" for c in self.candidates)
        told = f"{self.fault} Nearest: {near}." if near else self.fault
        if not self.capability:
            return {"fault": told or "No action is written like this."}
        doubt = "" if self.state == "match" else f"the line is not certain: {told}"
        return {"capability": self.capability, "arguments": self.arguments, "doubt": doubt}


class Matcher:
    """Compiles lines against catalogues, and keeps what it has learnt of their capabilities.

    `calibration` None: the one that comes with Textor for this embedder, if any. `mode` "aie" is
    the article's rule, which knows no contradiction. `indexes` may be another matcher's, so that
    views are kept once. May be used from several threads.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        calibration: Calibration | None = None,
        mode: Mode = "meaning",
        indexes: Indexes | None = None,
    ) -> None:
        self._embedder = embedder
        self._mode = mode
        self._indexes = indexes or Indexes()
        self._lock = threading.Lock()
        self.model_id = embedder.model_id if embedder else LEXICAL
        self.calibration = calibration or CALIBRATIONS.get(self.model_id)

    async def compile(self, lines: Sequence[str], catalogue: Catalogue) -> list[Compiled]:
        """Each line compiled. Raises `ModelError` when the embedder is needed and cannot be had."""
        if self._embedder is None:
            return self.compile_now(lines, catalogue)
        return await asyncio.to_thread(self.compile_now, lines, catalogue)

    def compile_now(self, lines: Sequence[str], catalogue: Catalogue) -> list[Compiled]:
        """The same; blocks while lines and new capabilities are embedded."""
        with self._lock:
            plain, free = self._sorted(lines, catalogue)
            guessed = iter(self._guessed(free, catalogue))
            return [found or next(guessed) for found in plain]

    def _sorted(self, lines: Sequence[str], catalogue: Catalogue) -> tuple[list[Compiled | None], list[Line]]:
        """What the lines are with which nothing is to be guessed, None for the others; the others."""
        phrases = self._indexes.of(catalogue).phrases
        written = [read_line(line) for line in lines]
        plain = [_plain(each, phrases) for each in written]
        return plain, [each.line for each, found in zip(written, plain, strict=True) if found is None]

    def label(self, lines: Sequence[str], expected: Sequence[str], catalogue: Catalogue) -> list[Labelled]:
        """Lines with the names of what they should mean ("" for nothing) as examples for a
        calibration. Blocks."""
        with self._lock:
            plain, free = self._sorted(lines, catalogue)
            ranked = iter(self._ranked(free, catalogue))
        examples: list[Labelled] = []
        for found, name in zip(plain, expected, strict=True):
            if found is None:
                first = next(ranked)[0]
                right = first.view.capability.name == name
                examples.append(Labelled(first.features, right, bool(name)))
            else:
                examples.append(Labelled(NO_FEATURES, found.capability == name, bool(name), exact=True))
        return examples

    def _guessed(self, lines: Sequence[Line], catalogue: Catalogue) -> list[Compiled]:
        if not lines:
            return []
        if not len(catalogue):
            nothing = "There is nothing that it could mean."
            return [Compiled(line.text, "fail", parameters=line.slots, fault=nothing) for line in lines]
        if self._mode == "aie" and self._embedder is not None:
            index = self._index(catalogue)
            vectors = self._vectors(lines)
            return [_by_article(line, index, v) for line, v in zip(lines, vectors, strict=True)]
        pairs = zip(lines, self._ranked(lines, catalogue), strict=True)
        return [self._compiled(line, ranked) for line, ranked in pairs]

    def _ranked(self, lines: Sequence[Line], catalogue: Catalogue) -> list[list[Ranked]]:
        if not lines:
            return []
        index = self._index(catalogue)
        pairs = zip(lines, self._vectors(lines), strict=True)
        return [rank(spoken(line), index, vector) for line, vector in pairs]

    def _index(self, catalogue: Catalogue) -> Index:
        index = self._indexes.of(catalogue)
        if self._embedder is not None:
            index.embed(self._embedder)
        return index

    def _vectors(self, lines: Sequence[Line]) -> Sequence[Vector | None]:
        if self._embedder is None:
            return [None] * len(lines)
        return list(self._embedder.encode([line.skeleton for line in lines], "query"))

    def _compiled(self, line: Line, ranked: Sequence[Ranked]) -> Compiled:
        made = self.calibration
        candidates = tuple(
            Candidate(
                each.view.capability.name,
                round(each.features.score, 4),
                round(made.probability(each.features), 4) if made else 0.0,
                each.objection,
            )
            for each in ranked
        )
        state, fault = self._state(ranked[0], candidates)
        first = ranked[0]
        if state == "fail" or first.objection:
            return Compiled(line.text, state, candidates, line.slots, fault=fault)
        name = first.view.capability.name
        return Compiled(line.text, state, candidates, line.slots, name, first.arguments, fault)

    def _state(self, first: Ranked, candidates: Sequence[Candidate]) -> tuple[State, str]:
        """By the calibration of the embedder, else by the bare rule."""
        found, made = first.features, self.calibration
        name = candidates[0].capability
        if found.score < (made.least if made else BARE_LEAST):
            return "fail", "No capability is like it."
        if found.opposed:
            return "fail", f"{name} is nearest, but {first.objection}."
        if made:
            near = found.score >= made.distant or found.shape > 0
            sure = near and candidates[0].probability >= made.match
        else:
            sure = found.score >= BARE_SCORE and found.lead >= BARE_LEAD
        if sure and not first.objection:
            return "match", ""
        if found.lead < (made.tie if made else BARE_LEAD) and len(candidates) > 1:
            return "ambiguous", f"It may mean {name} or {candidates[1].capability}."
        return "weak", f"{name} is nearest, but {first.objection or 'that is not certain'}."


def _plain(written: Written, phrases: Phrases) -> Compiled | None:
    """A line with which nothing is to be guessed: no action at all, or an exact phrase."""
    line = written.line
    if fault := _no_action(written):
        note = not written.unclosed and (written.quoted or not line.slots)
        return Compiled(line.text, "fail", parameters=line.slots, fault=fault, note=note)
    exact = phrases.exact(line)
    if not exact:
        return None
    names = sorted({phrase.capability.name for phrase in exact})
    candidates = tuple(Candidate(name, 1.0, round(1 / len(names), 4)) for name in names[:RANKED])
    if len(names) > 1:
        fault = f"It is written like {' and '.join(names)}; nothing tells which is meant."
        return Compiled(line.text, "ambiguous", candidates, line.slots, fault=fault, exact=True)
    try:
        arguments = arguments_of(exact[0], line.slots)
    except ArgumentError as error:
        fault = f"{error} Write `{exact[0].shown}`."
        return Compiled(line.text, "fail", candidates, line.slots, fault=fault, exact=True)
    return Compiled(line.text, "match", candidates, line.slots, names[0], arguments, exact=True)


def _no_action(written: Written) -> str:
    """Why a line is no action at all, or ""."""
    if written.quoted:
        return "It is quoted, so it does not act."
    if written.unclosed:
        return f"The bracket in column {written.column} is never closed."
    if not written.line.skeleton.replace("[]", "").strip():
        return "There are no words in it."
    return "It announces something and is no action." if written.line.skeleton.endswith(":") else ""


def _by_article(line: Line, index: Index, vector: Vector | None) -> Compiled:
    """The rule of the AIE article: the cosine with the phrase and
    nothing else, but that the brackets still have to fit."""
    assert vector is not None
    places = range(len(index.entries))
    scored: list[tuple[float, View]] = []
    for place, cosines in zip(places, index.cosines(places, vector), strict=True):
        view = index.entries[place].view
        scored.append((max(cosines[: len(view.phrases)], default=0.0), view))
    scored.sort(key=lambda pair: -pair[0])
    best, view = scored[0]
    arguments, misfit = fitting(view, spoken(line))
    state: State = "match" if best > AIE_MATCH and not misfit else "weak"
    if best <= AIE_WEAK:
        state = "fail"
    elif state == "weak" and len(scored) > 1 and best - scored[1][0] < AIE_TIE:
        state = "ambiguous"
    candidates = tuple(Candidate(v.capability.name, round(score, 4), 0.0) for score, v in scored[:RANKED])
    if state != "match":
        return Compiled(line.text, state, candidates, line.slots, fault=misfit)
    return Compiled(line.text, state, candidates, line.slots, view.capability.name, arguments)
