"""Reads what stands between `<!|` and `|!>`, as it streams.

A machine of small states. Each takes what it is certain of and leaves at most a few characters
unread, so the work is linear and the same for any chunking. Two kinds of trouble are told apart:
where the end of the call is still certain (an undefined variable), reading goes on to the end;
where it is not (a quotation that nobody can tell the end of), the trouble is `lost` and nothing
of the reply is read any further.

A string is Python's, with two things understood because their meaning is certain: line breaks in
it, and, in a function of one text and in triple quotes, inner quotation marks that were not
escaped. Such a *loose* string ends only where its mark stands directly before `|!>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from textor.dialects.near import excerpt
from textor.dialects.script_patterns import Unclear
from textor.dialects.script_states import CLOSE, MOST, OPEN, SPACE, Signature, States
from textor.dialects.script_terms import media, text_of
from textor.values import Json

BLOCK_HINT = "Write it as a block: <<END, a line break, the text, a line with END."

_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}", re.ASCII)
_BLOCK = re.compile(r"<<[ \t]{0,4}(?P<q>[\"']?)(?P<label>[A-Za-z_]\w{0,63})(?P=q)[ \t]{0,16}\r?\n", re.ASCII)
_EXPONENT = re.compile(r"[+-]?[\d.]{1,60}[eE]", re.ASCII)
_OBJECT = re.compile(r"<([A-Z][A-Za-z]{0,30})\|")
#: How far the beginning of an argument is looked at before it is decided what it is.
AHEAD = 100

_IN_STRING = {q: re.compile(rf"[{q}\\]").search for q in "'\""}
_IN_BARE = re.compile(r"[|<]").search
_IN_WORD = re.compile(r"[,+=:|\"'(\[\]{}<>)]").search
_IN_STRUCTURE = re.compile(r"[\"'\[\]{}]").search
_IN_BLOCK = re.compile(r"\n").search
_IN_OBJECT = re.compile(r"\|").search


class ArgumentReader(States):
    """`feed` until `closed` or `trouble.lost`; then `arguments`, `trouble`, `rest`."""

    # -- the beginning of an argument ------------------------------------------------------

    def _start(self) -> bool:
        self._quick = None
        if not self._skip_space():
            return False
        self.opened, first = self._offset, self._text[0]
        if first == "|":
            if self._text.startswith(CLOSE):
                if self._argument is not None:
                    self._complain("a value is missing here, before |!>")
                return self._close()
            if self._waits(CLOSE):
                return False
        if first in "\"'":
            return self._start_string(first)
        single = self._signature.single and (self._argument is None or not self._argument.terms)
        if single and (decided := self._start_single()) is not None:
            return decided
        if first in "rRuU" and self._text[1:2] in ("", "'", '"') and not single:
            if len(self._text) < 2:
                return False
            self._raw = first in "rR"
            self._take(1)
            return True
        if first == "<":
            return self._start_angle()
        if self._text.startswith("```"):
            return self._fenced()
        if self._waits("```"):
            return False
        if single:
            return self._begin("text", self._bare, _IN_BARE)
        if first in "[{":
            self._depth = 0
            return self._begin("list or object", self._structure, _IN_STRUCTURE)
        return self._begin("word", self._word, None)

    def _begin(self, inside: str, step: Callable[[], bool], quick: Callable[[str], object] | None) -> bool:
        self._open_argument()
        self.inside, self._parts = inside, []
        return self._go(step, quick)

    def _start_string(self, first: str) -> bool:
        triple = self._text[:3] == first * 3
        if not triple and self._waits(first * 3):
            return False
        self._quote = first * 3 if triple else first
        self._loose = self._comma = False
        self._run = 0
        self._begin("string", self._string, _IN_STRING[first])
        self._take(len(self._quote))
        return True

    def _start_single(self) -> bool | None:
        """For a function of one text: its name before the value; None when there is none."""
        name = self._signature.single
        if self._argument is not None or not self._text.startswith(name[: len(self._text)]):
            return None
        window = self._text[:AHEAD]
        if len(window) < AHEAD and CLOSE not in window:
            return False
        found = re.match(rf"{re.escape(name)}[ \t]*[=:](?!=)\s*(?=[\"']|<<|<[A-Z])", window)
        if found is None:
            return None
        self._open_argument().keyword = name
        self._take(found.end())
        return True

    def _start_angle(self) -> bool:
        """A block, a typed object, or nothing of the kind."""
        window = self._text[:AHEAD]
        if block := _BLOCK.match(window):
            self._begin("block", self._label_line, None)
            self._label, self._gap = block["label"], []
            self._take(block.end())
            return True
        if kind := _OBJECT.match(window):
            self._begin("object", self._object, _IN_OBJECT)
            self._label = kind[1]
            self._take(kind.end())
            return True
        if len(window) < AHEAD and "\n" not in window and CLOSE not in window:
            return False
        if self._text.startswith(OPEN):
            return self._nested()
        single = self._signature.single and self._argument is None
        return self._begin("text", self._bare, _IN_BARE) if single else self._begin("word", self._word, None)

    def _fenced(self) -> bool:
        return self._complain("a code fence is no argument", BLOCK_HINT, lost=True)

    def _nested(self) -> bool:
        hint = 'Calls do not stand in calls. Keep a text with name := <!|"text"|!> and use the name.'
        return self._complain("a call begins inside the arguments", hint, lost=True)

    # -- strings ---------------------------------------------------------------------------

    def _string(self) -> bool:
        found = _IN_STRING[self._quote[0]](self._text)
        if found is None:
            self._keep(len(self._text))
            return False
        if found.start():
            self._keep(found.start())
        if self._text[0] == "\\":
            if len(self._text) < 2:
                return False
            self._keep(2)
            return True
        if len(self._quote) == 3:
            return self._go(self._quotes)
        self._take(1)
        return self._go(self._after_string)

    def _quotes(self) -> bool:
        """A run of quotes in a string in triple quotes: its last three may close it."""
        quote = self._quote[0]
        run = len(self._text) - len(self._text.lstrip(quote))
        self._run += run
        self._take(run)
        if not self._text:
            return False
        run, self._run = self._run, 0
        if run < 3:
            self._parts.append(quote * run)
            return self._go(self._string, _IN_STRING[quote])
        self._parts.append(quote * (run - 3))
        return self._go(self._after_string)

    def _after_string(self) -> bool:
        """What follows a mark that may close the string decides whether it does."""
        self.inside = "call"
        space = SPACE.match(self._text).end()  # type: ignore[union-attr]
        self._gap.append(self._take(space))
        if not self._text or self._waits(CLOSE):
            return False
        first = self._text[0]
        if self._text.startswith(CLOSE):
            if self._loose and self._comma and not self._signature.single:
                return self._unsure()
            return self._end_string(self._after)
        if not self._loose:
            if first in ",+":
                return self._end_string(self._after)
            if first in "=:" and self._keyword_in_quotes():
                return True
            if first in "\"'" or not (self._signature.single or len(self._quote) == 3):
                return self._unsure()
        self._comma = self._comma or first == ","
        self._loose, self.inside = True, "string"
        self._parts += [self._quote, *self._gap]
        self._gap = []
        return self._go(self._string, _IN_STRING[self._quote[0]])

    def _end_string(self, step: Callable[[], bool]) -> bool:
        self._gap = []
        written = "".join(self._parts)
        self._term(written if self._raw else text_of(written, self._quote))
        self._raw = False
        return self._go(step)

    def _keyword_in_quotes(self) -> bool:
        name, argument = "".join(self._parts), self._open_argument()
        if argument.keyword or argument.terms or name not in self._signature.names:
            return False
        argument.keyword, self._parts, self._gap = name, [], []
        self._take(1)
        return self._go(self._start)

    def _unsure(self) -> bool:
        what = f"the string that begins here has a quotation mark inside, before {excerpt(self._text[0])}, "
        what += "and where it ends is not certain"
        return self._complain(what, f"Write inner quotation marks as \\{self._quote[0]}. " + BLOCK_HINT,
                              self.opened, lost=True)  # fmt: skip

    # -- the other kinds -------------------------------------------------------------------

    def _bare(self) -> bool:
        found = _IN_BARE(self._text)
        if found is None:
            self._keep(len(self._text))
            return False
        if found.start():
            self._keep(found.start())
        if self._text.startswith(CLOSE):
            return self._end_bare()
        if self._text.startswith(OPEN):
            return self._nested()
        if self._waits(CLOSE) or self._waits(OPEN):
            return False
        self._keep(1)
        return True

    def _end_bare(self) -> bool:
        text = "".join(self._parts).strip()
        if text.count('"') % 2:
            what = 'the text without quotation marks has a " that is still open at |!>'
            return self._complain(what, BLOCK_HINT, self.opened, lost=True)
        try:
            self._term(self._expression(text))
        except Unclear as unclear:
            self._complain(unclear.what, unclear.hint, self.opened)
        return self._close()

    def _expression(self, text: str) -> Json:
        """A text without quotes: `name + "…"` if it begins with a variable, else itself."""
        head = _NAME.match(text)
        if head and head[0] in self._scope and "+" in text:
            reader = ArgumentReader(Signature(), self._scope, 0)
            reader.feed(text + CLOSE)
            if reader.closed and reader.trouble is None and len(reader.arguments) == 1:
                return reader.arguments[0].terms[0]
        return self._scope.bare(text)

    def _word(self) -> bool:
        found = _IN_WORD(self._text)
        if found is None:
            self._keep(len(self._text))
            self._quick = _IN_WORD
            return False
        if found.start():
            self._keep(found.start())
        self._quick = None
        mark, word = self._text[0], self._short_word()
        if self._waits(CLOSE) or self._waits(OPEN) or self._text == "=":
            return False
        if mark in ",+" or self._text.startswith(CLOSE):
            if mark != "+" or (word and not _EXPONENT.fullmatch(word)):
                return self._end_word()
        elif mark == "(" and _NAME.fullmatch(word):
            self._depth = 0
            return self._go(self._call_like)
        elif mark in "=:" and self._is_keyword(word, mark):
            self._open_argument().keyword = word
            self._take(1)
            self._parts = []
            return self._go(self._start)
        elif self._text.startswith(OPEN):
            return self._nested()
        elif mark in "\"'":
            hint = "Text stands in quotation marks."
            if word in ("f", "F"):
                hint = "Strings are not filled in: join with +."
            return self._complain("a quotation mark stands in a text without them", hint, lost=True)
        self._keep(1)
        return True

    def _short_word(self) -> str:
        """The word so far; a long one, which can be neither name nor number, is not joined."""
        return "".join(self._parts).strip() if len(self._parts) < 100 else "?" * 100

    def _is_keyword(self, word: str, mark: str) -> bool:
        argument = self._open_argument()
        if argument.keyword or argument.terms or not _NAME.fullmatch(word):
            return False
        return word in self._signature.names or (mark == "=" and self._text[1:2] != "=")

    def _call_like(self) -> bool:
        """`name(…)`: text for an inner pattern, with the commas in its parentheses."""
        for at, character in enumerate(self._text):
            self._depth += (character == "(") - (character == ")")
            if self._depth == 0 or self._text.startswith(CLOSE, at):
                self._keep(at + (character == ")"))
                return self._go(self._word)
            if at > len(self._text) - len(CLOSE) and CLOSE.startswith(self._text[at:]):
                self._keep(at)
                return False
        self._keep(len(self._text))
        return False

    def _end_word(self) -> bool:
        word, at = "".join(self._parts).strip(), self.opened
        try:
            self._term(self._scope.word(word) if word else "")
            if not word:
                self._complain("an argument is missing here")
        except Unclear as unclear:
            self._term("")
            self._complain(unclear.what, unclear.hint, at)
        return self._go(self._after)

    def _structure(self) -> bool:
        found = _IN_STRUCTURE(self._text)
        if found is None:
            self._keep(len(self._text))
            return False
        mark = found[0]
        self._keep(found.end())
        if mark in "\"'":
            self._quote = mark
            return self._go(self._structure_string, _IN_STRING[mark])
        self._depth += 1 if mark in "[{" else -1
        if self._depth:
            return True
        try:
            self._term(self._scope.structure("".join(self._parts)))
        except Unclear as unclear:
            self._term("")
            self._complain(unclear.what, unclear.hint, self.opened)
        return self._go(self._after)

    def _structure_string(self) -> bool:
        found = _IN_STRING[self._quote](self._text)
        if found is None:
            self._keep(len(self._text))
            return False
        if found[0] == "\\":
            if found.start() + 2 > len(self._text):
                self._keep(found.start())
                return False
            self._keep(found.start() + 2)
            return True
        self._keep(found.end())
        return self._go(self._structure, _IN_STRUCTURE)

    def _object(self) -> bool:
        found, end = _IN_OBJECT(self._text), f"|{self._label}>"
        if found is None:
            self._keep(len(self._text))
            return False
        if found.start():
            self._keep(found.start())
        if self._waits(end):
            return False
        if not self._text.startswith(end):
            self._keep(1)
            return True
        self._take(len(end))
        self._term(media(self._label, self._scope.inner("".join(self._parts).strip())))
        self._open_argument().source = True
        return self._go(self._after)

    # -- blocks ----------------------------------------------------------------------------

    def _block(self) -> bool:
        end = f"\n{self._label}"
        at = self._text.find(end)
        if at >= 0:
            self._keep(at + 1)
            return self._go(self._label_line)
        last = self._text.rfind("\n")
        self._keep(last if last >= 0 and end.startswith(self._text[last:]) else len(self._text))
        return False

    def _label_line(self) -> bool:
        """At the start of a line: its label, and the mark behind it, close the block."""
        if self._waits(self._label):
            return False
        if not self._text.startswith(self._label):
            return self._go(self._block, _IN_BLOCK)
        self._take(len(self._label))
        self.inside = "call"
        return self._go(self._after_label)

    def _after_label(self) -> bool:
        space = SPACE.match(self._text).end()  # type: ignore[union-attr]
        self._gap.append(self._take(space))
        if not self._text or self._waits(CLOSE):
            return False
        ends = "+" if self._signature.single else ",+"
        if self._text.startswith(CLOSE) or self._text[0] in ends:
            self._gap = []
            self._term("".join(self._parts).removesuffix("\n"))
            return self._go(self._after)
        self.inside = "block"
        gap = "".join(self._gap)
        at = gap.rfind("\n") + 1
        self._parts += [self._label, gap[:at]]
        self._gap = []
        self._text = gap[at:] + self._text
        self._offset -= len(gap) - at
        return self._go(self._label_line if at else self._block, None if at else _IN_BLOCK)

    # -- after a term ----------------------------------------------------------------------

    def _after(self) -> bool:
        self.inside = "call"
        if not self._skip_space() or self._waits(CLOSE):
            return False
        if self._text.startswith(CLOSE):
            return self._close()
        mark = self._text[0]
        if len(self.arguments) >= MOST or len(self._open_argument().terms) >= MOST:
            return self._complain(f"more than {MOST} values stand here", lost=True)
        if mark == ",":
            self._push()
            self._take(1)
            return self._go(self._start)
        if mark == "+":
            self._take(1)
            return self._go(self._start)
        what = f"{excerpt(mark)} follows the argument, where a comma, + or |!> must stand"
        return self._complain(what, "Text stands in quotation marks.", lost=True)
