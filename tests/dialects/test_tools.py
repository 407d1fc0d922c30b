"""The tools dialect: native calls, the forms in text, and what goes back."""

from __future__ import annotations

import json

import pytest
from reading import CAPABILITIES, CATALOGUE, actions, called, events, faults, prose, run

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.arguments import convert
from textor.dialects import DIALECTS, dialect
from textor.dialects.port import ActionBegun, ArgumentText, Retracted
from textor.dialects.tools import Tools
from textor.errors import UseError
from textor.messages import CallChunk, Media, ToolResult
from textor.values import Value

TOOLS = Tools()
KEEP = ("keep", {"x": 1})


# -- native calls --------------------------------------------------------------------------


def test_parallel_calls_in_pieces() -> None:
    found = called(
        TOOLS,
        [
            CallChunk(0, "a", "keep"),
            CallChunk(1, "b", "files_list", "{}"),
            CallChunk(0, "", "", '{"x"'),
            CallChunk(0, "", "", ": 1}"),
        ],
    )
    assert run(found) == [KEEP, ("files.list", {"path": "."})]
    first, second = actions(found)
    assert (first.call_id, first.wire, first.text) == ("a", "keep", '{"x": 1}')
    assert (second.call_id, second.wire) == ("b", "files_list")
    assert ArgumentText(0, '{"x": 1}') in found


UNTIDY = {
    "no index, ids": [CallChunk(-1, "a", "keep", '{"x": 1}'), CallChunk(-1, "b", "keep", '{"x": 1}')],
    "no index, no ids": [
        CallChunk(-1, "", "keep", '{"x"'),
        CallChunk(-1, "", "", ": 1}"),
        CallChunk(-1, "", "keep", '{"x": 1}'),
    ],
    "the same index for all, ids": [
        CallChunk(0, "a", "keep", '{"x": 1}'),
        CallChunk(0, "b", "keep", '{"x": 1}'),
    ],
    "the same index for all, no ids": [
        CallChunk(0, "", "keep", '{"x": 1}'),
        CallChunk(0, "", "keep", '{"x": 1}'),
    ],
    "the name in every piece": [
        CallChunk(0, "a", "keep", '{"x"'),
        CallChunk(0, "a", "keep", ": 1}"),
        CallChunk(1, "b", "keep", '{"x": 1}'),
    ],
    "the name after the arguments": [
        CallChunk(0, "a", "", '{"x": 1}'),
        CallChunk(0, "", "keep"),
        CallChunk(1, "b", "", '{"x": 1}'),
        CallChunk(1, "", "keep"),
    ],
    "the name in pieces": [
        CallChunk(0, "a", "ke"),
        CallChunk(0, "", "ep", '{"x": 1}'),
        CallChunk(1, "b", "keep", '{"x": 1}'),
    ],
    "the same id twice": [CallChunk(0, "a", "keep", '{"x": 1}'), CallChunk(1, "a", "keep", '{"x": 1}')],
    "ids late": [
        CallChunk(0, "", "keep", '{"x": 1}'),
        CallChunk(0, "a"),
        CallChunk(1, "b", "keep", '{"x": 1}'),
    ],
}


@pytest.mark.parametrize("chunks", UNTIDY.values(), ids=list(UNTIDY))
def test_untidy_servers(chunks: list[CallChunk]) -> None:
    found = called(TOOLS, chunks)
    assert run(found) == [KEEP, KEEP]
    ids = [action.call_id for action in actions(found)]
    assert len(set(ids)) == 2
    assert all(ids)
    assert called(TOOLS, chunks) == found


def test_unknown_function_is_a_fault_with_the_nearest_names() -> None:
    (action,) = actions(called(TOOLS, [CallChunk(0, "a", "file.lst", "{}")]))
    assert action.fault == 'There is no "file.lst". Did you mean files_list or files_write?'
    assert (action.call_id, action.wire) == ("a", "file_lst")


def test_arguments_that_do_not_fit_are_a_fault_of_that_call_only() -> None:
    found = called(
        TOOLS, [CallChunk(0, "a", "files_write", '{"path": 1}'), CallChunk(1, "b", "keep", '{"x": 1}')]
    )
    assert run(found) == [KEEP]
    (fault,) = faults(found)
    assert fault.startswith("files_write was not run: path: should be a string")
    assert "text: is missing" in fault


