"""Ranks the capabilities that a line may mean.

The score is the mean of the cosines of the line with best phrase, description and best example of a
capability (measured on 244 lines: 0.90 right in first place; the maximum over all texts 0.81). The
rank takes off what speaks against it and adds what speaks for it beside the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from textor.arguments import ArgumentError
from textor.dialects.matching.calibration import Features
from textor.dialects.matching.index import Index
from textor.dialects.matching.opposites import groups, negated, opposed
from textor.dialects.matching.shapes import fit
from textor.dialects.matching.views import View
from textor.dialects.matching.words import content, tokens
from textor.dialects.plan_lines import Line
from textor.dialects.plan_slots import arguments_of
from textor.values import Json

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vector = NDArray[numpy.float32]

#: How many candidates are ranked to the end, and how many of the nearest are looked at for them.
RANKED, LOOKED_AT = 5, 20
#: What is taken off for brackets that fit no phrase and for a contradiction, and given for words in
#: common and for brackets that hold the like. Cosines of related texts lie between 0.3 and 0.9.
UNFIT, OPPOSED, WORDS, SHAPE = 0.30, 0.20, 0.15, 0.15


class Spoken(msgspec.Struct, frozen=True):
    """A line as it is compared: its meaningful words, the groups of its verbs, whether it denies."""

    line: Line
    words: tuple[str, ...]
    verbs: frozenset[str]
    denied: bool
    cues: tuple[str, ...]


class Ranked(msgspec.Struct, frozen=True):
    """One candidate. `objection` is why it cannot be a match, whatever the vectors say."""

    view: View
    rank: float
    features: Features
    arguments: dict[str, Json]
    objection: str


def spoken(line: Line) -> Spoken:
    said = tokens(line.skeleton)
    return Spoken(line, content(said), groups(said), negated(said, line.skeleton), cues(line.skeleton))


def cues(skeleton: str) -> tuple[str, ...]:
    """The word before each slot: `move file [] to []` has "file" and "to"."""
    pieces = skeleton.split("[]")[:-1]
    return tuple(said[-1] if (said := tokens(piece)) else "" for piece in pieces)


def rank(said: Spoken, index: Index, vector: Vector | None) -> list[Ranked]:
    """The nearest candidates, best first, `RANKED` at most. `vector` None: by words alone."""
    places = index.nearest(said.words, vector)
    views = [index.entries[place].view for place in places]
    if vector is None:
        scores = [by_words(index, view, said.words) for view in views]
    else:
        scores = [by_cosines(v, own) for v, own in zip(views, index.cosines(places, vector), strict=True)]
    slots = len(said.line.slots)
    order = [score - (0 if view.takes(slots) else UNFIT) for score, view in zip(scores, views, strict=True)]
    nearest = sorted(range(len(views)), key=lambda at: -order[at])[:LOOKED_AT]
    looked = [_looked_at(said, index, views[at], scores[at]) for at in nearest]
    looked.sort(key=lambda each: -each.rank)
    return [_with_lead(each, looked[:2]) for each in looked[:RANKED]]


def by_cosines(view: View, cosines: Sequence[float]) -> float:
    """The mean over the kinds of text: best phrase, description, best example."""
    phrases, rest = len(view.phrases), len(cosines) - len(view.examples)
    best = [max(kind) for kind in (cosines[:phrases], cosines[phrases:rest], cosines[rest:]) if len(kind)]
    return sum(best) / len(best) if best else 0.0


def by_words(index: Index, view: View, words: Sequence[str]) -> float:
    """Without vectors: the mean of the share of the line's words that the capability has, and the
    share of its most similar text that the line has."""
    known = frozenset(index.lexicon.known(word)[0] for word in words)
    texts = [index.lexicon.coverage(content(tokens(text)), known) for text in view.texts]
    return (index.lexicon.coverage(words, view.words) + max(texts, default=0.0)) / 2


def _looked_at(said: Spoken, index: Index, view: View, score: float) -> Ranked:
    slots = said.line.slots
    arguments, misfit = fitting(view, said)
    contrary = ""
    if said.denied and not view.negated:
        contrary = "the line says not to"
    elif opposed(said.verbs, view.heads, view.verbs):
        contrary = "the line says something else"
    shape = 0.0 if misfit else fit(slots, view.shapes.get(len(slots), ()))
    features = Features(
        score=score,
        lead=0.0,
        opposed=float(bool(contrary)),
        unfit=float(bool(misfit)),
        shape=shape,
        vague=float(len(said.words) <= 1 and shape <= 0),
    )
    found = score - UNFIT * features.unfit - OPPOSED * features.opposed
    found += WORDS * index.lexicon.coverage(said.words, view.words) + SHAPE * shape
    return Ranked(view, found, features, arguments, contrary or misfit)


def fitting(view: View, said: Spoken) -> tuple[dict[str, Json], str]:
    """The arguments that the brackets of a line are for a capability, or why they are none."""
    slots, problem = said.line.slots, ""
    for phrase in view.takes(len(slots)):
        if _swapped(said.cues, cues(phrase.skeleton)):
            problem = "its parameters stand in another order"
            continue
        try:
            return arguments_of(phrase, slots), ""
        except ArgumentError as error:
            problem = problem or f"its arguments do not fit: {str(error).rstrip('.')}"
    if problem:
        return {}, problem
    numbers = sorted({len(phrase.properties) for phrase in view.phrases})
    takes = " or ".join(map(str, numbers)) if any(numbers) else "no"
    plural = "" if numbers == [1] else "s"
    return {}, f"it takes {takes} parameter{plural} and the line has {len(slots)}"


def _swapped(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether a slot stands behind the word that is before another slot of the phrase, as in `move
    to [] the file []`: by their order alone the texts would go to the wrong parameters."""
    for place, cue in enumerate(mine):
        if cue and cue in theirs and theirs.index(cue) != place and theirs[place] != cue:
            return True
    return False


def _with_lead(own: Ranked, best: Sequence[Ranked]) -> Ranked:
    """How far it is before the best of the others."""
    others = [each.rank for each in best if each is not own]
    lead = own.rank - others[0] if others else 1.0
    return msgspec.structs.replace(own, features=msgspec.structs.replace(own.features, lead=lead))
