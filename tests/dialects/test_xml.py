from __future__ import annotations

import pytest
from script_machine import Read, capability, read

from textor.actions import Action, Catalogue, Outcome
from textor.dialects import dialect
from textor.dialects.xml import Xml
from textor.messages import CallChunk
from textor.values import Json

STRINGS = {"type": "array", "items": {"type": "string"}}
CATALOGUE = Catalogue(
    [
        capability("read_stdin", n="integer"),
        capability("write_stdout", "message", message="string"),
        capability(
            "start_container",
            "image",
            image="string",
            timeout="number",
            volumes=STRINGS,
            command="string",
            parameter=STRINGS,
            ports={"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            environment={"type": "object", "additionalProperties": {"type": "string"}},
            keep={"type": "boolean", "default": False},
        ),
        capability("files.list", path={"type": "string", "default": "."}),
        capability("files.write", "path", "content", path="string", content="string"),
        capability("shell", "code", code="string"),
        capability("free", value={}),
        capability("either", what={"type": ["string", "array"], "items": {"type": "string"}}),
    ]
)


def run(text: str, finish: str = "stop", made: Xml | None = None) -> Read:
    """Read a whole reply, and the same in pieces: all must be the same (R18)."""
    made = made or Xml()
    whole = read(made.parser(CATALOGUE), text, finish=finish)
    for size in (1, 2, 7):
        assert read(made.parser(CATALOGUE), text, size=size, finish=finish) == whole
    return whole


def block(inside: str) -> Read:
    return run(f"I think.\n<actions>\n{inside}\n</actions>")


def one(inside: str) -> dict[str, Json]:
    found = block(inside)
    assert not found.faults
    assert len(found.actions) == 1
    return found.actions[0].arguments


def test_is_registered() -> None:
    assert isinstance(dialect("xml"), Xml)


# -- what SIA writes -----------------------------------------------------------------------

SIA = """John did not specify an exact time. I'll suggest 9am & write it down: 1 < 2.
<actions>
  <write_stdout message="I'll remind you to feed the cat tomorrow morning at 9am. Is that ok?"/>
  <start_container image="busybox:latest" timeout="1000" volumes="/tasks:/tasks">
      <volumes>
        <volume>/models/:/models/</volume>
        <volume>/data/:/data/</volume>
      </volumes>
      <command>sh</command>
      <parameter>-c</parameter>
      <parameter><![CDATA[echo 'feed the cat' > /tasks/reminder.txt]]></parameter>
  </start_container>
</actions>
"""


def test_attributes_and_children_merge_in_order() -> None:
    found = run(SIA)
    assert not found.faults
    assert found.called == [
        ("write_stdout", {"message": "I'll remind you to feed the cat tomorrow morning at 9am. Is that ok?"}),
        (
            "start_container",
            {
                "image": "busybox:latest",
                "timeout": 1000,
                "volumes": ["/tasks:/tasks", "/models/:/models/", "/data/:/data/"],
                "command": "sh",
                "parameter": ["-c", "echo 'feed the cat' > /tasks/reminder.txt"],
                "keep": False,
            },
        ),
    ]
    assert found.prose.startswith("John did not specify")
    assert found.places == [(3, 3), (4, 3)]
    assert not found.done


@pytest.mark.parametrize(
    ("inside", "key", "value"),
    [
        (
            '<start_container image="i"><volume>a</volume><volume>b</volume></start_container>',
            "volumes",
            ["a", "b"],
        ),
        ('<start_container image="i" parameter="-c"/>', "parameter", ["-c"]),
        (
            '<start_container image="i"><parameter>["a", "b"]</parameter></start_container>',
            "parameter",
            ["a", "b"],
        ),
        ("<start_container image='i' parameter='[1'/>", "parameter", ["[1"]),
        ('<start_container image="i"><volumes/></start_container>', "volumes", []),
        ('<start_container image="i"><volumes></volumes></start_container>', "volumes", []),
        ('<start_container image="i"><volumes><item>a</item></volumes></start_container>', "volumes", ["a"]),
        ("<start_container image=i keep=true/>", "keep", True),
        (
            "<start_container image='i'><ports><p port='8'/><x><port>81</port></x></ports></start_container>",
            "ports",
            [{"port": 8}, {"port": 81}],
        ),
        (
            '<start_container image="i"><environment A="1"><B>x &amp; y</B></environment></start_container>',
            "environment",
            {"A": "1", "B": "x & y"},
        ),
        (
            '<start_container><image>i</image><environment>{"A": "1"}</environment></start_container>',
            "environment",
            {"A": "1"},
        ),
        *(
            (f"<start_container image='i'{inside}</start_container>", "environment", {"A": "1", "B": "x = y"})
            for inside in (
                " environment='A=1'><environment>B=x = y</environment>",
                "><environment name='A'>1</environment><environment>B=x = y</environment>",
                "><environment><v name='A' value='1'/><v key='B'>x = y</v></environment>",
                "><environment A='1'/><environment><v name='B'><![CDATA[x = y]]></v></environment>",
                "><environment>A=1</environment><environment><B>x = y</B></environment>",
            )
        ),
        ("<either><what>text</what></either>", "what", "text"),
        ("<either><what>a</what><what>b</what></either>", "what", ["a", "b"]),
        ("<either><what><b>bold</b></what></either>", "what", "<b>bold</b>"),
        ("<free><value><a>1</a><b><c>2</c></b></value></free>", "value", {"a": "1", "b": {"c": "2"}}),
        ("<free><value>1</value><value>2</value></free>", "value", ["1", "2"]),
    ],
)
def test_values_by_schema(inside: str, key: str, value: Json) -> None:
    assert one(inside)[key] == value


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("<environment>A=1</environment><environment A='2'/>", "environment.A: was given twice"),
        ("<environment>A=1</environment><environment>2</environment>", "Write A=1"),
        ("<environment>[1]</environment>", "environment: should be an object"),
    ],
)
def test_a_table_of_texts_holds_each_name_once(inside: str, why: str) -> None:
    assert why in block(f"<start_container image='i'>{inside}</start_container>").faults[0]


