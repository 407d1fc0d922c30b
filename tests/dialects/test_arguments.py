"""Arguments by schema: what is converted, what is refused, and what the model is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.arguments import (
    ArgumentError,
    convert,
    describe,
    parse_arguments,
    parse_json,
    positional,
    types_of,
)
from textor.arguments.json_text import Extent


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def told(value: Any, **parameter: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        convert({"x": value}, schema(x=parameter))
    return str(caught.value)


CONVERTED = [
    ("integer", 3.0, 3),
    ("integer", "3", 3),
    ("integer", "-5", -5),
    ("integer", "3.0", 3),
    ("number", 3, 3),
    ("number", "1e3", 1000.0),
    ("number", "-5", -5),
    ("boolean", "true", True),
    ("boolean", "False", False),
    ("array", "[1, 5]", [1, 5]),
    ("object", '{"a": 1}', {"a": 1}),
    ("null", "null", None),
    ("string", "[1]", "[1]"),
    ("string", "3", "3"),
    ("string", "true", "true"),
    ("string", "null", "null"),
    ("string", " x ", " x "),
]


@pytest.mark.parametrize(("type_", "given", "wanted"), CONVERTED)
def test_table(type_: str, given: Any, wanted: Any) -> None:
    got = convert({"x": given}, {**schema(x={"type": type_}), "required": ["x"]})["x"]
    assert got == wanted
    assert type(got) is type(wanted)


REFUSED = [
    ("integer", "4,600"),
    ("integer", 3.5),
    ("integer", "three"),
    ("integer", True),
    ("integer", ""),
    ("number", "NaN"),
    ("number", "inf"),
    ("boolean", 1),
    ("boolean", "yes"),
    ("string", 3),
    ("string", {"a": 1}),
    ("array", "a"),
    ("array", '{"a": 1}'),
    ("array", "[1] and more"),
    ("object", "[1]"),
    ("object", '{"a": 1'),
]


@pytest.mark.parametrize(("type_", "given"), REFUSED)
def test_what_is_not_certain_is_refused(type_: str, given: Any) -> None:
    assert "x: should be " in told(given, type=type_)


def test_a_problem_says_how_to_mend_it() -> None:
    assert told(3, type="string").endswith('Write it in quotes: "3".')
    assert "Did you mean Write?" in told("Wrte", enum=["Read", "Write"])
    assert "cut short" in told('{"a": 1', type="object")
    assert told("a", type="array", items={"type": "string"}) == (
        'x: should be a list of strings and is a string, "a". Write it as a list: ["a"].'
    )


def test_all_problems_are_told_with_their_paths() -> None:
    inner = schema(n={"type": "integer"})
    with pytest.raises(ArgumentError) as caught:
        convert(
            {"a": {"n": "x"}, "b": [1, "y"]},
            schema(a=inner, b={"type": "array", "items": {"type": "integer"}}),
        )
    assert [problem.path for problem in caught.value.problems] == ["a.n", "b[1]"]


def test_unknown_parameter_gets_the_nearest_names() -> None:
    with pytest.raises(ArgumentError) as caught:
        convert(
            {"pth": "a"}, {**schema(path={"type": "string"}, text={"type": "string"}), "required": ["path"]}
        )
    unknown, missing = caught.value.problems
    assert (unknown.path, unknown.near) == ("pth", ("path",))
    assert (missing.path, missing.what) == ("path", "is missing; it is a string")


def test_unknown_parameters_where_the_schema_lets_them() -> None:
    assert convert({"y": "1"}, {**schema(x={}), "additionalProperties": True}) == {"y": "1"}
    assert convert({"y": "1"}, {**schema(x={}), "additionalProperties": {"type": "integer"}}) == {"y": 1}
    assert convert({"o": {"any": 1}}, schema(o={"type": "object"})) == {"o": {"any": 1}}
    assert convert({"x-a": "1"}, {**schema(), "patternProperties": {"^x-": {"type": "integer"}}}) == {
        "x-a": 1
    }
    with pytest.raises(ArgumentError, match="takes no parameters"):
        convert({"y": 1}, schema())


def test_defaults_are_filled_in_at_every_depth() -> None:
    inner = schema(n={"type": "integer", "default": 7})
    assert convert({"o": {}}, schema(o=inner, p={"default": "."})) == {"o": {"n": 7}, "p": "."}


def test_null_for_an_optional_parameter_means_left_out() -> None:
    optional = schema(
        x={"type": "string"}, y={"type": "integer", "default": 3}, z={"type": ["string", "null"]}
    )
    assert convert({"x": None, "y": None, "z": None}, optional) == {"y": 3, "z": None}
    with pytest.raises(ArgumentError, match="x: should be a string and is null"):
        convert({"x": None}, {**schema(x={"type": "string"}), "required": ["x"]})


def test_enum() -> None:
    assert convert({"x": "read"}, schema(x={"enum": ["Read", "Write"]})) == {"x": "Read"}
    assert convert({"x": "red"}, schema(x={"enum": ["Red", "red"]})) == {"x": "red"}
    assert "should be" in told("RED", enum=["Red", "red"])
    assert convert({"x": "3"}, schema(x={"enum": [1, 3]})) == {"x": 3}
    assert convert({"x": "a"}, schema(x={"const": "a"})) == {"x": "a"}
    assert "should be 1" in told(True, enum=[1])


UNIONS = [
    ([{"type": "integer"}, {"type": "string"}], "3", "3"),
    ([{"type": "string"}, {"type": "integer"}], 3, 3),
    ([{"type": "integer"}, {"type": "null"}], "3", 3),
    ([{"type": "array", "items": {"type": "integer"}}, {"type": "null"}], "[1, 2]", [1, 2]),
    ([schema(a={"type": "integer"}), schema(b={"type": "integer"})], {"b": "2"}, {"b": 2}),
]


@pytest.mark.parametrize(("branches", "given", "wanted"), UNIONS)
@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_union_takes_what_fits_before_what_can_be_converted(
    word: str, branches: Any, given: Any, wanted: Any
) -> None:
    assert convert({"x": given}, schema(x={word: branches})) == {"x": wanted}


def test_union_tells_all_that_it_takes() -> None:
    assert "should be an integer or null and is a string" in told(
        "x", anyOf=[{"type": "integer"}, {"type": "null"}]
    )
    assert convert({"x": "3"}, schema(x={"type": ["integer", "null"]})) == {"x": 3}


def test_references_and_parameters_with_the_names_of_keywords() -> None:
    tree = {
        "type": "object",
        "properties": {
            "root": {"$ref": "#/$defs/node"},
            "kind": {"type": "integer"},
            "title": {"type": "string"},
        },
        "required": ["root"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "$ref": {"type": "string"},
                },
            }
        },
    }
    given = {"root": {"value": "1", "children": [{"value": "2", "$ref": "x"}]}, "kind": "4", "title": "5"}
    assert convert(given, tree) == {
        "root": {"value": 1, "children": [{"value": 2, "$ref": "x"}]},
        "kind": 4,
        "title": "5",
    }


@pytest.mark.parametrize(
    "odd",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#"},
        {"type": "array", "items": True},
        {"type": "array"},
        True,
        {},
        {"type": "strange"},
        {"pattern": "("},
    ],
)
def test_a_schema_that_says_little_refuses_little(odd: Any) -> None:
    assert convert({"x": {"x": {}}} if odd == {"$ref": "#"} else {"x": [1]}, schema(x=odd))


def test_a_reference_in_a_circle_ends() -> None:
    looped = {**schema(x={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert convert({"x": 1}, looped) == {"x": 1}


def test_all_of_is_one_schema() -> None:
    both = {"allOf": [schema(a={"type": "integer"}), {**schema(b={"type": "integer"}), "required": ["b"]}]}
    assert convert({"x": {"a": "1", "b": "2"}}, schema(x=both)) == {"x": {"a": 1, "b": 2}}
    with pytest.raises(ArgumentError, match=r"x\.b: is missing"):
        convert({"x": {"a": 1}}, schema(x=both))


def test_bounds_and_patterns_in_words() -> None:
    assert told(0, type="integer", minimum=1) == "x: should be at least 1 and is 0."
    assert told("ab", type="string", pattern="^c") == 'x: should match the pattern ^c and is "ab".'
    assert told("12", type="integer", maximum=9) == "x: should be at most 9 and is 12."
    assert "twice" in told([1, 1], type="array", uniqueItems=True)
    assert "is not allowed here" in told(3, **{"type": "integer", "not": {"const": 3}})


def test_positional() -> None:
    two = schema(path={"type": "string"}, text={"type": "string"})
    assert positional(["a", "b"], two) == {"path": "a", "text": "b"}
    assert positional(["a"], two) == {"path": "a"}
    with pytest.raises(ArgumentError, match=r"3 arguments were given, but it takes 2 \(path, text\)"):
        positional(["a", "b", "c"], two)


def test_describe_and_types() -> None:
    assert describe({"type": "array", "items": {"type": "integer"}}) == "a list of integers"
    assert describe({"anyOf": [{"type": "string"}, {"type": "null"}]}, article=False) == "string or null"
    assert describe({"enum": ["a", 1]}) == '"a" or 1'
    assert describe({}) == "any value"
    root = {"$defs": {"n": {"type": "integer"}}}
    assert types_of({"$ref": "#/$defs/n"}, root) == {"integer"}
    assert types_of({"enum": ["a", None]}) == {"string", "null"}
    assert types_of({}) == frozenset()


# -- JSON text -----------------------------------------------------------------------------


ANY = {"type": "object"}
FIELDS = ["city", "text", "a"]


@pytest.mark.parametrize("text", ["", "  \n", "null", '""', "{}"])
def test_nothing_stands_for_no_arguments_where_none_is_required(text: str) -> None:
    """R8"""
    assert parse_arguments(text, schema(x={"type": "string"})).arguments == {}
    with pytest.raises(ArgumentError, match="x: is missing; it is a string"):
        parse_arguments(text, {**schema(x={"type": "string"}), "required": ["x"]})


@pytest.mark.parametrize("text", ['["a"]', "3", "true", '"abc"', '"[1]"'])
def test_what_is_no_object_is_an_error(text: str) -> None:
    """R6"""
    with pytest.raises(ArgumentError):
        parse_arguments(text, ANY)


def test_raw_line_breaks_in_strings_are_kept() -> None:
    """R5"""
    assert parse_arguments('{\n  "text": "a\n\tb\r\n"\n}', ANY).arguments == {"text": "a\n\tb\r\n"}


def test_prose_behind_the_object_is_the_rest() -> None:
    """R4"""
    parsed = parse_arguments('{"x":1} Then I use {braces}.', ANY)
    assert (parsed.arguments, parsed.rest) == ({"x": 1}, " Then I use {braces}.")


WHOLE = '{"city": "San Francisco", "list": [1, 2.5e-3, true, null, {"a": "\\u00e9\\n"}], "n": -12}'


@pytest.mark.parametrize("end", range(1, len(WHOLE)))
def test_a_cut_text_is_never_run_at_any_place(end: int) -> None:
    """R7"""
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(WHOLE[:end], ANY)
    assert caught.value.cut
    assert "cut short" in str(caught.value)
    assert (caught.value.text, caught.value.line, caught.value.column) == (WHOLE[:end], 1, end + 1)


def test_a_cut_text_within_a_string_is_not_run_either() -> None:
    """R7: the arguments as a JSON string that holds half an object."""
    with pytest.raises(ArgumentError, match="cut short"):
        parse_arguments('"{\\"a\\":1"', ANY)
    assert parse_arguments('"{\\"a\\":1}"', ANY).arguments == {"a": 1}


def test_what_is_wrong_and_not_cut_is_told_with_its_place() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_arguments('{\n "a": 1,\n "b" 2, "c": "d"}', ANY)
    assert not caught.value.cut
    assert "line 3, column 6: this is no JSON: a colon should stand" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": NaN}', "NaN is no JSON value"),
        ('{"a": -Infinity}', "-Infinity is no JSON value"),
        ('{"a": 1e999}', "too big"),
        ('{"a": ' + "1" * 5000 + "}", "too many"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ("[" * 100_000, "deep"),
        ('{"a":' * 70 + "1" + "}" * 70, "deep"),
        ("{'a': 1}", "no JSON"),
        ('{"a": "\\d"}', "a backslash that escapes nothing"),
    ],
)
def test_json_that_python_would_take_or_fall_over(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        parse_arguments(text, ANY)


def test_surrogates_and_nul_arrive_as_valid_text() -> None:
    """R19"""
    parsed = parse_arguments('{"a\\udc00": "\\ud83d", "b": "\\ud83d\\ude00", "c": "x\\u0000"}', ANY).arguments
    assert parsed == {"a\ufffd": "\ufffd", "b": "😀", "c": "x\ufffd"}


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


@given(st.text())
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    try:
        parse_arguments(text, ANY)
    except ArgumentError as error:
        assert str(error)


@given(
    json_values,
    st.dictionaries(st.sampled_from(["type", "enum", "items", "anyOf", "$ref", "required"]), json_values),
)
def test_arbitrary_values_are_converted_or_refused(value: Any, odd: dict[str, Any]) -> None:
    for parameter in (odd, {"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}):
        try:
            convert({"x": value}, schema(x=parameter))
        except ArgumentError as error:
            assert str(error)


@given(st.dictionaries(st.text(), json_values), st.text(), st.integers(1, 5))
def test_extent_finds_the_end_for_any_chunks(value: dict[str, Any], rest: str, size: int) -> None:
    import json

    text = json.dumps(value, ensure_ascii=False)
    extent, at = Extent(), 0
    for start in range(0, len(text + rest), size):
        piece = (text + rest)[start : start + size]
        at += extent.take(piece)
        if extent.done:
            break
    assert (extent.done, at) == (True, len(text))
    assert parse_json(text + rest)[1] == len(text)