def test_a_call_without_a_name_is_a_near_miss() -> None:
    found = called(TOOLS, [CallChunk(0, "a", "", '{"x": 1}')])
    assert (actions(found), faults(found)) == ([], ["A function call came without a name."])


@pytest.mark.parametrize("arguments", ['{"x": "abc', "", '{"x": 1'])
def test_a_reply_cut_in_a_call_does_not_run_it(arguments: str) -> None:
    """R20; the call before it was complete and runs."""
    chunks = [CallChunk(0, "a", "keep", '{"x": 1}'), CallChunk(1, "b", "files_list", arguments)]
    found = called(TOOLS, chunks, finish="length")
    assert run(found) == [KEEP]
    assert "cut short" in faults(found)[0]


def test_text_beside_native_calls_never_acts() -> None:
    parser = TOOLS.parser(CATALOGUE)
    before = parser.feed('<tool_call>{"name": "keep", "arguments": {"x": 2}}</tool_call>\n')
    assert run(before)
    after = [*parser.feed_call(CallChunk(0, "a", "keep", '{"x": 1}'))]
    assert after[0] == Retracted()
    after += parser.feed('<tool_call>{"name": "keep", "arguments": {"x": 3}}</tool_call>')
    after += parser.close("tool_calls")
    assert run(after) == [KEEP]
    assert "<tool_call>" in prose(after)


# -- calls in the text ---------------------------------------------------------------------

FORMS = {
    "hermes": '<tool_call>\n{"name": "keep", "arguments": {"x": 1}}\n</tool_call>',
    "hermes, parameters": '<tool_call>{"name": "keep", "parameters": {"x": 1}}</tool_call>',
    "hermes, arguments as text": '<tool_call>{"name": "keep", "arguments": "{\\"x\\": 1}"}</tool_call>',
    "hermes, not closed": '<tool_call>{"name": "keep", "arguments": {"x": 1}}',
    "openai": '<tool_call>{"type": "function", "function": {"name": "keep", "arguments": {"x": 1}}}',
    "llama 3": '<function=keep>{"x": 1}</function>',
    "llama 3.1": '<|python_tag|>{"name": "keep", "parameters": {"x": 1}}<|eom_id|>',
    "mistral": '[TOOL_CALLS] [{"name": "keep", "arguments": {"x": 1}}]',
    "mistral, newer": '[TOOL_CALLS]keep[ARGS]{"x": 1}',
    "fence": '```tool_call\n{"name": "keep", "arguments": {"x": 1}}\n```',
    "json fence": '```json\n{"name": "keep", "arguments": {"x": 1}}\n```',
    "bare": '{"name": "keep", "arguments": {"x": 1}}',
    "bare list": '[{"name": "keep", "arguments": {"x": 1}}]',
    "bare after reasoning": '<think>hm</think>\n\n{"name": "keep", "arguments": {"x": 1}}',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=list(FORMS))
def test_known_forms(text: str) -> None:
    found = events(TOOLS, text)
    assert run(found) == [KEEP]
    assert faults(found) == []
    assert prose(found).strip() == ""
    assert actions(found)[0].call_id == ""


def test_several_calls_in_each_form() -> None:
    one = '{"name": "keep", "arguments": {"x": 1}}'
    for text in (
        f"<tool_call>{one}</tool_call>\n<tool_call>{one}</tool_call>",
        f"<tool_call>{one}\n<tool_call>{one}",
        f"<tool_call>[{one}, {one}]</tool_call>",
        f"<|python_tag|>{one}; {one}",
        f"[TOOL_CALLS] [{one}, {one}]",
        '[TOOL_CALLS]keep[ARGS]{"x": 1}[TOOL_CALLS]keep[ARGS]{"x": 1}',
        f"```tool_call\n{one}\n{one}\n```",
        f"```json\n{one}\n```\n```json\n{one}\n```",
        f"[{one}, {one}]",
    ):
        assert run(events(TOOLS, text)) == [KEEP, KEEP], text


