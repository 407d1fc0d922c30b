"""Which dialect an agent type speaks, and what compiles the free lines of its plans."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from textor.config import Config
from textor.dialects.port import Dialect
from textor.embedding import Embedder
from textor.events import Definition, PatternRule

if TYPE_CHECKING:
    from textor.broker.compiler import Compiler


def dialect_of(definition: Definition, native: bool) -> Dialect:
    """The dialect, or the mixture of two, that an agent type declares. `native` False: its model
    takes no function declarations, so calls are taught and read as text."""
    return _dialect(definition.dialects, native, tuple(definition.titles.items()), definition.patterns)


@lru_cache(256)
def _dialect(
    names: tuple[str, ...],
    native: bool,
    titles: tuple[tuple[str, str], ...],
    patterns: tuple[PatternRule, ...],
) -> Dialect:
    from textor.dialects import dialect
    from textor.dialects.mixed import mixed

    made = [_script(titles, patterns) if name == "script" else dialect(name, native=native) for name in names]
    return mixed(made) if len(made) > 1 else made[0]


def _script(titles: tuple[tuple[str, str], ...], rules: tuple[PatternRule, ...]) -> Dialect:
    from textor.dialects.script import ScriptDialect
    from textor.dialects.script_patterns import Pattern

    patterns = [Pattern(r.pattern, r.capability, priority=r.priority, scope=r.scope) for r in rules]
    return ScriptDialect(titles=dict(titles), patterns=patterns)


def compiler(config: Config) -> Compiler:
    """What compiles free lines of a plan: by meaning where the embedder is, else by their words."""
    from textor.broker.compiler import Compiler

    return Compiler(embedder_of(config))


def embedder_of(config: Config) -> Embedder | None:
    """The embedding model of this machine with its vectors kept; None before it was fetched."""
    from textor.memory.cached import Cached
    from textor.memory.embedder import MiniLM

    model = MiniLM(config.data)
    return Cached(model, config.data / "vectors.db") if model.fetched else None
