"""What an agent type adds to `script`: titles of sections, pattern-action pairs."""

from __future__ import annotations

import pytest
from script_machine import CATALOGUE, Read, read

from textor.dialects.script import Pattern, ScriptDialect
from textor.errors import UseError

TITLED = ScriptDialect(
    titles={"UPDATE MEMORY": "memory.keep", "SHELL": "bash", "GONE": "no.such"}, stop=False
)


def run(script: ScriptDialect, text: str, **variables: str) -> Read:
    whole = read(script.parser(CATALOGUE, variables), text)
    for size in (1, 5):
        assert read(script.parser(CATALOGUE, variables), text, size=size) == whole
    return whole


@pytest.mark.parametrize(
    "title",
    ["UPDATE MEMORY", "# UPDATE MEMORY", "**UPDATE MEMORY**", "UPDATE MEMORY:", "### UPDATE  MEMORY :\r"],
)
def test_a_section_calls_by_its_title(title: str) -> None:
    found = run(TITLED, f"Well.\n\n{title}\nthe cat is fed\n\n- twice\n")
    assert found.called == [("memory.keep", {"text": "the cat is fed\n\n- twice"})]
    assert found.prose == "Well.\n\n"
    assert found.places == [(3, 1)]
    assert found.actions[0].text == f"{title}\nthe cat is fed\n\n- twice\n"


def test_a_section_ends_at_a_heading_or_the_next_title() -> None:
    text = "# UPDATE MEMORY\na\n## part\nb\n# Rest\nc\nSHELL\nls\n```\n# no heading\n```\nUPDATE MEMORY\nd"
    found = run(TITLED, text)
    assert found.called == [
        ("memory.keep", {"text": "a\n## part\nb"}),
        ("bash", {"code": "ls\n```\n# no heading\n```"}),
        ("memory.keep", {"text": "d"}),
    ]
    assert found.prose == "# Rest\nc\n"


def test_a_call_in_a_section_is_its_text_and_is_explained() -> None:
    text = 'UPDATE MEMORY\nuse !BASH<!|"a"|!>\n!BASH<!|"b"|!>\n# Now\n!BASH<!|"c"|!>'
    found = run(TITLED, text)
    assert found.called == [
        ("memory.keep", {"text": 'use !BASH<!|"a"|!>\n!BASH<!|"b"|!>'}),
        ("bash", {"code": "c"}),
    ]
    assert [m.line for m in found.misses] == [3]
    assert "stands in the section UPDATE MEMORY" in found.misses[0].message


def test_a_title_that_is_quoted_or_not_alone_is_prose() -> None:
    text = "`UPDATE MEMORY`\n> UPDATE MEMORY\n```\nUPDATE MEMORY\n```\nthe UPDATE MEMORY\n"
    text += "<think>\nUPDATE MEMORY\nx</think>"
    found = run(TITLED, text)
    assert not found.actions
    assert found.prose.startswith("`UPDATE MEMORY`\n")


def test_a_section_bound_to_nothing_is_a_fault() -> None:
    found = run(TITLED, "GONE\nx")
    assert 'There is no "no.such"' in found.faults[0]


def test_a_section_that_returns_ends_the_reply() -> None:
    script = ScriptDialect(titles={"UPDATE MEMORY": "memory.keep"})
    found = run(script, 'UPDATE MEMORY\na\n# Then\n!BASH<!|"c"|!>')
    assert found.called == [("memory.keep", {"text": "a"})]
    assert found.done


# -- patterns ------------------------------------------------------------------------------


def today(days: int = 0) -> str:
    return f"day {days}"


def twice(text: str) -> str:
    return text * 2


PATTERNS = [
    Pattern(r"(?i)remember: (?P<text>.+)", "memory.keep"),
    Pattern(r"remember: nothing", "now", priority=-1),
    Pattern(r"run (?P<code>.*)", "bash", quoted=("code",)),
    Pattern(r"(?s)#+ Shell\n+(?P<code>.*)", "bash", scope="section"),
    Pattern(r"today\((?P<days>.*)\)", function=today, entry=False),
    Pattern(r"today", function=today, entry=False),
    Pattern(r"twice\((?P<text>.*)\)", function=twice, entry=False),
]


@pytest.fixture
def patterned() -> ScriptDialect:
    pytest.importorskip("re2")
    return ScriptDialect(patterns=PATTERNS, stop=False)


def test_lines_act_by_pattern(patterned: ScriptDialect) -> None:
    text = 'I will.\nRemember: "a\\tb"\nremember: nothing\nrun "x"\n`run y`\nso run z\n> run q\n'
    found = run(patterned, text)
    assert found.called == [("memory.keep", {"text": "a\tb"}), ("now", {}), ("bash", {"code": '"x"'})]
    assert found.places == [(2, 1), (3, 1), (4, 1)]
    assert found.prose == "I will.\n`run y`\nso run z\n> run q\n"


def test_a_line_with_a_call_matches_nothing(patterned: ScriptDialect) -> None:
    found = run(patterned, 'run !SPEAK<!|"a"|!> b\nrun c')
    assert found.called == [("speak", {"text": "a"}), ("bash", {"code": "c"})]


def test_sections_act_by_pattern(patterned: ScriptDialect) -> None:
    found = run(patterned, "# Plan\nthink\n## Shell\nls\n```\ncat\n```\n# End\n")
    assert found.called == [("bash", {"code": "ls\n```\ncat\n```"})]
    assert found.prose == "# Plan\nthink\n# End\n"


def test_groups_are_evaluated(patterned: ScriptDialect) -> None:
    assert run(patterned, "remember: note", note="the text").called == [("memory.keep", {"text": "the text"})]
    assert run(patterned, "remember: note").called == [("memory.keep", {"text": "note"})]


def test_inner_patterns_give_values(patterned: ScriptDialect) -> None:
    text = '!FILES-WRITE<!|today, "at " + today(3)|!>\n!BASH<!|twice(twice(x))|!>\n!SPEAK<!|today(n)|!>'
    found = run(patterned, text, x="ab", n="7")
    assert found.called == [
        ("files.write", {"path": "day 0", "text": "at day 3", "append": False}),
        ("bash", {"code": "abababab"}),
        ("speak", {"text": "day 7"}),
    ]


def test_an_inner_pattern_that_fails_is_explained(patterned: ScriptDialect) -> None:
    found = run(patterned, '!FILES-WRITE<!|today(soon), "x"|!>')
    assert "today cannot take this: days: should be an integer" in found.faults[0]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (Pattern("(", "bash"), "is not in RE2's syntax"),
        (Pattern("x"), "names no capability"),
        (Pattern("x", entry=False), "has no function"),
        (Pattern("x", entry=False, function=lambda a: a), "has no type that a pattern can fill"),
    ],
)
def test_a_wrong_pattern_is_told_when_it_is_made(pattern: Pattern, said: str) -> None:
    pytest.importorskip("re2")
    with pytest.raises(UseError, match=said):
        ScriptDialect(patterns=[pattern])
