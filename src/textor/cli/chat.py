"""`textor chat`: a conversation in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import signal
import sys
from typing import TYPE_CHECKING, Any

from textor import events as e
from textor.cli import DONE
from textor.cli.parser import Commands, add_choices
from textor.errors import TextorError, UseError

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.cli.questions import Question
    from textor.session import Session

#: What is taken for a command; `/etc/hosts` is a message.
COMMAND = re.compile(r"\s*/[a-z]+(\s|$)")

HELP = """\
Write and press Enter; what you write while it works reaches it at the next step.
  /model [ID]      show the models, or go on with another
  /stop [AGENT]    stop at the next step; again: end it now (Ctrl-C does the same)
  /kill [AGENT]    end it now
  /pause [AGENT]   begin nothing new until /go [AGENT]
  /agents          the agents of this conversation, and what each is doing
  /to AGENT TEXT   speak to another agent than the first
  /limits [NAME=N] show the limits, or set some: iterations, tokens, money (US dollars),
                   seconds, agents; as in /limits tokens=200000 seconds=none
  /quit            leave (Ctrl-D does the same); `textor sessions resume` comes back
An agent is named by its path, or the last part of it; what is done to it is done to all below it.
At a question: y, n (and why, if you like), e to edit it first, s for yes in this session, a for always.
At a reply that waits (--review): y, e to edit it first, or a remark, and it is asked for again."""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("chat", help="have a conversation", description=f"{__doc__}\n\n{HELP}")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_choices(parser)
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UseError("`textor chat` needs a terminal.", 'Elsewhere use: textor run "TASK"')
    return asyncio.run(_chat(args))


async def _chat(args: argparse.Namespace) -> int:
    from textor.assembly import open_machine
    from textor.cli.opening import configuration, workspace

    config = configuration(models__default=args.model)
    folder = workspace(args)
    async with open_machine(config) as machine:
        session = await machine.create(
            workspace=folder,
            agent=args.agent or "",
            model=args.model or "",
            policy="yes" if args.yes else config.gate.policy,
            review=args.review,
        )
        return await Chat(machine, session).run()


class Chat:
    """One conversation. Events are told above the prompt, which stays usable all the while."""

    def __init__(self, machine: Machine, session: Session) -> None:
        from textor.cli.story import Story
        from textor.cli.stream import Stream
        from textor.cli.terminal import Terminal

        self.machine = machine
        self.session = session
        self.terminal = Terminal()
        self.story = Story()
        self.stream = Stream(self._width)
        self.questions: dict[str, Question] = {}
        self.editing: Question | None = None
        self.working: set[str] = set()  #: the agents whose turn is not over
        self.stops = 0
        self._streaming = False
        self._waiting: list[str] = []
        self._hits: asyncio.Queue[None] = asyncio.Queue()
        self._prompt: Any = None

    @property
    def busy(self) -> bool:
        return bool(self.working)

    # -- the two sides ---------------------------------------------------------------------

    async def run(self) -> int:
        from prompt_toolkit import PromptSession

        from textor.cli.story import HINT, is_embedded

        self._prompt = PromptSession(key_bindings=self._keys())
        state = await self.session.state()
        model = state.agents["main"].model
        title = state.created.title if state.created else ""
        self._print(f"{title or 'Textor'} · {model} · {self.session.id} · /help", "dim")
        if is_embedded(model):
            self._print(HINT, "note")
        await self._flush()
        work = [self._type(), self._tell(state.seq), self._live(), self._interrupts()]
        tasks = [asyncio.create_task(each) for each in work]
        try:
            # Only typing ends by itself, when the person leaves; another that ends has failed.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self.busy:
            self._print("It is still at work; that goes on when you resume.", "dim")
        self._print(f"`textor sessions resume {self.session.id}` goes on with this conversation.", "dim")
        await self._flush()
        return DONE

    async def _type(self) -> None:
        """Read what the person types until they leave."""
        from prompt_toolkit.filters import Condition

        unseen = Condition(self._secret)
        while True:
            default = ""
            if self.editing is not None:
                from textor.cli.questions import arguments_text

                action = self.editing.action
                default = arguments_text(action) if action is not None else self.editing.draft
            try:
                text: str = await self._prompt.prompt_async(
                    self._message, default=default, handle_sigint=False, is_password=unseen
                )
            except EOFError:
                return
            try:
                if not await self._typed(text):
                    return
            except TextorError as error:
                self._print(f"textor: {error}", "bad")
            await self._flush()

    def _keys(self) -> Any:
        """Ctrl-C is a key while the prompt has the terminal; what is written so far stays."""
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()
        keys.add("c-c")(lambda event: self._hits.put_nowait(None))
        return keys

    async def _interrupts(self) -> None:
        """Ctrl-C, as a key or (between two prompts, or from elsewhere) as a signal."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):  # Windows has the key alone
            loop.add_signal_handler(signal.SIGINT, self._hits.put_nowait, None)
        while True:
            await self._hits.get()
            await self._stop()
            await self._flush()

    def _secret(self) -> bool:
        """Whether what is typed now answers a question that asks for a secret."""
        question = next(iter(self.questions.values()), None)
        return self.editing is None and question is not None and question.secret

    def _message(self) -> str:
        """The prompt: the line that is being written above it, and what Enter would do."""
        lines = [self.stream.unfinished] if self.stream.unfinished else []
        if self.editing is not None:
            lines.append("reply> " if self.editing.kind == "review" else "arguments> ")
        elif self.questions:
            lines.append(next(iter(self.questions.values())).prompt)
        else:
            lines.append("… > " if self.busy else "> ")
        return "\n".join(lines)

    # -- what was typed --------------------------------------------------------------------

    async def _typed(self, text: str) -> bool:
        """Act on a line; False to leave."""
        if self.editing is not None:
            await self._edited(text)
        elif not text.strip():
            pass
        elif COMMAND.match(text):
            return await self._command(text)
        elif not await self._answered(text):
            self.working.add("main")
            self.stops = 0
            await self.session.post(text)
        return True

    async def _command(self, text: str) -> bool:
        word, _, rest = text.strip().partition(" ")
        rest = rest.strip()
        match word:
            case "/quit" | "/exit":
                return False
            case "/help":
                self._print(HELP)
            case "/stop" if not rest:
                await self._stop()
            case "/model" if rest:
                await self.session.change_model(rest)
            case "/model":
                for model in await self.machine.models():
                    self._print(f"  {model.id}{'' if model.available else f' ({model.note})'}")
            case _:
                from textor.cli.reach import act

                for line in await act(self.session, word, rest):
                    self._print(line)
        return True

    async def _answered(self, text: str) -> bool:
        """Whether the line was the answer to an open question; other lines are messages."""
        from textor.cli.questions import parse_answer, review

        question = next(iter(self.questions.values()), None)
        if question is None:
            return False
        if question.kind == "agent":
            await self.session.reply(question.key, text, secret=question.secret)
        elif question.kind == "review":
            if not await review(self.session, question, text):
                self.editing = question
                return True
        else:
            answer = parse_answer(text)
            if answer is None:
                return False
            if answer.edit:
                self.editing = question
                return True
            await self.session.answer(question.key, answer.allow, reason=answer.reason, scope=answer.scope)
        self.questions.pop(question.key, None)
        return True

    async def _edited(self, text: str) -> None:
        from textor.cli.questions import parse_arguments
        from textor.record.review import parse_draft

        question, self.editing = self.editing, None
        assert question is not None
        if not text.strip() or question.key not in self.questions:
            return
        if question.kind == "review":
            await self.session.edit_reply(question.agent, parse_draft(text))
        else:
            await self.session.answer(question.key, True, arguments=parse_arguments(text))
        self.questions.pop(question.key, None)

    async def _stop(self) -> None:
        self.editing = None
        if not self.busy:
            self._print("Ctrl-D or /quit leaves.", "dim")
            return
        self.stops += 1
        await self.session.control("stop" if self.stops == 1 else "kill")
        words = "Stopping at the next step; again ends it now." if self.stops == 1 else "Ending it now."
        self._print(words, "warn")

    # -- what happens ----------------------------------------------------------------------

    async def _tell(self, known: int) -> None:
        from textor.cli.attend import closing

        async with closing(self.session.follow()) as events:
            async for event in events:
                if event.seq > known:
                    self._event(event)
                    await self._flush()
                else:
                    list(self.story.tell(event))  # it remembers the actions
                    self._note(event.body)

    def _event(self, event: e.Event) -> None:
        self._said(event.body)
        for text, style in self.story.tell(event):
            self._print(text, style)
        opened = self._note(event.body)
        if opened is not None:
            self._print(opened.text, "bold")

    def _said(self, body: e.Body) -> None:
        """The model's words: streamed as they come, made whole when the message is there."""
        match body:
            case e.GenerationStarted(agent="main"):
                self.stream.begin()
                self._streaming = True
            case e.GenerationWaiting(agent="main") | e.GenerationFailed(agent="main"):
                self._lines(self.stream.void())
            case e.GenerationFinished(agent="main", message=message):
                self._streaming = False
                self._lines(self.stream.finish(message.text))
            case e.TurnEnded(agent="main", text=text, reason=reason):
                from textor.cli.run import why

                if not self.stream.has_said(text):
                    self._lines(text.split("\n"))
                if reason not in ("replied", "asked") or body.detail:
                    self._print(why(body), "bad")

    def _note(self, body: e.Body) -> Question | None:
        """Keep what is open; returns a question that has just been opened."""
        from textor.cli.questions import at_the_gate, of_a_reply, of_an_agent
        from textor.cli.reach import for_person

        match body:
            case e.MessagesDelivered(agent=agent):
                self.working.add(agent)
            case e.TurnEnded(agent=agent):
                self.working.discard(agent)
                self.stops = self.stops if self.working else 0
                for key in [k for k, q in self.questions.items() if q.agent == agent]:
                    del self.questions[key]
            case e.GenerationFinished(agent=agent) if self.story.waits(body):
                key = f"review {agent}"
                self.questions[key] = of_a_reply(key, body)
                return self.questions[key]
            case e.ReplyReviewed(agent=agent):
                self.questions.pop(f"review {agent}", None)
            case e.ActionJudged(verdict="ask", action=key) if key in self.story.actions:
                self.questions[key] = at_the_gate(body, self.story.actions[key])
                return self.questions[key]
            case e.Asked(key=key) if for_person(body):
                self.questions[key] = of_an_agent(body)
                return self.questions[key]
            case e.ActionAnswered(action=key) | e.ActionFinished(action=key) | e.Answered(key=key):
                self.questions.pop(key, None)
        return None

    async def _live(self) -> None:
        from textor.cli.attend import closing

        async with closing(self.session.live()) as deltas:
            async for delta in deltas:
                if delta.kind == "fault":
                    self._print(
                        f"The session stands still. {delta.text} Your next message has it go on.", "bad"
                    )
                    await self._flush()
                if delta.agent != "main":
                    continue
                if delta.kind == "text" and self._streaming:
                    self._lines(self.stream.feed(delta.text))
                elif delta.kind == "progress":
                    self._print(f"  {delta.text}", "dim")
                await self._flush()

    # -- showing ---------------------------------------------------------------------------

    def _width(self) -> int:
        return int(self._prompt.output.get_size().columns) if self._prompt else 80

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self._print(line)

    def _print(self, text: str, style: str = "") -> None:
        from textor.cli.terminal import clean

        self._waiting.append(self.terminal.styled(clean(text), style))

    async def _flush(self) -> None:
        """Show what waits, above the prompt, and then the prompt as it is now: a person never sees
        a question's prompt without the question."""
        from prompt_toolkit.application import run_in_terminal

        lines, self._waiting = self._waiting, []
        if lines:
            await run_in_terminal(lambda: print("\n".join(lines), flush=True))
        elif self._prompt.app.is_running:
            self._prompt.app.invalidate()
