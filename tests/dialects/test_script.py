from __future__ import annotations

import pytest
from script_machine import CATALOGUE, Read, read

from textor.actions import Action, Outcome
from textor.dialects import dialect
from textor.dialects.script import ScriptDialect, code_variables
from textor.messages import CallChunk
from textor.values import Value


def run(text: str, finish: str = "stop", **variables: object) -> Read:
    """Read a whole reply, and the same letter by letter: both must be the same (R18)."""
    script = ScriptDialect()
    whole = read(script.parser(CATALOGUE, variables), text, finish=finish)
    assert read(script.parser(CATALOGUE, variables), text, size=1, finish=finish) == whole
    return whole


def one(text: str, **variables: object) -> object:
    """The arguments of the one action of a reply."""
    found = run(text, **variables)
    assert not found.faults
    assert len(found.actions) == 1
    return found.actions[0].arguments


def test_is_registered() -> None:
    assert isinstance(dialect("script"), ScriptDialect)


# -- calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"ls -la"', "ls -la"),
        ("'ls'", "ls"),
        ('"""ls"""', "ls"),
        ("'''ls'''", "ls"),
        ('""', ""),
        ('""""""', ""),
        (r'"a\tb\n\x41\u00e9\U0001F600\\"', "a\tb\nAé😀\\"),
        (r'"\ud83d\ude00"', "😀"),
        (r'r"C:\new"', None),  # bare text: one text without quotes may begin with r
        ('"a\nb"', "a\nb"),
        ('"say \\"hi\\""', 'say "hi"'),
        ("ls -la | grep x", "ls -la | grep x"),
        ("  ls  ", "ls"),
        ("echo \"a b\" 'c'", "echo \"a b\" 'c'"),
        ('"a |!> b"', "a |!> b"),
        ('"cd " + "/tmp"', "cd /tmp"),
        ('code="ls"', "ls"),
        ('code = "ls"', "ls"),
        ('code: "ls"', "ls"),
        ('"code" = "ls"', "ls"),
        ("code=ls", "code=ls"),  # a shell's assignment; only quotes make it a name
        ('"ls",', "ls"),
        ("<<END\nls\nEND", "ls"),
        ("code=<<END\nls\nEND\n", "ls"),
        ('"""say "hi""""', 'say "hi"'),
    ],
)
def test_one_text(written: str, text: str | None) -> None:
    expected = written if text is None else text
    assert one(f"!BASH<!|{written}|!>") == {"code": expected}


def test_arguments_of_all_kinds_in_any_order() -> None:  # R12
    written = (
        "!SEARCH<!|order='new', sites=['a', \"b|!>\"], query='x', options={'deep': [1, None]}, count=-3|!>"
    )
    assert one(written) == {
        "query": "x",
        "count": -3,
        "order": "new",
        "sites": ["a", "b|!>"],
        "options": {"deep": [1, None]},
    }


def test_by_place_then_by_name_with_defaults() -> None:
    assert one('!SEARCH<!|"x", order="old"|!>') == {"query": "x", "count": 5, "order": "old"}
    assert one('!FILES-WRITE<!|"a", "b", True|!>') == {"path": "a", "text": "b", "append": True}


def test_an_integer_for_a_number_and_texts_by_the_table_only() -> None:  # R9, R12
    assert one("!WAIT<!|2|!>") == {"seconds": 2}
    assert one("!WAIT<!|1e-1|!>") == {"seconds": 0.1}
    assert one('!WAIT<!|"2.5"|!>') == {"seconds": 2.5}
    assert one('!SEARCH<!|"[1]", sites="[\\"a\\"]"|!>') == {"query": "[1]", "count": 5, "sites": ["a"]}


def test_json_and_python_lists() -> None:
    assert one('!SEARCH<!|"x", options={"a": true, "b": null, "c": "line\nline"}|!>')["options"] == {  # type: ignore[index]
        "a": True,
        "b": None,
        "c": "line\nline",
    }


def test_no_arguments() -> None:  # R8
    assert one("!NOW<!||!>") == {}
    assert "code: is missing" in run("!BASH<!||!>").faults[0]


def test_the_name_inside_is_understood_and_prose_is_kept() -> None:
    found = run('I look.\n!files.write<!|"a", "b"|!> and then')
    assert found.called == [("files.write", {"path": "a", "text": "b", "append": False})]
    assert found.prose == "I look.\n"
    assert found.actions[0].text == '!files.write<!|"a", "b"|!>'
    assert found.places == [(2, 1)]


