"""The pieces that the commands show and read: streams of text, calls, outcomes, answers."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor import events as e
from textor.actions import Action, Outcome
from textor.cli.questions import Answer, at_the_gate, parse_answer, parse_arguments
from textor.cli.story import Story, call_line, outcome_line
from textor.cli.stream import Stream
from textor.cli.terminal import Terminal, clean, columns
from textor.errors import TextorError, UseError
from textor.messages import said


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=8))
def test_a_stream_shows_every_word_once_whatever_the_pieces(pieces: list[str]) -> None:
    whole = "".join(pieces)
    stream, one = Stream(lambda: 30), Stream(lambda: 30)
    stream.begin()
    one.begin()
    lines = [line for piece in pieces for line in stream.feed(piece)] + stream.finish(whole)
    assert "".join("".join(lines).split()) == "".join(whole.split())
    assert all(len(line) <= 29 for line in lines)
    assert lines == one.feed(whole) + one.finish(whole)


def test_a_stream_goes_on_from_what_was_shown_and_starts_anew_when_that_was_void() -> None:
    stream = Stream(lambda: 80)
    stream.begin()
    assert stream.feed("one\ntw") == ["one"] and stream.unfinished == "tw"
    assert stream.finish("one\ntwo") == ["two"] and stream.unfinished == ""
    assert stream.has_said("one\ntwo ") and not stream.has_said("else")
    stream.begin()
    stream.feed("half a")
    assert stream.void() == ["half a"]
    assert stream.finish("whole") == ["whole"]
    stream.begin()
    stream.feed("stale")
    assert stream.finish("fresh") == ["stale", "", "fresh"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("y", Answer(True)),
        (" Yes. ", Answer(True)),
        ("n", Answer(False)),
        ("no, not that file", Answer(False, reason="not that file")),
        ("e", Answer(True, edit=True)),
        ("s", Answer(True, "session")),
        ("", None),
        ("yes but first look into it", None),
        ("nothing like that", None),
        ("yesterday", None),
    ],
)
def test_answers_at_the_gate(text: str, answer: Answer | None) -> None:
    assert parse_answer(text) == answer


def test_edited_arguments_are_an_object_or_a_sentence() -> None:
    assert parse_arguments('{"path": "b"}') == {"path": "b"}
    with pytest.raises(UseError, match=r"not valid JSON: .* character 2"):
        parse_arguments("{x")
    with pytest.raises(UseError, match="must be a JSON object"):
        parse_arguments("[1]")


def test_a_question_shows_the_exact_call() -> None:
    action = Action("a1", "files.write", {"path": "x.txt", "text": "one\n" + "z" * 900 + "\nlast"})
    question = at_the_gate(e.ActionJudged("main", "a1", "ask", "it writes files", "d"), action)
    assert question.text == (
        f'files.write\n  path: "x.txt"\n  text:\n  | one\n  | {"z" * 900}\n  | last\n'
        "This waits for you: it writes files."
    )


def test_lines_of_calls_and_outcomes_are_short_and_tell_the_exit_status() -> None:
    assert call_line(Action("a", "files.read", {"path": "é"})) == 'files.read(path="é")'
    assert len(call_line(Action("a", "files.write", {"text": "x" * 999}))) == 160
    assert outcome_line(Outcome("done", "one\ntwo\nthree")) == "done: one … (2 more lines)"
    assert outcome_line(Outcome("done", "x", exit_status=1)) == "done (exit status 1): x"
    assert outcome_line(Outcome("denied")) == "denied"


def test_the_story_names_each_action_once_and_plans_of_the_box_beforehand() -> None:
    story = Story()
    actions = (Action("1", "files.list"), Action("2", "time.now"))

    def lines(body: e.Body) -> list[str]:
        return [text for text, _ in story.tell(e.Event(body, "i", 0.0))]

    definition = e.Definition("starter")
    (hint,) = lines(e.AgentCreated("main", definition, "embedded:smollm2"))
    assert "connect a bigger one" in hint
    planned = lines(e.GenerationFinished("main", said("assistant", ""), actions))
    assert planned == ["planned:", "  1. files.list()", "  2. time.now()"]
    assert lines(e.ActionStarted("main", "1")) == ["▸ files.list()"]
    assert lines(e.ActionFinished("main", "1", Outcome("done", "x"))) == ["  done: x"]
    # What never started is named with its outcome.
    denied = lines(e.ActionFinished("main", "2", Outcome("denied", "no")))
    assert denied == ["▸ time.now()", "  denied: no"]
    assert lines(e.GenerationWaiting("main/a", "too many requests", 2.0)) == [
        "[main/a] waiting 2 s: too many requests"
    ]


def test_what_a_model_writes_cannot_drive_the_terminal() -> None:
    assert clean("a\x1b[2Jb\r\nc\td\x00\x9b") == "a\\x1b[2Jb\nc\td\\x00\\x9b"
    assert clean("abc\u202edef") == "abc\\u202edef"
    assert clean("Grüße, 你好 🙂") == "Grüße, 你好 🙂"


def test_a_reply_goes_into_a_pipe_byte_for_byte() -> None:
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err)
    terminal.reply("a\x1bb")
    terminal.say("c\x1bd", "bad")
    assert (out.getvalue(), err.getvalue()) == ("a\x1bb\n", "c\\x1bd\n")


def test_lines_are_kept_back_while_the_person_is_asked() -> None:
    err = io.StringIO()
    terminal = Terminal(io.StringIO(), err)
    terminal.hold()
    terminal.say("one")
    assert err.getvalue() == ""
    terminal.release()
    terminal.say("two")
    assert err.getvalue() == "one\ntwo\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Terminal(Screen(), Screen()).styled("x", "bad") == "\x1b[31mx\x1b[0m"
    assert Terminal(Screen(), io.StringIO()).styled("x", "bad") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Terminal(Screen(), Screen()).styled("x", "bad") == "x"


def test_columns_are_aligned() -> None:
    assert columns([("A", "BB"), ("ccc", "d\ne")]) == "A    BB\nccc  d e"


def test_a_hint_follows_the_end_of_a_sentence() -> None:
    assert str(TextorError("It said: boom", "Try again.")) == "It said: boom. Try again."
    assert (
        str(TextorError("It said: boom (tried twice)", "Try again."))
        == "It said: boom (tried twice). Try again."
    )
    assert str(TextorError("It said: why?", "Ask it.")) == "It said: why? Ask it."