def test_names() -> None:
    found = block("<files.list/><files_list path='a'/>")
    assert found.called == [("files.list", {"path": "."}), ("files.list", {"path": "a"})]


@pytest.mark.parametrize(
    "inside",
    [
        "<shell>ls && echo <b> 'x' </shell>",
        "<shell><code>ls && echo <b> 'x' </code></shell>",
        "<shell><![CDATA[ls && echo <b> 'x' ]]></shell>",
        "<shell>\n  <![CDATA[ls && echo <b> 'x' ]]>\n</shell>",
        "<shell code=\"ls && echo <b> 'x' \"/>",
        "<shell code='ls &amp;&amp; echo &lt;b&gt; &apos;x&#39; '/>",
    ],
)
def test_one_text_in_every_form(inside: str) -> None:
    assert one(inside) == {"code": "ls && echo <b> 'x' "}


# -- payloads (R3, R13) --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("cats & dogs", "cats & dogs"),
        ("1 < 2 <3 <- <= </ </x> <!-- -->", "1 < 2 <3 <- <= </ </x> <!-- -->"),
        ("&amp;lt; &lt; &#65;&#x42; &nbsp; &#0; &#xD800; &amp", "&lt; < AB &nbsp; &#0; &#xD800; &amp"),
        ("see </parameter> and |!>", "see </parameter> and |!>"),
        ('html = "<content>x</content>"', 'html = "<content>x</content>"'),
        ("<content/> <content a='1'>x</content >", "<content/> <content a='1'>x</content >"),
        ("<contents>", "<contents>"),
        ("  kept  ", "  kept  "),
        ("\n  two\n    lines\n  ", "  two\n    lines"),
        ("\n\na\n\n", "\na\n"),
        ("a\nb", "a\nb"),
        ("\r\na\r\n", "a\r"),
        ("<![CDATA[a]]>", "a"),
        ("\n    <![CDATA[\ndef f():\n    return 1 < 2 & 3\n]]>\n  ", "def f():\n    return 1 < 2 & 3"),
        ("<![CDATA[x[y[0]]>1]]>", "x[y[0]]>1"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        ("<![CDATA[&lt;]]>", "&lt;"),
        ("a<![CDATA[<b>]]>c &amp; d", "a<b>c & d"),
        ("<![CDATA[</content></files.write></actions>]]>", "</content></files.write></actions>"),
        ("\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
        ("", ""),
    ],
)
def test_a_text_arrives_as_it_was_meant(written: str, text: str) -> None:
    assert one(f'<files.write path="a"><content>{written}</content></files.write>')["content"] == text


def test_attributes_hold_everything_but_their_quotation_mark() -> None:
    written = '<files.write path=\'a "b" > </files.write>\' content="it\'s\n&quot;<x/>&quot;"></files.write>'
    assert one(written) == {"path": 'a "b" > </files.write>', "content": 'it\'s\n"<x/>"'}


# -- which block counts (R14) --------------------------------------------------------------


def shell(code: str) -> str:
    return f"<actions><shell>{code}</shell></actions>"


def codes(found: Read) -> list[Json]:
    return [arguments["code"] for _, arguments in found.called]


