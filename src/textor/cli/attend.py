"""Attending a session from a plain terminal until its turn ends: progress, questions, Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from textor import events as e
from textor.cli.interrupts import interrupts
from textor.cli.questions import (
    Answer,
    Question,
    arguments_text,
    at_the_gate,
    of_a_reply,
    of_an_agent,
    parse_answer,
    parse_arguments,
    review,
)
from textor.cli.reach import for_person
from textor.cli.story import Story
from textor.cli.terminal import Terminal
from textor.errors import TextorError, UseError
from textor.record.review import parse_draft

if TYPE_CHECKING:
    from textor.session import Session

NOBODY = "Nobody is here to answer. Go on with what you know, or end with what you have."


@asynccontextmanager
async def closing(stream: AsyncIterator[Any]) -> AsyncIterator[AsyncIterator[Any]]:
    """Close an asynchronous generator when we stop reading it, not when it is collected."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class Attendant:
    """Follows one session, tells what happens, and asks the person where one is there."""

    def __init__(self, session: Session, terminal: Terminal, *, attended: bool) -> None:
        self.session = session
        self.terminal = terminal
        self.attended = attended
        self.story = Story()
        self.interrupted = False
        self._questions: asyncio.Queue[Question] = asyncio.Queue()
        self._settled: set[str] = set()
        self._reviews: dict[str, str] = {}  # agent -> the event of its reply that waits
        self._changed = asyncio.Event()

    async def until_end(self, after: int = 0) -> e.TurnEnded:
        """Attend until the turn of `main` ends; events up to `after` are not told again."""
        helpers = [
            asyncio.create_task(work()) for work in (self._show_progress, self._ask_all, self._interrupts)
        ]
        try:
            return await self._ended(after, helpers)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            self.terminal.release()

    async def _ended(self, after: int, helpers: list[asyncio.Task[None]]) -> e.TurnEnded:
        reading = asyncio.create_task(self._follow(after))
        try:
            # A helper never ends by itself: the first that does has failed, and so have we.
            done, _ = await asyncio.wait([reading, *helpers], return_when=asyncio.FIRST_COMPLETED)
            for helper in done - {reading}:
                helper.result()
            return await reading
        finally:
            reading.cancel()

    async def _follow(self, after: int) -> e.TurnEnded:
        async with closing(self.session.follow()) as events:
            async for event in events:
                lines = list(self.story.tell(event))
                if event.seq <= after:
                    continue
                for text, style in lines:
                    self.terminal.say(text, style)
                if isinstance(event.body, e.TurnEnded) and event.body.agent == "main":
                    return event.body
                await self._note(event)
        raise AssertionError("a session is followed for ever")

    async def _note(self, event: e.Event) -> None:
        """Keep the list of open questions."""
        body = event.body
        match body:
            case e.GenerationFinished(agent=agent) if self.story.waits(body):
                if self.attended:
                    self._reviews[agent] = event.id
                    self._questions.put_nowait(of_a_reply(event.id, body))
                else:
                    self.terminal.say("Replies of this agent wait for a person, and nobody is here.", "bad")
                    await self.session.control("stop", agent)
            case e.ReplyReviewed(agent=agent) | e.TurnEnded(agent=agent):
                self._settled.add(self._reviews.pop(agent, ""))
                self._changed.set()
            case e.ActionJudged(verdict="ask", action=id):
                if self.attended:
                    self._questions.put_nowait(at_the_gate(body, self.story.actions[id]))
            case e.Asked(key=key) if for_person(body):
                if self.attended:
                    self._questions.put_nowait(of_an_agent(body))
                else:
                    await self.session.reply(key, NOBODY)
            case e.ActionAnswered(action=key) | e.ActionFinished(action=key) | e.Answered(key=key):
                self._settled.add(key)
                self._changed.set()

    async def _show_progress(self) -> None:
        async with closing(self.session.live()) as deltas:
            async for delta in deltas:
                if delta.kind == "progress":
                    self.terminal.say(f"  {delta.text}", "dim")
                elif delta.kind == "fault":
                    resume = f"`textor sessions resume {self.session.id}` goes on with it."
                    raise TextorError(f"The session stands still. {delta.text}", resume)

    # -- questions -------------------------------------------------------------------------

    async def _ask_all(self) -> None:
        while True:
            question = await self._questions.get()
            if question.key not in self._settled:
                await self._ask(question)
                self.terminal.release()

    async def _ask(self, question: Question) -> None:
        self.terminal.say(question.text, "bold")
        self.terminal.hold()
        while True:
            with unseen() if question.secret else nullcontext():
                line = await self._line(question.prompt, question.key)
            if question.key in self._settled:
                return  # somebody else was quicker, or the action was given up
            if line is None:
                await self._send(question, Answer(False, reason="nobody answered"), NOBODY)
                return
            if question.kind == "agent":
                await self.session.reply(question.key, line, secret=question.secret)
                return
            if question.kind == "review":
                if line.strip() and (
                    await review(self.session, question, line) or await self._edit(question)
                ):
                    return
                continue
            answer = parse_answer(line)
            if answer is not None and await self._send(question, answer):
                return

    async def _edit(self, question: Question) -> bool:
        """Have a reply edited; False when that was not understood."""
        print(question.draft, file=self.terminal.err)
        line = await self._line("New reply: ", question.key)
        if not line:
            return False
        try:
            await self.session.edit_reply(question.agent, parse_draft(line))
        except UseError as error:
            print(error, file=self.terminal.err)
            return False
        return True

    async def _send(self, question: Question, answer: Answer, text: str = "") -> bool:
        """Hand an answer on; False when the edited arguments were not understood."""
        if question.kind == "agent":
            await self.session.reply(question.key, text)
            return True
        if question.kind == "review":
            await self.session.control("stop", question.agent)
            return True
        assert question.action is not None
        arguments = None
        if answer.edit:
            print(arguments_text(question.action), file=self.terminal.err)
            line = await self._line("New arguments: ", question.key)
            if line is None:
                return False
            try:
                arguments = parse_arguments(line)
            except UseError as error:
                print(error, file=self.terminal.err)
                return False
        await self.session.answer(
            question.key, answer.allow, reason=answer.reason, scope=answer.scope, arguments=arguments
        )
        return True

    async def _line(self, prompt: str, key: str) -> str | None:
        """One line of the person's, without its end; None at the end of input, or as soon as the
        question is settled by somebody else."""
        print(prompt, end="", file=self.terminal.err, flush=True)
        reading = asyncio.create_task(read_line())
        try:
            while not reading.done() and key not in self._settled:
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait([reading, changed], return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            if reading.done():
                return reading.result()
            print(file=self.terminal.err)
            return None
        finally:
            reading.cancel()

    # -- Ctrl-C ----------------------------------------------------------------------------

    async def _interrupts(self) -> None:
        async def stop() -> None:
            self.interrupted = True
            await self.session.control("stop")

        async def kill() -> None:
            await self.session.control("kill")

        await interrupts(self.terminal, stop, kill)


@contextmanager
def unseen() -> Iterator[None]:
    """What is typed on the terminal is not shown."""
    try:
        import termios
    except ImportError:  # Windows
        yield
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(file, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
        print(file=sys.stderr)


async def read_line() -> str | None:
    """One line from the terminal on stdin, without its end; None at the end of input.

    A terminal hands out whole lines, so a read that the loop announced never waits; and no thread
    is left behind that would still be reading when the question is withdrawn.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    file = sys.stdin.fileno()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    content = os.read(file, 65_536)
    return content.decode("utf-8", "replace").rstrip("\r\n") if content else None
