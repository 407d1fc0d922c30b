"""Agent types: Markdown files whose front matter says what an agent is and whose body is its prompt.

    ---
    name: coder
    purpose: Writes and mends programs.
    dialects: [tools]
    capabilities: [files.*, shell.run]
    ---
    You write programs …

A type is looked for in the workspace (`.textor/agents`), then among the person's own, then in
the box; the first file counts. Same spirit as SKILL.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from textor import explain
from textor.errors import DefinitionError
from textor.events import Definition, Limits, PatternRule
from textor.messages import Message, said

#: The agent types that come with Textor.
BOX = Path(__file__).parent / "agents"

#: Longer files are refused: a prompt is read by a model in every iteration.
LARGEST = 256_000

DialectName = Literal["script", "xml", "step", "tools", "plan"]
Layout = Literal["stable", "bare", "regenerated"]

#: The dialects that one agent may mix.
MIXES: tuple[set[str], ...] = (
    {"script"},
    {"xml"},
    {"step"},
    {"tools"},
    {"plan"},
    {"tools", "script"},
    {"tools", "xml"},
)

_TYPE = r"^[a-z][a-z0-9_-]{0,63}$"
_TYPE_OR_ALL = r"^(\*|[a-z][a-z0-9_-]{0,63})$"
_NAME = re.compile(_TYPE)
_PATTERN = r"^[A-Za-z*][A-Za-z0-9_.*-]*$"
explain.PATTERNS[_PATTERN] = 'the name of a capability or a pattern such as "files.*"'
explain.PATTERNS[_TYPE_OR_ALL] = 'the name of an agent type, or "*" for all'


class _Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    iterations: Annotated[int, Meta(ge=1)] | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    money: Annotated[float, Meta(ge=0)] | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None


class _FrontMatter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand between the two `---`; each key may be left out."""

    name: str = ""
    purpose: str = ""
    dialects: tuple[DialectName, ...] = ("tools",)
    model: str = ""
    capabilities: tuple[Annotated[str, Meta(pattern=_PATTERN)], ...] = ()
    layout: Layout = "stable"
    limits: _Limits = _Limits()
    examples: tuple[dict[str, str], ...] = ()
    titles: dict[str, str] = {}
    patterns: tuple[PatternRule, ...] = ()
    agents: tuple[Annotated[str, Meta(pattern=_TYPE_OR_ALL)], ...] = ()
    review: bool = False
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None


def agent_folders(workspace: Path | None, own: Path | None) -> tuple[Path, ...]:
    """Where agent types are looked for, first to last. `own` is the person's folder."""
    folders = [workspace / ".textor" / "agents"] if workspace else []
    if own:
        folders.append(own)
    return (*folders, BOX)


def load_definition(type: str, folders: Sequence[Path]) -> Definition:
    """The agent type of that name, from the first folder that has it.

    Raises `DefinitionError` when there is none (with the nearest name) or its file is wrong.
    """
    if _NAME.match(type):
        for folder in folders:
            path = folder / f"{type}.md"
            if path.is_file():
                return read_definition(path)
    names = sorted({path.stem for path in _files(folders)})
    hint = explain.known(type, names, all_of="there are")
    raise DefinitionError(f'There is no agent type "{type}"{hint}.')


def list_definitions(
    folders: Sequence[Path], faults: list[DefinitionError] | None = None
) -> list[Definition]:
    """All agent types, by name; of two with one name the one in the earlier folder.

    A wrong file raises `DefinitionError`, or is left out and noted in `faults` where that is given.
    """
    found: dict[str, Definition | None] = {}
    for path in _files(folders):
        if path.stem in found:
            continue
        found[path.stem] = None  # a wrong file still hides the later ones, as in load_definition
        try:
            found[path.stem] = read_definition(path)
        except DefinitionError as fault:
            if faults is None:
                raise
            faults.append(fault)
    return [found[name] for name in sorted(found) if found[name] is not None]  # type: ignore[misc]


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.is_dir():
            yield from (p for p in sorted(folder.glob("*.md")) if _NAME.match(p.stem))


# -- reading one file ----------------------------------------------------------------------


def read_definition(path: Path) -> Definition:
    """The agent type in a file. Raises `DefinitionError` with the file, the key and what is allowed."""
    try:
        if path.stat().st_size > LARGEST:
            raise DefinitionError(f"{path} is larger than {LARGEST // 1000} kB, too long for a prompt.")
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror}.") from None
    return parse_definition(text, path)