def test_the_last_complete_block_counts() -> None:
    assert codes(run(f"{shell('a')}\nno wait, wrong id\n{shell('b')}")) == ["b"]
    assert codes(run(f"{shell('a')} no wait {shell('b')} done")) == ["b"]
    assert codes(run(f"{shell('a')} no, nothing <actions></actions>")) == []
    assert codes(run(f"<actions><shell>a</shell> no wait {shell('b')}")) == ["b"]
    assert codes(run(f"{shell('a')} I wrote it in <actions> as you said.")) == ["a"]


def test_a_second_block_that_is_cut_does_not_count() -> None:
    found = run(f"{shell('a')} no wait <actions><shell>b", finish="length")
    assert codes(found) == ["a"]
    assert "cut short in <shell>" in found.faults[0]


def test_a_second_block_that_cannot_be_read_takes_the_first_back() -> None:
    found = run(f"{shell('a')} no wait <actions><shell></code></actions>")
    assert codes(found) == []
    assert "stands where </shell> must" in found.faults[0]


def test_after_an_invented_context_nothing_counts() -> None:
    for between in ("<context>", "\n<context>\n <system/>", "Then:\n<context time='1'>"):
        found = run(f"{shell('a')}{between}{shell('b')}</context>{shell('c')}")
        assert codes(found) == ["a"]
        assert "was not written by you" in found.faults[0]
        assert found.done


def test_a_context_that_is_invented_first_is_no_block() -> None:
    found = run(f"<context>\n<previous>{shell('a')}</previous>\n</context>\nSo:\n{shell('b')}")
    assert codes(found) == ["b"]
    assert not found.faults
    found = run(f"<context>\n<previous>{shell('a')}</previous>")
    assert codes(found) == []
    assert "was not written by you" in found.faults[0]
    assert codes(run(f"The <context> says so. {shell('a')}")) == ["a"]


def test_quoted_blocks_never_act() -> None:  # R1, R2
    for quoted in (
        f"```xml\n{shell('q')}\n```",
        f"`{shell('q')}`",
        f"> {shell('q')}",
        f"<think>{shell('q')}</think>",
        f'write "{shell("q")}" for it',
        f"For example, one could write {shell('q')}.",
        f"e.g. {shell('q')}",
    ):
        assert codes(run(f"{quoted}\n{shell('a')}")) == ["a"], quoted
        assert codes(run(f"{shell('a')}\n{quoted}")) == ["a"], quoted
        assert codes(run(quoted)) == [], quoted


def test_a_block_that_is_only_quoted_is_told() -> None:
    assert "in a code fence is quoted" in run(f"```xml\n{shell('q')}\n```").faults[0]
    assert "is quoted and was not read" in run(f'I would write "{shell("q")}".').faults[0]
    assert not run("Look:\n```xml\n<a/>\n```").faults


def test_the_reply_may_end_at_its_first_block() -> None:
    found = run(f"{shell('a')} {shell('b')}", made=Xml(stop="block"))
    assert codes(found) == ["a"]
    assert found.done


def test_an_orphaned_end_of_reasoning_takes_back() -> None:
    assert codes(run(f"{shell('a')} hm</think>ok {shell('b')}")) == ["b"]
    assert codes(run(f"{shell('a')} hm</think>ok")) == []


def test_the_prose_of_a_reply_without_actions() -> None:
    assert (
        run("<think>a</think>Yes: 1 < 2, <b>bold</b>, <actionable>.").prose
        == "Yes: 1 < 2, <b>bold</b>, <actionable>."
    )
    for text in ("", "  \n", "I cannot.", "<", "<action"):  # R20
        found = run(text)
        assert (found.prose, found.actions, found.misses) == (text, [], [])


# -- recovery and faults -------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "\n", "</", "</actions", "\n</act"])
def test_a_missing_end_is_certain(end: str) -> None:  # R13
    found = run(f"<actions><shell>ls</shell>{end}")
    assert codes(found) == ["ls"]
    assert not found.faults


