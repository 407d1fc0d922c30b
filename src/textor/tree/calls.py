"""The call tree: agents that call each other and may ask back, as capabilities on the one road.

`call` posts a message to a child and waits for what it says next: its reply, or a question. `ask`
waits for an answer in the middle of a turn. Nothing here is kept outside the journal: a call that
a crash interrupted is made again under the same key and finds where it stood.

The idea of agents that return many times and may answer with a question is from AIlice (the
"interactive agents call tree").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from textor import events as e
from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.errors import CapabilityError
from textor.events import Definition
from textor.kernel.state import Owed, State, open_work
from textor.kernel.steps import told
from textor.tree.scope import Scope
from textor.values import Json, references

#: (type, session state, workspace) -> definition; raises `TextorError` with the nearest type
Load = Callable[[str, Scope], Definition]
#: (name, definition, the caller's action) -> the event that makes the agent
Make = Callable[[str, Definition, Scope], e.AgentCreated]

CALL = Capability(
    "call",
    "Give a task to another agent and wait for its reply. The first call of a name makes the agent; "
    "later ones go on with it, with all that it remembers. Its reply may be a question: then call it "
    "again with the answer. `$name` in the message hands a variable over.",
    parameters(
        ("type", "name", "message"),
        type={"type": "string", "description": "agent type"},
        name={"type": "string", "description": "a name of your choice, letters, digits, - and _"},
        message={"type": "string", "description": "the task, with all that it needs to know"},
        background={
            "type": "boolean",
            "description": "do not wait; the reply comes as a message",
            "default": False,
        },
    ),
    repeat="keyed",
)
ASK = Capability(
    "ask",
    "Ask whoever gave you your task, and go on with the answer.",
    parameters(("question",), question={"type": "string"}),
    repeat="keyed",
)
ANSWER = Capability(
    "answer",
    "Answer a question of an agent that you called, by its id, and wait for what it says next.",
    parameters(
        ("id", "text"), id={"type": "string", "description": "the question's id"}, text={"type": "string"}
    ),
    repeat="keyed",
)
NOTE = Capability(
    "notes.set",
    "Keep a short note in view in all later iterations. An empty text removes it.",
    parameters(("key", "text"), key={"type": "string"}, text={"type": "string"}),
    repeat="idempotent",
)


def tree_provider(load: Load, make: Make) -> TableProvider:
    """The provider `tree`: call, ask, answer, notes."""
    tree = Tree(load, make)
    return TableProvider(
        "tree",
        [Entry(CALL, tree.call), Entry(ASK, tree.ask), Entry(ANSWER, tree.answer), Entry(NOTE, tree.note)],
    )


class Tree:
    def __init__(self, load: Load, make: Make) -> None:
        self._load = load
        self._make = make
        self._making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def call(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        name, message = str(arguments["name"]), str(arguments["message"])
        if not name or not all(c.isalnum() or c in "-_" for c in name):
            raise CapabilityError(f"{name!r} cannot be a name.", "Use letters, digits, - and _.")
        child = f"{scope.agent}/{name}"
        await self._ensure(child, str(arguments["type"]), scope)
        caller = scope.state.agents[scope.agent]
        values = references(message, caller.variables)
        labels = caller.turn.labels if caller.turn else ()
        posted = e.MessagePosted(child, message, scope.agent, values, labels, key=scope.key)
        await scope.post(posted, f"call {scope.key}")
        if arguments["background"]:
            return Outcome("done", f"{name} is at work; its reply comes as a message.")
        return await self._next(scope, child)

    async def ask(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        agent = scope.state.agents[scope.agent]
        if not agent.caller and not scope.state.attended:
            raise CapabilityError("Nobody is here to be asked.", "Go on with your best judgement.")
        question = str(arguments["question"])
        values = references(question, agent.variables)
        await scope.post(e.Asked(agent.id, question, scope.key, values), f"ask {scope.key}")
        answer = await scope.until(lambda state: state.answers.get(scope.key))
        return Outcome("done", answer.text, answer.values, labels=answer.labels)

    async def answer(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        id, text = str(arguments["id"]), str(arguments["text"])
        asker = _asker(scope.state, scope.agent, id, scope.key)
        agent = scope.state.agents[scope.agent]
        values = references(text, agent.variables)
        labels = agent.turn.labels if agent.turn else ()
        await scope.post(e.Answered(id, text, scope.agent, scope.key, values, labels), f"answer {scope.key}")
        given = await scope.until(lambda state: state.answers.get(id))
        if given.by != scope.key:
            raise CapabilityError(f"The question {id} was answered by somebody else: {given.text}")
        return await self._next(scope, asker)

    async def note(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        body = e.NoteSet(scope.agent, str(arguments["key"]), str(arguments["text"]))
        await scope.post(body, f"note {scope.key}")
        return Outcome("done", "Noted." if body.text else "Removed.")

    async def _ensure(self, child: str, type: str, scope: Scope) -> None:
        """The child is there and of this type. Raises `TextorError` when it cannot be made."""
        lock = self._making.setdefault(scope.session, asyncio.Lock())
        async with lock:  # so that the limit on agents is exact
            state = scope.state
            known = state.agents.get(child)
            if known is not None and known.definition.type != type:
                raise CapabilityError(
                    f"{known.id.rpartition('/')[2]} is already an agent of the type {known.definition.type}.",
                    "Take another name, or call it with its type.",
                )
            if known is not None:
                return
            definition = self._load(type, scope)
            most = state.limits.agents
            if most is not None and len(state.agents) >= most:
                raise CapabilityError(
                    f"This session already has {most} agents, as many as its budget allows.",
                    "Go on with those that are there.",
                )
            await scope.post(self._make(child, definition, scope), f"agent {child}")
            await scope.until(lambda state: state.agents.get(child))

    async def _next(self, scope: Scope, child: str) -> Outcome:
        """What the child says next to this action: its reply or a question; or, when another
        agent has a question first, that the reply will come as a message."""

        def ready(state: State) -> Outcome | None:
            if owed := state.owed.get(scope.key):
                return _reply(owed, scope.key)
            caller = state.agents[scope.agent]
            asked = [
                (k, o) for k, o in state.owed.items() if o.caller == caller.id and o.reason == "question"
            ]
            for key, owed in asked:
                if owed.agent == child and scope.key == _first(state, child):
                    return Outcome("done", told(owed, key), owed.values, hands=key, labels=owed.labels)
            for key, question in state.questions.items():
                if question.agent == child and key not in state.owed:  # told already, not answered yet
                    text = f"It waits for an answer to: {question.question}\n[answer with the id {key}]"
                    return Outcome("done", text)
            waiting = any(posted.hands in state.questions for _, posted in caller.inbox)
            if asked or waiting:
                return Outcome(
                    "done", f"{child.rpartition('/')[2]} is still at work; its reply comes as a message."
                )
            return None

        return await scope.until(ready)


def _own(scope: PortScope) -> Scope:
    assert isinstance(scope, Scope)  # the kernel hands out no other
    return scope


def _first(state: State, child: str) -> str:
    """The first action that waits for this child: of several, it is the one to hear a question."""
    agent = state.agents[child]
    waiting = open_work(state.agents.get(agent.caller))
    return next((key for key in (agent.turn.keys if agent.turn else ()) if key in waiting), "")


def _reply(owed: Owed, key: str) -> Outcome:
    state = "done" if owed.reason in ("replied", "asked") else "failed"
    return Outcome(state, told(owed, key), owed.values, hands=key, labels=owed.labels)  # type: ignore[arg-type]


def _asker(state: State, answerer: str, id: str, key: str) -> str:
    """The agent that asked this question of `answerer`. Raises `CapabilityError`."""
    for question in state.questions.values():
        if question.key == id and state.agents[question.agent].caller == answerer:
            return question.agent
    given = state.answers.get(id)
    if given is not None and given.by == key:  # ours, from before a crash
        return id.rpartition(".")[0].rpartition(".")[0]
    open_ones = [k for k, q in state.questions.items() if state.agents[q.agent].caller == answerer]
    hint = f"Open questions: {', '.join(open_ones)}." if open_ones else "No question is open."
    gone = " was answered already" if given is not None else " is not a question that was asked of you"
    raise CapabilityError(f"{id!r}{gone}.", hint)
