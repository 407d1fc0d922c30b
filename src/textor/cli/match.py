"""`textor match`: what each line of a plan means, among the capabilities of a list."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor.cli import DONE
from textor.cli.parser import Commands
from textor.errors import ModelError, UseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textor.actions import Catalogue
    from textor.dialects.matching import Calibration, Labelled, Matcher
    from textor.embedding import Embedder

EPILOG = """\
LINES holds one JSON object a line, {"line": "…"}; - is stdin. For each the answer is an object with
`line`, `state` (match, weak, ambiguous or fail), `capability` and `arguments` (of the match, or of
what weak and ambiguous lines are asked about),
`parameters` (the texts in brackets), `candidates` (five at most, with `score`, `probability` and
`objection`), `exact` and `fault`. `textor match calibrate` fits the thresholds to labelled lines,
{"line": "…", "expected": "name"}, with null where no capability is meant.
"""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "match",
        help="find what lines of a plan mean",
        usage="textor match [calibrate] --capabilities FILE.json [OPTION …] LINES.jsonl",
        description=__doc__,
        epilog=EPILOG,
    )
    parser.add_argument("lines", metavar="LINES.jsonl", help="the lines")
    parser.add_argument("--calibrate", action="store_true", help=argparse.SUPPRESS)  # see `arranged`
    parser.add_argument("--capabilities", metavar="FILE.json", required=True, help="a list of capabilities")
    parser.add_argument(
        "--mode",
        default="meaning",
        choices=("meaning", "aie", "lexical"),
        help="by vectors and words (default), by the rule of the AIE article, or by words alone",
    )
    parser.add_argument(
        "--embedder", metavar="ID", help="provider:name of an embedding model (default: the one in the box)"
    )
    parser.add_argument("--calibration", metavar="FILE", help="thresholds that `calibrate --out` wrote")
    parser.add_argument("--out", metavar="FILE", help="calibrate: where to write the thresholds")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.set_defaults(command=main)


def arranged(argv: Sequence[str]) -> list[str]:
    """`match calibrate` written as an option: argparse cannot tell a word that may stand before a
    file from the file."""
    words = list(argv)
    if words[:2] == ["match", "calibrate"] and len(words) > 2:
        words[1] = "--calibrate"
    return words


def main(args: argparse.Namespace) -> int:
    from textor.cli.inputs import catalogue

    if args.mode == "aie" and (args.calibrate or args.calibration):
        raise UseError("The rule of the article has fixed thresholds.", "Leave --mode aie out.")
    if args.out and not args.calibrate:
        raise UseError("--out belongs to `textor match calibrate`.")
    offered = catalogue(args.capabilities)
    return (calibrate if args.calibrate else compile_lines)(args, args.lines, offered)


def compile_lines(args: argparse.Namespace, file: str, offered: Catalogue) -> int:
    """Print each line compiled."""
    import msgspec

    from textor.cli.inputs import labelled
    from textor.cli.terminal import clean

    lines = [entry["line"] for entry in labelled(file)]
    for compiled in _matcher(args).compile_now(lines, offered):
        if args.json:
            print(msgspec.json.encode(compiled).decode())
            continue
        meant = compiled.fault or compiled.capability
        print(clean(f"{compiled.state:9}  {compiled.line}  ->  {meant}").replace("\n", " "))
        if compiled.state != "match":
            for each in compiled.candidates:
                print(f"{'':11}{each.capability}  score {each.score:.2f}, probability {each.probability:.2f}")
    return DONE


def calibrate(args: argparse.Namespace, file: str, offered: Catalogue) -> int:
    """Fit thresholds to labelled lines; what they are worth by cross-validation."""
    import msgspec

    from textor.dialects.matching import cross_validate, fit

    if not len(offered):
        raise UseError(f"{args.capabilities} holds no capabilities.")
    matcher = _matcher(args)
    examples = _examples(matcher, file, offered)
    made = fit(matcher.model_id, examples)
    text = msgspec.json.format(msgspec.json.encode(made), indent=2).decode()
    if args.out:
        try:
            Path(args.out).expanduser().write_text(text + "\n", "utf-8")
        except OSError as error:
            raise UseError(f"{args.out} cannot be written: {error.strerror or error}.") from error
    worth = _worth(made, examples, cross_validate(examples))
    if args.json:
        print(msgspec.json.encode({"calibration": made, "cross_validation": worth}).decode())
        return DONE
    if not args.out:
        print(text)
    precision = "none" if worth["precision"] is None else f"{worth['precision']:.3f}"
    print(
        f"{len(examples)} lines, first place right {worth['first_place']:.3f}; by cross-validation "
        f"matches have precision {precision} at recall {worth['recall']:.3f} (p >= {made.match})."
    )
    return DONE


def _worth(made: Calibration, examples: list[Labelled], chances: list[float]) -> dict[str, Any]:
    from textor.dialects.matching import reach

    found = reach(examples, chances, made.match)
    answered = sum(each.answered for each in examples)
    first = sum(each.right for each in examples if each.answered)
    return {
        "lines": len(examples),
        "first_place": first / answered if answered else 0.0,
        "matches": found.matches,
        "precision": found.precision,
        "recall": found.recall,
    }


def _examples(matcher: Matcher, file: str, offered: Catalogue) -> list[Labelled]:
    from textor.cli.inputs import label, labelled

    entries = list(labelled(file))
    expected = [label(entry, offered, f"{file}, entry {n}") for n, entry in enumerate(entries, 1)]
    return matcher.label([entry["line"] for entry in entries], expected, offered)


def _matcher(args: argparse.Namespace) -> Matcher:
    from textor.dialects.matching import Matcher

    embedder = None if args.mode == "lexical" else _embedder(args.embedder)
    mode = "aie" if args.mode == "aie" else "meaning"
    made = _calibration(args.calibration, embedder.model_id if embedder else "words")
    return Matcher(embedder, made, mode)  # type: ignore[arg-type]


def _embedder(named: str | None) -> Embedder:
    """The embedding model in the box, fetched if it is not there, or one of a configured server."""
    import sys

    from textor.cli.opening import configuration
    from textor.memory.cached import Cached
    from textor.memory.embedder import MiniLM, RemoteEmbedder

    config = configuration()
    kept = config.data / "vectors.db"
    if named is None:
        made = MiniLM(config.data)
        try:
            made.fetch(lambda text: print(f"textor: {text}", file=sys.stderr))
        except ModelError as error:
            error.hint += " Without it, --mode lexical matches by words alone."
            raise
        return Cached(made, kept)
    from textor.models.registry import resolve

    server = resolve(named, config.providers)
    return Cached(RemoteEmbedder(server.base_url, server.name, server.api_key), kept)


def _calibration(named: str | None, model_id: str) -> Calibration | None:
    if named is None:
        return None
    import msgspec

    from textor.dialects.matching import Calibration

    try:
        made = msgspec.json.decode(Path(named).expanduser().read_bytes(), type=Calibration)
    except OSError as error:
        raise UseError(f"{named} cannot be read: {error.strerror or error}.") from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UseError(
            f"{named} is no calibration: {error}.", "`textor match calibrate --out` writes one."
        ) from error
    if made.model_id != model_id:
        raise UseError(
            f"{named} was made for the embedding model {made.model_id}, and this is {model_id}.",
            "Thresholds of one model mean nothing for another: run `textor match calibrate` for it.",
        )
    return made