@pytest.mark.parametrize(
    "text", ["<actions><shell>ls</shell>", "<actions><shell>ls</sh", '<actions><shell code="ls']
)
def test_a_cut_block_never_runs(text: str) -> None:  # R7, R20
    found = run(text, finish="length")
    assert codes(found) == []
    assert "cut short" in found.faults[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<actions>\n<shel>ls</shel>\n</actions>", 'There is no "shel". Did you mean shell?'),
        (
            '<actions>\n<shell cod="ls"/></actions>',
            "shell (line 2, column 1) was not run: cod: there is no such",
        ),
        ("<actions><files.write path='a'/></actions>", "content: is missing"),
        ("<actions><read_stdin n='many'/></actions>", "n: should be an integer"),
        ("<actions><shell code='a' code='b'/></actions>", "code: was given twice"),
        (
            "<actions><read_stdin n='2'>text</read_stdin></actions>",
            "a text stands directly in <read_stdin>, beside",
        ),
        ("<actions><shell><code lang='sh'>ls</code></shell></actions>", "<code> takes no attributes"),
        (
            "<actions><start_container image='i'><parameter><b>x</b></parameter></start_container></actions>",
            "<parameter> is a list and begins with <b>",
        ),
        (
            '<actions>\n<shell code="echo "hi""/></actions>',
            'Line 2, column 20: the value of code has a " in it',
        ),
        ("<actions><shell code></shell></actions>", "the attribute code has no value"),
        ("<actions><shell code=></shell></actions>", "the value of code needs quotation marks"),
        ("<actions><shell ,></shell></actions>", "stands in the tag of <shell>"),
        ("<actions><start_container><image>i</image></actions>", "stands where </start_container> must"),
        ("<actions></shell></actions>", "stands where </actions> must"),
        ("<actions><!DOCTYPE x></actions>", "begins a declaration"),
        ("<actions><![CDATA[x]]></actions>", "CDATA stands outside of an action"),
        ("<actions><shell><code>ls</code></actions>", "stands where </shell> must"),
        ("<actions>\n<shell>ls\n</actions>", "Line 2, column 1: <shell> is not closed"),
        ("<actions>\n<shell>\n<code>ls\n</actions>", "Line 3, column 1: <code> is not closed"),
        ("<actions>" + "<free><value>" + "<a>" * 40 + "</actions>", "more than 32 elements"),
        ("<shell>ls</shell>", "Line 1, column 1: <shell> outside of a block does nothing"),
        ("<action><shell>ls</shell></action>", "<action> outside of a block does nothing. Write <actions>"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, said: str) -> None:
    found = run(text)
    assert not found.called
    assert said in found.faults[0]


def test_one_wrong_action_leaves_the_others() -> None:
    found = block("<shel/><shell>ls</shell>")
    assert codes(found) == ["ls"]
    assert len(found.faults) == 1


def test_a_broken_block_is_left_at_its_end() -> None:
    found = run(f"<actions><shell code></shell></actions> no wait {shell('a')}")
    assert codes(found) == ["a"]


def test_elements_beside_a_block_are_not_told_when_there_is_one() -> None:
    found = run(f"I use <shell> now, and <action>.\n{shell('a')}")
    assert not found.faults


def test_comments_and_remarks_in_a_block() -> None:
    found = block("this <!-- <shell>x</shell> --> 1 < 2, x<y, z\n<shell><!-- why --><code>a</code></shell>")
    assert codes(found) == ["a"]
    assert not found.faults


def test_native_calls_are_explained() -> None:
    (miss,) = Xml().parser(CATALOGUE).feed_call(CallChunk(0, name="shell"))
    assert "Write <actions><shell" in miss.message  # type: ignore[union-attr]


# -- what is shown and taught --------------------------------------------------------------


def test_results_stand_behind_the_parameters_and_are_escaped() -> None:
    done = Action("1", "files.write", {"path": 'a"<b>', "content": "x" * 300})
    failed = Action("2", "read_stdin", {"n": 2})
    (message,) = Xml().render(
        [(done, Outcome("done", "1 < 2 & </actions>")), (failed, Outcome.failed("gone"))]
    )
    assert message.role == "user"
    assert message.text == (
        "<previous>\n<actions>\n"
        f'<files.write path="a&quot;&lt;b&gt;" content="{"x" * 199}…">\n'
        "1 &lt; 2 &amp; &lt;/actions&gt;\n</files.write>\n"
        '<read_stdin n="2">\nFailed: gone\n</read_stdin>\n'
        "</actions>\n</previous>"
    )
    assert Xml().render([]) == ()


def test_what_is_taught_is_what_is_read() -> None:
    text = Xml().teach(list(CATALOGUE))
    assert '<files.write path="string" content="string"/> Does files.write.' in text
    assert '<read_stdin n="integer, optional"/>' in text
    example = text[text.index("<actions>\n<") : text.index("</actions>") + len("</actions>")]
    assert run(example).called == [("files.write", {"path": "…", "content": "1 < 2"})]


def test_odd_and_big_texts_arrive() -> None:  # R19
    big = "QUJD" * 250_000
    found = read(Xml().parser(CATALOGUE), Xml().write([Action("", "shell", {"code": big})]), size=997)
    assert found.called == [("shell", {"code": big})]
    assert one("<shell>a\0b\ud800</shell>") == {"code": "a\ufffdb\ufffd"}
