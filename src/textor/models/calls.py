"""Native function calls put together from the deltas of a stream, so that none is ever wrong.

Servers differ: some leave out the index, some give parallel calls the same index, some repeat the
name with every piece, some send arguments before the name. What cannot be understood for certain
is a `junk` fault (and the request is tried again), never a guess (case S3).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from textor.errors import ModelError
from textor.messages import CallChunk


@dataclass
class _Call:
    index: int
    wire_index: int | None
    id: str = ""
    name: str = ""
    held: str = ""  #: arguments that came before the name


class Calls:
    """Feed deltas, get chunks; `finish` checks that every call has a name."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: list[_Call] = []

    def feed(self, index: object, id: object, name: object, arguments: object) -> Iterator[CallChunk]:
        """One delta as it came, whatever the types of its fields. Raises `ModelError` (junk)."""
        for value in (id, name, arguments):
            if value is not None and not isinstance(value, str):
                raise self._junk(f"a function call holds {value!r} where text is expected")
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise self._junk(f"a function call has the index {index!r}")
        call_id, call_name, text = str(id or ""), str(name or ""), str(arguments or "")
        call = self._find(index, call_id, call_name)
        call.id = call.id or call_id
        if call_name and call.name and call_name != call.name:
            raise self._junk(f'a function call changed its name from "{call.name}" to "{call_name}"')
        if call.name:
            if text:
                yield CallChunk(call.index, arguments=text)
        elif call_name:
            call.name = call_name
            call.id = call.id or f"call_{secrets.token_hex(8)}"
            yield CallChunk(call.index, call.id, call_name, call.held + text)
        else:
            call.held += text

    def _find(self, index: int | None, id: str, name: str) -> _Call:
        """The call that a delta belongs to, or a new one."""
        if index is not None:
            # The last with this index: a server that gives all the same index tells them by their ids.
            for call in reversed(self._calls):
                if call.wire_index == index:
                    if id and call.id and id != call.id and name:
                        break
                    return call
            return self._new(index)
        if id:
            for call in self._calls:
                if call.id == id:
                    return call
            return self._new(None)
        if name or not self._calls:
            return self._new(None)
        if len(self._calls) > 1:
            raise self._junk("a piece of a function call does not say to which of several calls it belongs")
        return self._calls[0]

    def _new(self, index: int | None) -> _Call:
        call = _Call(len(self._calls), index)
        self._calls.append(call)
        return call

    def finish(self) -> None:
        """Raises `ModelError` (junk) when a call never got a name."""
        if any(not call.name for call in self._calls):
            raise self._junk("a function call came without a name")

    def __len__(self) -> int:
        return len(self._calls)

    def _junk(self, what: str) -> ModelError:
        return ModelError(f"What {self._server} sent is no valid reply: {what}.", fault="junk")