def parse_definition(text: str, path: Path | None = None) -> Definition:
    """The agent type in a text; `path` gives its name and stands in sentences. Without a path the
    text must say its name."""
    if path is None:
        path = Path(f"{_name_in(text)}.md")
    head, body = _parts(text, path)
    data = _yaml(head, path)
    fault = explain.find_fault(data, _FrontMatter)
    if fault:
        raise DefinitionError(
            f"{_place(path, head, fault.path)}: {explain.dotted(fault.path)} {fault.problem}"
        )
    front = msgspec.convert(data, _FrontMatter)
    name = front.name or path.stem
    if not _NAME.match(name) or name != path.stem:
        raise DefinitionError(
            f'{_place(path, head, ("name",))}: name is "{name}"; it must be that of the file, "{path.stem}",'
            " in small letters, digits, - and _."
        )
    _check_dialects(front.dialects, path, head)
    _check_script(front, path, head)
    if front.layout == "regenerated" and front.dialects != ("xml",):
        raise DefinitionError(
            f"{_place(path, head, ('layout',))}: the layout regenerated is XML; dialects must be [xml]."
        )
    return Definition(
        type=name,
        purpose=" ".join(front.purpose.split()),
        dialects=front.dialects,
        model=front.model,
        capabilities=front.capabilities,
        layout=front.layout,
        limits=Limits(**{f: getattr(front.limits, f) for f in _Limits.__struct_fields__}),
        examples=tuple(_examples(front.examples, path, head)),
        prompt=body.strip(),
        titles=front.titles,
        patterns=front.patterns,
        agents=front.agents,
        review=front.review,
        temperature=front.temperature,
    )


def _name_in(text: str) -> str:
    """The name that a text gives itself. Raises `DefinitionError` when it gives none."""
    path = Path("the agent type")
    name = _yaml(_parts(text, path)[0], path).get("name")
    if isinstance(name, str) and _NAME.match(name):
        return name
    said = "has no name" if name is None else f"has the name {str(name)[:80]!r}"
    raise DefinitionError(
        f"The agent type {said}; its front matter must begin with `---` and hold a line such as"
        " `name: wiki-reader`, in small letters, digits, - and _."
    )


def key_place(text: str, key: str, path: Path) -> str:
    """Where a key stands in the text of an agent type, for a sentence: "coder.md, line 4"."""
    return _place(path, _parts(text, path)[0], (key,))


def _parts(text: str, path: Path) -> tuple[str, str]:
    """Front matter and body. A file without front matter is all body."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise DefinitionError(f"{path}: the front matter that begins with --- in line 1 has no --- that ends it.")


def _yaml(head: str, path: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.load(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise DefinitionError(f"{path}{place}: the front matter is not valid YAML: {problem}.") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise DefinitionError(f"{path}: the front matter must be keys with values, such as `purpose: …`.")
    return data


def _place(path: Path, head: str, steps: explain.Path) -> str:
    """The file, and the line where the first step of the path stands."""
    for number, line in enumerate(head.splitlines(), 2):
        if steps and re.match(rf"{re.escape(str(steps[0]))}\s*:", line):
            return f"{path}, line {number}"
    return str(path)


def _check_dialects(dialects: tuple[str, ...], path: Path, head: str) -> None:
    """The rule of mixing: `tools` with at most one of `script` and `xml`; `plan` and `step` alone."""
    if len(set(dialects)) == len(dialects) and set(dialects) in MIXES:
        return
    raise DefinitionError(
        f"{_place(path, head, ('dialects',))}: dialects is {list(dialects)};"
        " allowed are one of script, xml, step, tools and plan, or tools with one of script and xml."
    )


def _check_script(front: _FrontMatter, path: Path, head: str) -> None:
    """Titles and patterns are read by `script` alone."""
    for key in ("titles", "patterns"):
        if getattr(front, key) and "script" not in front.dialects:
            raise DefinitionError(
                f"{_place(path, head, (key,))}: {key} belong to the dialect script; dialects must name it."
            )


def _examples(examples: tuple[dict[str, str], ...], path: Path, head: str) -> Iterator[Message]:
    """Examples as messages: pairs of `user` and `assistant`, or single messages of `role` and `text`."""
    for position, example in enumerate(examples):
        if set(example) == {"user", "assistant"}:
            yield said("user", example["user"])
            yield said("assistant", example["assistant"])
        elif set(example) == {"role", "text"} and example["role"] == "user":
            yield said("user", example["text"])
        elif set(example) == {"role", "text"} and example["role"] == "assistant":
            yield said("assistant", example["text"])
        else:
            raise DefinitionError(
                f"{_place(path, head, ('examples',))}: examples[{position}] has the keys"
                f" {explain.listed(example)}; allowed are user and assistant,"
                " or role (user or assistant) and text."
            )