# -- programs (R3, R10) --------------------------------------------------------------------

PROGRAM = '''def f(x):
    """Doc |!> with "quotes" and 'others'."""
    print("a\\nb")  # ```
    return x
'''


@pytest.mark.parametrize(
    ("written", "program"),
    [
        ('"""print("a\\nb")"""', 'print("a\\nb")'),
        ("\"print('a\\nb')\"", "print('a\\nb')"),
        ('"""print(1)\\nprint(2)"""', "print(1)\nprint(2)"),
        (
            '"""\ndef f():\n    """Doc."""\n    return "\\t"\n"""',
            '\ndef f():\n    """Doc."""\n    return "\t"\n',
        ),
        ("'''x = \"a\"\ny = 'b'\n'''", "x = \"a\"\ny = 'b'\n"),
        ('"print("hello", \'x\')"', "print(\"hello\", 'x')"),
        (f"<<END\n{PROGRAM}\nEND", PROGRAM),
        (f"<<'END'\n{PROGRAM}\nEND\n", PROGRAM),
        ("<<END\nEND\nENDING\nEND x\nEND", "END\nENDING\nEND x"),
        ("<<END\nEND", ""),
        ("<<END\n\n\nEND", "\n"),
        ("<<END\na\r\n\r\nEND", "a\r\n\r"),
    ],
)
def test_the_program_that_was_meant(written: str, program: str) -> None:
    assert one(f"!PYTHON<!|{written}|!>") == {"code": program}


def test_blocks_beside_other_arguments() -> None:
    written = f'!FILES-WRITE<!|"a.py", <<E\n{PROGRAM}\nE, append=true|!>'
    assert one(written) == {"path": "a.py", "text": PROGRAM, "append": True}


def test_where_a_string_ends_must_be_certain() -> None:
    for written in (
        '!FILES-WRITE<!|"print("a", "b")", "x"|!>',
        '!FILES-WRITE<!|"a", """x = """b""", """c"""|!>',
        "!FILES-WRITE<!|'it's', 'x'|!>",
        '!BASH<!|"ls " "-la"|!>',
        '!BASH<!|echo "a |!> b"|!>',
    ):
        found = run(written)
        assert not found.called, written
        assert "certain" in found.faults[0] or "open" in found.faults[0]
        assert "<<END" in found.faults[0]
        assert found.done


# -- variables -----------------------------------------------------------------------------


def test_variables_of_the_agent_and_of_the_reply() -> None:
    text = 'dir := <!|"/tmp"|!>\nboth := <!|dir + "/a"|!>\n!BASH<!|"cd " + both + \' && ls\'|!>'
    found = run(text)
    assert found.defined == {"dir": "/tmp", "both": "/tmp/a"}
    assert found.called == [("bash", {"code": "cd /tmp/a && ls"})]
    assert one("!PYTHON<!|code_python_1|!>", code_python_1="print(1)") == {"code": "print(1)"}
    assert one("!BASH<!|dir + '/x'|!>", dir="/d") == {"code": "/d/x"}
    assert one("!SEARCH<!|q, count=n|!>", q="x", n=7) == {"query": "x", "count": 7}


def test_a_definition_takes_what_stands_there() -> None:
    assert run("note := <!|some words, and more|!>").defined == {"note": "some words, and more"}
    assert run("n := <!|5|!>").defined == {"n": "5"}
    assert run("p := <!|<<E\nx\nE|!>").defined == {"p": "x"}
    assert run('a := <!|"x"|!> b := <!|a|!>').defined == {"a": "x", "b": "x"}


def test_media_travel_by_name() -> None:
    image = Value("image", "image/png", blob="ab" * 32)
    assert one("!IMAGE-SHOW<!|photo|!>", photo=image) == {"image": "$photo"}
    assert one('!IMAGE-SHOW<!|<Image|"a.png"|Image>|!>') == {"image": "a.png"}
    assert one("!IMAGE-SHOW<!|<AImageLocation|photo|AImageLocation>|!>", photo=image) == {"image": "$photo"}
    assert one('!SEARCH<!|"x", options=<Image|a b.png|Image>|!>')["options"] == {  # type: ignore[index]
        "kind": "image",
        "source": "a b.png",
    }


def test_print_is_always_there() -> None:
    assert run('!PRINT<!|a + "!"|!>', a="x").called == [("print", {"text": "x!"})]