def test_parameters_between_marks() -> None:
    text = (
        "<tool_call>\n<function=files_write>\n<parameter=path>\na.txt\n</parameter>\n<parameter=text>\n"
        "use </parameter> and </function> here\n\n</parameter>\n</function>\n</tool_call>"
    )
    assert run(events(TOOLS, text)) == [
        ("files.write", {"path": "a.txt", "text": "use </parameter> and </function> here\n"})
    ]
    numbers = "<function=view><parameter=n>3</parameter><parameter=view_range>[1, 5]</parameter></function>"
    assert run(events(TOOLS, numbers)) == [("view", {"n": 3, "view_range": [1, 5]})]
    assert run(events(TOOLS, "<function=files_list></function>")) == [("files.list", {"path": "."})]


@pytest.mark.parametrize(
    "text",
    [
        "<function=keep><parameter=x>1</parameter>junk</parameter></function>",
        "<function=keep><parameter=x>1</parameter>\n<parameter=x>2</parameter></function>",
        "<function=keep><param></function>",
    ],
)
def test_parameters_that_are_not_certain_do_not_run(text: str) -> None:
    ran = run(events(TOOLS, text))
    assert ran in ([], [("keep", {"x": "1</parameter>junk"})])


def test_a_mention_of_a_mark_is_an_answer() -> None:
    for text in (
        "The <tool_call> tag is used for this.",
        'JSON: {"name": "keep"}',
        "See [TOOL_CALLS] there.",
        'A:\n{"name": "Ann"}',
    ):
        found = events(TOOLS, text)
        assert (run(found), faults(found), prose(found)) == ([], [], text)


def test_json_that_is_the_answer_stays_the_answer() -> None:
    for text in (
        '{"a": 1}',
        "[1, 2]",
        '{"name": "Ann", "arguments": {}}',
        '```json\n{"a": 1}\n```',
        '{"name": "keep"}',
    ):
        found = events(TOOLS, text)
        assert (run(found), faults(found), prose(found)) == ([], [], text)


def test_an_unknown_name_between_marks_is_a_near_miss_with_its_place() -> None:
    found = events(TOOLS, 'Now:\n  <tool_call>{"name": "kep", "arguments": {}}</tool_call>')
    assert faults(found) == ['There is no "kep". Did you mean keep?']
    assert [(e.line, e.column) for e in found if hasattr(e, "message")] == [(2, 3)]


def test_what_stands_between_marks_and_is_no_call() -> None:
    for text in ("<tool_call>3</tool_call>", "<tool_call></tool_call>", '<tool_call>["a"]</tool_call>'):
        found = events(TOOLS, text)
        assert run(found) == []
        assert len(faults(found)) == 1


def test_a_call_in_the_middle_of_a_line_is_told() -> None:
    found = events(
        TOOLS, 'For example <tool_call>{"name": "keep", "arguments": {"x": 1}}</tool_call> keeps 1.'
    )
    assert run(found) == []
    assert faults(found)[0].startswith("A call acts only where a line begins with it.")


def test_a_json_fence_beside_other_text_is_an_example() -> None:
    fence = '```json\n{"name": "keep", "arguments": {"x": 1}}\n```'
    last = events(TOOLS, f"I do it so:\n{fence}\n")
    assert run(last) == []
    assert "beside other text" in faults(last)[0]
    quoted = events(TOOLS, f"{fence}\nThat is how it is written.")
    assert (run(quoted), faults(quoted)) == ([], [])
    assert prose(quoted).startswith("```json")


def test_json_of_a_call_that_ends_a_reply_is_told() -> None:
    for call in (
        '{"name": "keep", "arguments": {"x": 1}}',
        '{\n  "name": "keep",\n  "arguments": {"x": 1}\n}',
    ):
        found = events(TOOLS, f"I keep it:\n{call}\n")
        assert run(found) == []
        assert "beside other text" in faults(found)[0]
        found = events(TOOLS, f"So it is written:\n{call}\nDo you see?")
        assert (run(found), faults(found)) == ([], [])
        assert run(events(TOOLS, f"Now:\n{call}\n<tool_call>{call}</tool_call>")) == [KEEP]
    cut = events(TOOLS, 'I keep it:\n{"name": "keep", "argu', finish="length")
    assert "cut short" in faults(cut)[0]


def test_the_begin_and_the_text_of_a_call_are_shown_as_they_arrive() -> None:
    parser = TOOLS.parser(CATALOGUE)
    assert list(parser.feed('<tool_call>{"name": "kee')) == []
    assert list(parser.feed('p", "argu')) == [
        ActionBegun(0, "keep"),
        ArgumentText(0, '{"name": "keep", "argu'),
    ]
    assert list(parser.feed("ments")) == [ArgumentText(0, "ments")]


