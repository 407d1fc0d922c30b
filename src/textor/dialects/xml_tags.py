"""Tags of an `<actions>` block: names, attributes, and the small moves of the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from textor.actions import Capability
from textor.dialects.near import excerpt
from textor.dialects.port import ActionBegun, ArgumentText, ParseEvent
from textor.dialects.xml_elements import Element, Shapes, decoded

#: Elements in elements.
DEEPEST = 32
#: Actions in a block.
MOST = 256
NAME = re.compile(r"[A-Za-z_][\w.:-]{0,199}", re.ASCII)
SPACE = re.compile(r"\s*")
CDATA = "<![CDATA["
_IN_VALUE = {q: re.compile(q).search for q in "\"'"}
_BARE_END = re.compile(r"[\s>\"'<=]|/>")
CLOSE = "</actions>"


class Broken(NamedTuple):
    """Why the block cannot be read, and at which character of the reply."""

    what: str
    offset: int


class TagReader:
    """The ground of `BlockReader`: what was read, what is unread, small moves, and the states of tags."""

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
        self._take(SPACE.match(self._text).end())  # type: ignore[union-attr]
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
        self._take(SPACE.match(self._text).end())  # type: ignore[union-attr]
        if not self._text:
            return False
        if self._text[0] != "=":
            name = self._attribute
            return self._break(f'the attribute {name} has no value. Write {name}="value"')
        self._take(1)
        return self._go(self._value)

    def _value(self) -> bool:
        self._take(SPACE.match(self._text).end())  # type: ignore[union-attr]
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

    # -- what `BlockReader` adds ------------------------------------------------------------

    def _content(self) -> bool:
        """The state between elements."""
        raise NotImplementedError

    def _in_cdata(self) -> bool:
        raise NotImplementedError

    def _between(self, text: str) -> None:
        raise NotImplementedError

    def _opened(self, element: Element) -> bool:
        """A start tag is complete."""
        raise NotImplementedError

    def _ended(self) -> bool:
        """An element is complete."""
        raise NotImplementedError