def test_an_undefined_variable_is_explained() -> None:
    found = run('!SEARCH<!|"x" + quary|!>', query_1="x")
    assert "line 1, column 17: there is no variable quary" in found.faults[0]
    assert "Did you mean query_1?" in found.faults[0]
    assert "there is no variable code_python_9" in run("!PYTHON<!|code_python_9|!>").faults[0]
    assert 'Did you mean "hello"' in run('!FILES-WRITE<!|hello, "x"|!>').faults[0]
    assert "+ joins texts" in run('!FILES-WRITE<!|"a" + 1, "x"|!>').faults[0]


def test_code_variables() -> None:
    text = "Look:\n```python\nprint(1)\n```\nand\n~~~\nx\ny\n~~~\n```C++ title\nend"
    assert code_variables(text) == {
        "code_python_1": "print(1)\n",
        "code_text_2": "x\ny\n",
        "code_c___3": "end",
    }


# -- what is no call -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('BASH<!|"ls"|!>', "The mark ! is missing before BASH. Write !BASH<!|code: string|!>"),
        ('so: ! BASH<!|"ls"|!>', "A blank stands behind the mark !. Write !BASH"),
        ('!BSAH<!|"ls"|!>', 'There is no "BSAH". Did you mean BASH'),
        ('!Frobnicate<!|"ls", x y|!>', 'There is no "Frobnicate". There are: BASH'),
        ('name = <!|"ls"|!>', 'A variable is set so: name := <!|"text"|!>'),
        ("!SEARCH<!|cats, 3|!>", "there is no variable cats"),
        ("!SEARCH<!|black cats|!>", '"black cats" is no value. Text stands in quotation marks.'),
        ('!SEARCH<!|"a", 3, "new", [], {}, 9|!>', "6 arguments were given, but it takes 5"),
        ('!SEARCH<!|"a", cuont=3|!>', "Did you mean count?"),
        ('!SEARCH<!|"a", "many"|!>', "count: should be an integer"),
        ('!SEARCH<!|"a", query="b"|!>', "query: was given twice"),
        ("!SEARCH<!|5|!>", "query: should be a string"),
        ('!SEARCH<!|"a", sites=[1, }|!>', "is neither JSON nor a Python list"),
        ('!SEARCH<!|f"a{x}"|!>', "Strings are not filled in: join with +."),
        ("!SEARCH<!|, 3|!>", "an argument is missing here"),
        ('!SEARCH<!|"a" +|!>', "a value is missing here"),
        ("!BASH<!|do !BASH<!|ls|!>|!>", "a call begins inside the arguments"),
        ("!BASH<!|```\nls\n```|!>", "a code fence is no argument. Write it as a block"),
        ('!SEARCH<!|"a"; 3|!>', "where it ends is not certain"),
        ("!SEARCH<!|[1] 3|!>", "where a comma, + or |!> must stand"),
    ],
)
def test_near_misses_are_explained(written: str, said: str) -> None:  # R11
    found = run(written)
    assert not found.called
    assert len(found.faults) == 1
    assert said in found.faults[0]
    assert "ine 1, column" in found.faults[0]
    assert found.done


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('!BASH<!|"ls|!>\nmore', "the string that begins at line 1, column 9 is not closed"),
        ('!BASH<!|"ls"', "its closing mark |!> is missing"),
        ("ok\n!BASH<!|ls", "the text that begins at line 2, column 9"),
        ("!BASH<!|<<END\nls\nEND more|!>", "the block that begins at line 1, column 9"),
        ("!SEARCH<!|[1, 2|!>", "the list or object that begins at line 1, column 11"),
        ('x := <!|"a', "x was not set: the string"),
        ('BASH<!|"a', "The mark ! is missing"),
    ],
)
def test_unclosed_at_the_end(written: str, said: str) -> None:
    found = run(written)
    assert not found.called
    assert said in found.faults[0]


def test_a_cut_action_never_runs() -> None:  # R7, R20
    found = run('!BASH<!|"ls"', finish="length")
    assert not found.called
    assert "cut short" in found.faults[0]


def test_quoted_text_never_acts() -> None:  # R1, R2
    text = (
        'e.g. `!BASH<!|"a"|!>` and\n```\n!BASH<!|"b"|!>\n```\n> !BASH<!|"c"|!>\n'
        '<think>!BASH<!|"d"|!></think>\n<code>!BASH<!|"e"|!></code> but: !BASH<!|"f"|!>'
    )
    found = run(text)
    assert found.called == [("bash", {"code": "f"})]
    assert not found.faults


