"""The `script` dialect, after AIlice: calls and variables written into the text.

    plan := <!|"Look first, then write."|!>
    !FILES-READ<!|"notes.txt", first=3|!>
    !PYTHON<!|<<END
    print("any program arrives as it stands")
    END|!>

Everything hangs on the mark `<!|`: what stands before it on its line says what it is. A call with
the mark `!` and a known name is an action, well written or with a fault; whatever else stands
before the mark is a near miss. Text in code fences, inline code, quotations and reasoning never
acts. See `script_arguments` for the arguments, `script_patterns` for what an agent type adds,
`script_lines` for sections and lines that act by their title or form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.dialects.fences import Fences
from textor.dialects.names import script_names
from textor.dialects.outcomes import media_message, outcome_text
from textor.dialects.port import Variables
from textor.dialects.script_lines import LineReader
from textor.dialects.script_parser import ScriptParser
from textor.dialects.script_patterns import Pattern, compile_patterns
from textor.dialects.script_terms import Scope
from textor.dialects.script_write import gbnf, teach, written
from textor.messages import Grammar, Message, ToolSpec, said


class ScriptDialect:
    """The dialect. `stop`: whether a reply ends at its first call that returns something.

    `titles` maps the title of a section to the capability that is called with its text; `patterns`
    are the pattern-action pairs of the agent type.
    """

    def __init__(
        self,
        *,
        titles: Mapping[str, str] | None = None,
        patterns: Sequence[Pattern] = (),
        stop: bool = True,
    ) -> None:
        self._titles = {" ".join(title.split()): name for title, name in (titles or {}).items()}
        self._entries, self._inner = compile_patterns(patterns)
        self._stop = stop

    @property
    def name(self) -> str:
        return "script"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return "serial"

    @property
    def final(self) -> bool:
        return False

    def teach(self, capabilities: Sequence[Capability]) -> str:
        return teach(capabilities)

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        return ()

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> ScriptParser:
        """A parser that knows the agent's `variables`: texts, JSON data, or values by name."""
        scope = Scope(variables or {}, self._inner)
        return ScriptParser(capabilities, scope, LineReader(self._titles, self._entries), stop=self._stop)

    def names(self, message: str) -> dict[str, str]:
        return code_variables(message)

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        return Grammar(gbnf=gbnf(capabilities))

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """Calls, one a line. With `capabilities`, arguments stand by place where that is possible."""
        return written(actions, capabilities)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        if not outcomes:
            return ()
        names = script_names(action.capability for action, _ in outcomes)
        parts = [f"!{names.wire(action.capability)} ->\n{outcome_text(o)}" for action, o in outcomes]
        return (said("user", "\n\n".join(parts)), *media_message(o for _, o in outcomes))


def code_variables(text: str) -> dict[str, str]:
    """The code in the fences of a message as variables: `code_python_1`, `code_text_2` …, numbered
    through. A fence that is not closed counts to the end."""
    fences = Fences()
    fences.feed(text)
    fences.end()
    found: dict[str, str] = {}
    name, parts = "", list[str]()
    while (piece := fences.next()) is not None:
        if piece.zone != "fence":
            continue
        if piece.edge == "open":
            language = re.sub(r"\W", "_", (piece.info.split() or ["text"])[0].lower(), flags=re.ASCII)
            name, parts = f"code_{language}_{len(found) + 1}", []
        elif piece.edge in ("close", "cut"):
            found[name] = "".join(parts).removeprefix("\n")
        else:
            parts.append(piece.text)
    return found
