"""A streaming reader of one `<actions>` block.

Not an XML parser: no document type, no entities but the five and numbers, bounded depth, nothing
fetched. `&` and `<` that are no markup are text; inside the text of a parameter only its own
closing tag and CDATA are markup. Each state takes what it is certain of and leaves a few
characters unread at most, so the work is linear and the same for any chunking.
"""

from __future__ import annotations

import re

from textor.dialects.near import excerpt
from textor.dialects.port import Prose
from textor.dialects.xml_elements import Element, decoded, trimmed
from textor.dialects.xml_tags import CDATA, NAME, SPACE, TagReader

_COMMENT = "<!--"
_IN_TEXT = re.compile(r"<").search
_IN_MIXED = re.compile(r"[<\]]").search
_IN_CDATA = re.compile(r"\]").search


class BlockReader(TagReader):
    """Begins behind `<actions`. `feed` until `closed` or `broken`; then `actions` and `rest`."""

    # -- content ---------------------------------------------------------------------------

    def _content(self) -> bool:
        """Between elements: of the block, of an action, of a list or an object."""
        at = self._text.find("<")
        if at != 0:
            self._between(self._take(at if at > 0 else len(self._text)))
            return bool(self._text)
        for mark, step in ((CDATA, self._cdata_between), (_COMMENT, self._comment)):
            if self._waits(mark):
                return False
            if self._text.startswith(mark):
                return step()
        following = self._text[1:2]
        if following == "/":
            return self._close_tag()
        if following in ("!", "?"):
            return self._break(f"{excerpt(self._text[:2])} begins a declaration; only actions stand here")
        if not NAME.match(following):
            self._between(self._take(1))
            return True
        return self._start_tag()

    def _between(self, text: str) -> None:
        """Text beside elements: a remark in the block; in an action its one text, or a fault."""
        if not self._stack:
            shown = text.rstrip()
            if shown:
                self.events.append(Prose("".join(self._blank) + shown))
                self._blank = []
            self._blank.append(text[len(shown) :])
        elif text.strip():
            self._text_begins(self._stack[-1], text)
        else:
            self._raw.append(text)

    def _text_begins(self, element: Element, text: str) -> None:
        into = self._shapes.text_parameter(element) if element.kind == "action" else ""
        element.entry = element.entry or self._shapes.is_entry(element)
        if into or element.entry:
            self._into, element.kind = into, "text"
            self._raw.append(self._shown(text))
            self._go(self._in_text, _IN_TEXT)
        elif not element.fault:
            names = ", ".join(f"<{name}>" for name in self._shapes.properties(element)) or "nothing"
            element.fault = f"a text stands directly in <{element.name}>, beside {names}"

    def _cdata_between(self) -> bool:
        if not self._stack:
            return self._break("CDATA stands outside of an action")
        element = self._stack[-1]
        self._text_begins(element, "")
        if self._step != self._in_text:
            return self._break(f"CDATA stands directly in <{element.name}>, where only elements may")
        return True

    def _comment(self) -> bool:
        self._take(len(_COMMENT))
        return self._go(self._in_comment)

    def _in_comment(self) -> bool:
        at = self._text.find("-->")
        if at < 0:
            self._take(max(0, len(self._text) - 2))
            return False
        self._take(at + 3)
        return self._go(self._content)

    def _close_tag(self) -> bool:
        """`</name>` where elements stand."""
        end = self._text.find(">", 0, 220)
        if end < 0:
            return False if len(self._text) < 220 else self._break("this closing tag does not end")
        name = self._text[2:end].strip()
        open_ = self._stack[-1].name if self._stack else "actions"
        if name != open_:
            known = f"it closes nothing here. Open is <{open_}>"
            return self._break(f"{excerpt(self._text[: end + 1])} stands where </{open_}> must: {known}")
        self._take(end + 1)
        if not self._stack:
            self.closed = True
            return False
        return self._ended()

    def _opened(self, element: Element) -> bool:
        """The start tag is complete."""
        self._raw, self._cooked, self._had_cdata, self._nested, self._into = [], [], False, 0, ""
        if self._is_block(element):
            self._stack.pop()
        elif element.pairs and element.kind in ("open", "text"):
            self._shapes.with_attributes(element)
        if element.kind == "text":
            return self._go(self._in_text, _IN_TEXT)
        return self._go(self._undecided if element.kind == "open" else self._content)

    def _undecided(self) -> bool:
        """At the start of a parameter that may hold elements."""
        space = SPACE.match(self._text).end()  # type: ignore[union-attr]
        if space:
            self._raw.append(self._take(space))
        if not self._text or self._text == "<":
            return False
        element = self._stack[-1]
        if self._text.startswith("</"):
            element.kind = self._shapes.empty(element)
            return self._go(self._content if element.kind != "text" else self._in_text)
        found = NAME.match(self._text, 1) if self._text[0] == "<" else None
        if found is not None and found.end() == len(self._text) and len(self._text) < 202:
            return False
        if found is None:
            element.kind = "text"
            return self._go(self._in_text, _IN_TEXT)
        self._shapes.opened(element, found[0])
        if element.kind == "text":
            return self._go(self._in_text, _IN_TEXT)
        self._raw = []
        return self._go(self._content)

    # -- the text of a parameter -----------------------------------------------------------

    def _in_text(self) -> bool:
        search = _IN_MIXED if self._had_cdata else _IN_TEXT
        found = search(self._text)
        if found is None:
            self._keep(len(self._text))
            self._quick = search
            return False
        if found.start():
            self._keep(found.start())
        self._quick = None
        name = self._stack[-1].name
        if self._text[0] == "]":
            return self._late_end()
        if self._waits(CDATA) or self._waits(f"</{name}"):
            return False
        if self._text.startswith(CDATA):
            return self._begin_cdata()
        if self._text.startswith(f"</{name}"):
            return self._closing(name)
        if self._text.startswith(f"<{name}") or self._waits(f"<{name}"):
            if len(self._text) < len(name) + 2:
                return False
            self._nested += self._text[len(name) + 1] in " \t\r\n>"
        self._keep(1)
        return True

    def _closing(self, name: str) -> bool:
        """What begins like the closing tag of the text."""
        end = len(name) + 2
        space = SPACE.match(self._text, end, end + 16).end()  # type: ignore[union-attr]
        if space == len(self._text):
            return False
        if self._text[space] != ">":
            self._keep(1)
        elif self._nested:
            self._nested -= 1
            self._keep(space + 1)
        else:
            self._take(space + 1)
            self._stack[-1].text = self._whole()
            return self._ended()
        return True

    def _whole(self) -> str:
        """The text of the element: its parts, decoded, without what belongs to the form."""
        last = decoded("".join(self._raw))
        self._raw = []
        if self._had_cdata and not last.strip():
            last = ""
        return trimmed("".join([*self._cooked, last]))

    def _begin_cdata(self) -> bool:
        before = decoded("".join(self._raw))
        if before.strip() or self._had_cdata:
            self._cooked.append(before)
        self._raw, self._cdata = [], []
        self._take(len(CDATA))
        self._had_cdata = True
        return self._go(self._in_cdata, _IN_CDATA)

    def _in_cdata(self) -> bool:
        at = self._text.find("]]>")
        if at < 0:
            tail = 2 if self._text.endswith("]]") else 1 if self._text.endswith("]") else 0
            self._keep(len(self._text) - tail)
            return False
        self._keep(at)
        self._take(3)
        self._cooked.append("".join(self._cdata))
        return self._go(self._in_text)

    def _late_end(self) -> bool:
        """A second `]]>` behind a CDATA: the first was part of the text, and this may be its end."""
        if self._waits("]]>"):
            return False
        if not self._text.startswith("]]>"):
            self._keep(1)
            return True
        self._take(3)
        self._cooked.append("]]>" + "".join(self._raw))
        self._raw = []
        return True

    # -- the end of an element -------------------------------------------------------------

    def _ended(self) -> bool:
        element = self._stack.pop()
        if element.kind == "open":
            element.kind = self._shapes.empty(element)
        if self._stack:
            self._stack[-1].pairs.append((element.name, element))
        else:
            if self._into:
                element.pairs.append((self._into, element.text))
            element.kind = "action"
            self.actions.append(element)
        self._raw, self._cooked, self._had_cdata, self._nested, self._into = [], [], False, 0, ""
        return self._go(self._content)