def test_a_call_that_is_only_in_a_code_fence_is_told() -> None:
    found = run('I look:\n```\n!BASH<!|"ls"|!>\n```\n')
    assert not found.called
    assert "Line 2, column 1: what stands in a code fence is quoted" in found.faults[0]
    assert not run('Like so:\n```\nfoo !BASH<!|"ls"|!>\n!NONE<!||!>```').faults
    assert not run('```\n!BASH<!|"ls"|!>\n```\n!BASH<!|"a"|!>').faults


def test_reasoning_is_no_prose() -> None:
    assert run("<think>hm</think>Yes.").prose == "Yes."


def test_an_orphaned_end_of_reasoning_takes_back() -> None:
    script = ScriptDialect(stop=False)
    found = read(script.parser(CATALOGUE), '!BASH<!|"a"|!> hm</think>ok')
    assert found.called == []


@pytest.mark.parametrize(
    "text", ["", "  \n", "I cannot do that!", "5! <!| 3", "a <! b |!> c", "wow!!! <", "!BASH"]
)
def test_prose_stays_prose(text: str) -> None:  # R20
    found = run(text)
    assert found.prose == text
    assert not found.actions
    assert not found.misses


def test_native_calls_are_explained() -> None:
    parser = ScriptDialect().parser(CATALOGUE)
    (miss,) = parser.feed_call(CallChunk(0, name="bash"))
    assert "Write !BASH<!|code: string|!>" in miss.message  # type: ignore[union-attr]


# -- where a reply ends --------------------------------------------------------------------


def test_a_reply_ends_at_the_first_call_that_returns() -> None:
    found = run('!SPEAK<!|"hi"|!> !BASH<!|"a"|!> !BASH<!|"b"|!> BASH<!|')
    assert [name for name, _ in found.called] == ["speak", "bash"]
    assert found.done
    assert not found.faults


def test_going_on_after_a_call_can_be_chosen() -> None:
    script = ScriptDialect(stop=False)
    text = '!BASH<!|"a"|!>\n!BSAH<!|"x"|!> then\n!BASH<!|\n"b"|!>```\n!BASH<!|"c"|!>'
    for size in (0, 1, 3):
        found = read(script.parser(CATALOGUE), text, size=size)
        # ``` behind a call is not at the start of a line: inline code, which ends with its line
        assert [a["code"] for _, a in found.called] == ["a", "b", "c"]
        assert found.places == [(1, 1), (3, 1), (5, 1)]
        assert len(found.misses) == 1
        assert not found.done


# -- what is shown and taught --------------------------------------------------------------


def test_results_are_shown_by_name() -> None:
    done, failed = Action("1", "files.write", {"path": "a"}), Action("2", "now")
    (message,) = ScriptDialect().render(
        [(done, Outcome("done", "5 bytes")), (failed, Outcome.failed("no clock"))]
    )
    assert message.role == "user"
    assert message.text == "!FILES-WRITE ->\n5 bytes\n\n!NOW ->\nFailed: no clock"
    assert ScriptDialect().render([]) == ()


def test_what_is_taught_is_what_is_read() -> None:
    text = ScriptDialect().teach(list(CATALOGUE))
    assert "!FILES-WRITE<!|path: string, text: string, append?: boolean = False|!>: Does files.write." in text
    example = text[text.index("!BASH<!|") : text.index("END|!>") + len("END|!>")]
    assert run(example).called == [("bash", {"code": 'echo "hello"'})]


def test_what_is_written() -> None:
    action = Action("", "files.write", {"path": "a.txt", "text": 'END "x"\n'})
    known = ScriptDialect().write([action], list(CATALOGUE))
    assert known == '!FILES-WRITE<!|"a.txt", <<END2\nEND "x"\n\nEND2|!>'
    assert ScriptDialect().write([action]).startswith('!FILES-WRITE<!|path="a.txt", text=<<END2\n')


def test_odd_and_big_texts_arrive() -> None:  # R19
    big = "QUJD" * 250_000
    script = ScriptDialect()
    found = read(script.parser(CATALOGUE), script.write([Action("", "bash", {"code": big})]), size=997)
    assert found.called == [("bash", {"code": big})]
    assert one('!BASH<!|"a\0b\ud800 \\x00"|!>') == {"code": "a\ufffdb\ufffd \ufffd"}


@pytest.mark.filterwarnings("error")
def test_a_program_is_tried_without_a_word() -> None:
    assert one('!PYTHON<!|"""re.sub("\\d", "a\\nb")"""|!>') == {"code": 're.sub("\\d", "a\\nb")'}