def test_wrong_json_is_told_with_its_place_in_the_reply() -> None:
    found = events(TOOLS, 'Now:\n<tool_call>\n{"name": "keep", "arguments": {x: 1}}\n</tool_call>')
    assert run(found) == []
    assert "line 3, column 32" in faults(found)[0]


# -- declaring, teaching, writing, showing back --------------------------------------------


def test_declared_functions() -> None:
    specs = {spec.name: spec for spec in TOOLS.declare(CAPABILITIES)}
    assert list(specs) == ["files_list", "files_write", "view", "keep", "respond"]
    assert specs["files_write"].parameters["additionalProperties"] is False
    assert Tools(native=False).declare(CAPABILITIES) == ()


def test_the_example_that_is_taught_is_read() -> None:
    taught = Tools(native=False).teach(CAPABILITIES)
    assert "files_write(path: string, text: string): Write a text to a file." in taught
    assert run(events(TOOLS, taught)) == [("files.list", {"path": "."})]
    assert len(TOOLS.teach(CAPABILITIES)) < 160
    assert TOOLS.teach([]) == ""


def test_what_the_grammar_lets_through_is_read() -> None:
    import jsonschema

    grammar = Tools(native=False).grammar(CAPABILITIES)
    assert grammar is not None
    assert grammar.json_schema is not None
    call = {"name": "files_write", "arguments": {"path": "a", "text": "b"}}
    jsonschema.validate(call, grammar.json_schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "files_wrte", "arguments": {}}, grammar.json_schema)
    assert run(events(TOOLS, json.dumps(call))) == [("files.write", call["arguments"])]
    assert TOOLS.grammar(CAPABILITIES) is None
    assert Tools(native=False).grammar(CAPABILITIES[:2]) is None


def test_a_grammar_holds_references_of_each_capability() -> None:
    import jsonschema

    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}, "$ref": {"type": "string"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}},
            }
        },
    }
    grammar = Tools(native=False).grammar([Capability("tree", "", tree, ends_turn=True)])
    assert grammar is not None
    assert grammar.json_schema is not None
    jsonschema.validate(
        {"name": "tree", "arguments": {"root": {"next": {"n": 1}}, "$ref": "x"}}, grammar.json_schema
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"name": "tree", "arguments": {"root": {"next": {"n": "x"}}}}, grammar.json_schema
        )


def test_outcomes_go_back_by_the_ids_of_their_calls() -> None:
    native = Action("1", "files.list", call_id="a", wire="files_list")
    failed = Action("2", "keep", call_id="b", wire="keep")
    text = Action("3", "files.list")
    picture = Value("image", "image/png", blob="0" * 64)
    tool, user, media = TOOLS.render(
        [
            (native, Outcome("done", "a.txt", values=(picture,))),
            (failed, Outcome("failed", "no tests", exit_status=1)),
            (text, Outcome("denied", "not allowed")),
        ]
    )
    assert tool.parts == (
        ToolResult("a", "files_list", "a.txt"),
        ToolResult("b", "keep", "Failed: exit status 1\nno tests"),
    )
    assert user.text == '<tool_response name="files_list">\nDenied: not allowed\n</tool_response>'
    assert isinstance(media.parts[1], Media)
    assert TOOLS.render([]) == ()


def test_names_that_meet_are_written_apart() -> None:
    two = [Capability("a.b", ""), Capability("a_b", "")]
    for capability in two:
        text = TOOLS.write([Action("", capability.name)], two)
        parser = TOOLS.parser(Catalogue(two))
        (action,) = actions([*parser.feed(text), *parser.close("stop")])
        assert action.capability == capability.name


def test_dialects_by_name() -> None:
    assert [dialect(name).name for name in DIALECTS] == list(DIALECTS)
    assert dialect("step", native=False).declare(CAPABILITIES) == ()
    with pytest.raises(UseError, match=r"There is no dialect 'tool'\. Did you mean tools\?"):
        dialect("tool")


def test_convert_is_what_the_dialect_uses() -> None:
    found = events(TOOLS, '<tool_call>{"name": "view", "arguments": {"n": "3"}}</tool_call>')
    assert run(found) == [("view", convert({"n": "3"}, CAPABILITIES[2].parameters))]
