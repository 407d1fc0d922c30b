"""A streaming reader of one `<actions>` block.

Not an XML parser: no document type, no entities but the five and numbers, bounded depth, nothing
fetched. `&` and `<` that are no markup are text; inside the text of a parameter only its own
closing tag and CDATA are markup. Each state takes what it is certain of and leaves a few
characters unread at most, so the work is linear and the same for any chunking.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from textor.actions import Capability
from textor.dialects.near import excerpt
from textor.dialects.port import ActionBegun, ArgumentText, ParseEvent, Prose
from textor.dialects.xml_elements import Element, Shapes, decoded, trimmed

#: Elements in elements.
DEEPEST = 32
#: Actions in a block.
MOST = 256
NAME = re.compile(r"[A-Za-z_][\w.:-]{0,199}", re.ASCII)
_SPACE = re.compile(r"\s*")
_CDATA, _COMMENT = "<![CDATA[", "<!--"
_IN_TEXT = re.compile(r"<").search
_IN_MIXED = re.compile(r"[<\]]").search
_IN_CDATA = re.compile(r"\]").search
_IN_VALUE = {q: re.compile(q).search for q in "\"'"}
_BARE_END = re.compile(r"[\s>\"'<=]|/>")
CLOSE = "</actions>"


class Broken(NamedTuple):
    """Why the block cannot be read, and at which character of the reply."""

    what: str
    offset: int


class BlockReader:
    """Begins behind `<actions`. `feed` until `closed` or `broken`; then `actions` and `rest`."""

    def __init__(self, find: Callable[[str], Capability | None], offset: int, position: int) -> None:
        self.actions: list[Element] = []
        self.capabilities: list[Capability | None] = []
        self.closed = False
        self.broken: Broken | None = None
        self.events: list[ParseEvent] = []
        self.position = position  #: of the next action
        self._find = find
        self._text = ""
        self._offset = offset
        self._step: Callable[[], bool] = self._tag
        self._quick: Callable[[str], object] | None = None
        self._stack = [Element("actions", offset, "action")]  # its tag is open
        self._blank: list[str] = []  # white space between elements, not shown yet
        self._shapes = Shapes(None)
        self._into = ""  # the parameter that the text of the action is
        self._raw: list[str] = []  # text of the innermost element, not decoded
        self._cooked: list[str] = []  # its decoded parts
        self._cdata: list[str] = []
        self._had_cdata = False
        self._nested = 0
        self._attribute = ""
        self._quote = ""

    @property
    def rest(self) -> str:
        return self._text

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def open(self) -> Element | None:
        """The innermost element that is not closed."""
        return self._stack[-1] if self._stack else None

    @property
    def may_end(self) -> bool:
        """All elements are closed, and nothing is unread but a part of the closing tag."""
        unread = self._text.strip()
        return not self._stack and self._step == self._content and CLOSE.startswith(unread)

    def quick(self, text: str) -> bool:
        """Take a text in which nothing is special. False when it must be fed."""
        if self._text or self._quick is None or self._quick(text) is not None:
            return False
        self._parts.append(text)
        self._offset += len(text)
        return True

    def feed(self, text: str) -> None:
        self._text += text
        while not self.closed and self.broken is None and self._step():
            pass

    # -- small moves -----------------------------------------------------------------------

    @property
    def _parts(self) -> list[str]:
        return self._cdata if self._step == self._in_cdata else self._raw

    def _take(self, count: int) -> str:
        taken, self._text = self._text[:count], self._text[count:]
        self._offset += count
        return taken

    def _keep(self, count: int) -> None:
        text = self._take(count)
        if text:
            self._parts.append(self._shown(text))

    def _shown(self, text: str) -> str:
        if text and self.capabilities:
            self.events.append(ArgumentText(self.position - 1, text))
        return text

    def _is_block(self, element: Element) -> bool:
        return element.name == "actions" and len(self._stack) == 1

    def _go(self, step: Callable[[], bool], quick: Callable[[str], object] | None = None) -> bool:
        self._step, self._quick = step, quick
        return True

    def _waits(self, mark: str) -> bool:
        return len(self._text) < len(mark) and mark.startswith(self._text)

    def _break(self, what: str, offset: int | None = None) -> bool:
        self.broken = Broken(what, self._offset if offset is None else offset)
        return False

    # -- content ---------------------------------------------------------------------------

    def _content(self) -> bool:
        """Between elements: of the block, of an action, of a list or an object."""
        at = self._text.find("<")
        if at != 0:
            self._between(self._take(at if at > 0 else len(self._text)))
            return bool(self._text)
        for mark, step in ((_CDATA, self._cdata_between), (_COMMENT, self._comment)):
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
        if into:
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

    # -- tags ------------------------------------------------------------------------------

    def _start_tag(self) -> bool:
        found = NAME.match(self._text, 1)
        assert found is not None
        if found.end() == len(self._text):
            return False if len(self._text) < 202 else self._break("the name of this element does not end")
        if self._text[found.end()] not in " \t\r\n/>":
            self._between(self._take(1))
            return True
        name, offset = found[0], self._offset
        self._take(found.end())
        self._raw, self._blank = [], []
        if not self._stack and len(self.actions) >= MOST:
            return self._break(f"more than {MOST} actions stand in this block", offset)
        if not self._stack:
            self._begin(name, offset)
        elif len(self._stack) >= DEEPEST:
            return self._break(f"more than {DEEPEST} elements stand in each other here", offset)
        else:
            self._stack.append(self._shapes.child(self._stack[-1], name, offset))
        return self._go(self._tag)

    def _begin(self, name: str, offset: int) -> None:
        """An action begins; or the model starts the block over."""
        self._stack.append(Element(name, offset, "action"))
        if name == "actions":
            self.actions, self.capabilities = [], []
            return
        capability = self._find(name)
        self._shapes = Shapes(capability)
        self.capabilities.append(capability)
        self.events.append(ActionBegun(self.position, capability.name if capability else name))
        self.position += 1

    def _tag(self) -> bool:
        """In a start tag, between its attributes."""
        self._take(_SPACE.match(self._text).end())  # type: ignore[union-attr]
        if not self._text or self._text == "/":
            return False
        element = self._stack[-1]
        if self._text[0] == ">":
            self._take(1)
            return self._opened(element)
        if self._text.startswith("/>"):
            self._take(2)
            self.closed = self._is_block(element)
            return not self.closed and self._ended()
        found = NAME.match(self._text)
        if found is None:
            what = f"{excerpt(self._text[0])} stands in the tag of <{element.name}>"
            return self._break(f'{what}. An attribute is name="value", with " in it as &quot;')
        if found.end() == len(self._text):
            return False if len(self._text) < 200 else self._break("the name of this attribute does not end")
        self._attribute = self._take(found.end())
        return self._go(self._equals)

    def _equals(self) -> bool:
        self._take(_SPACE.match(self._text).end())  # type: ignore[union-attr]
        if not self._text:
            return False
        if self._text[0] != "=":
            name = self._attribute
            return self._break(f'the attribute {name} has no value. Write {name}="value"')
        self._take(1)
        return self._go(self._value)

    def _value(self) -> bool:
        self._take(_SPACE.match(self._text).end())  # type: ignore[union-attr]
        if not self._text:
            return False
        self._raw = []
        self._quote = self._text[0] if self._text[0] in "\"'" else ""
        if self._quote:
            self._take(1)
            return self._go(self._in_value, _IN_VALUE[self._quote])
        return self._go(self._bare_value)

    def _in_value(self) -> bool:
        at = self._text.find(self._quote)
        if at < 0:
            self._raw.append(self._shown(self._take(len(self._text))))
            return False
        self._raw.append(self._shown(self._take(at)))
        self._take(1)
        self._attribute_ended()
        return self._go(self._after_value)

    def _after_value(self) -> bool:
        """What follows a value shows whether its quotation mark was its end."""
        if not self._text:
            return False
        if self._text[0] not in " \t\r\n/>":
            name = self._attribute
            what = f"the value of {name} has a {self._quote} in it, before {excerpt(self._text[0])}"
            return self._break(f"{what}. Write it as &quot;, or write <{name}>…</{name}>")
        return self._go(self._tag)

    def _bare_value(self) -> bool:
        found = _BARE_END.search(self._text)
        if found is None:
            kept = len(self._text) - self._text.endswith("/")
            self._raw.append(self._take(kept))
            return False
        self._raw.append(self._take(found.start()))
        if found[0] in "\"'<=" or not any(self._raw):
            name = self._attribute
            return self._break(f'the value of {name} needs quotation marks: {name}="value"')
        self._attribute_ended()
        return self._go(self._tag)

    def _attribute_ended(self) -> None:
        self._stack[-1].pairs.append((self._attribute, decoded("".join(self._raw))))
        self._raw = []

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
        space = _SPACE.match(self._text).end()  # type: ignore[union-attr]
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
        if self._waits(_CDATA) or self._waits(f"</{name}"):
            return False
        if self._text.startswith(_CDATA):
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
        space = _SPACE.match(self._text, end, end + 16).end()  # type: ignore[union-attr]
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
        self._take(len(_CDATA))
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
