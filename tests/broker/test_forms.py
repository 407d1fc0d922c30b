"""The JSON of the document, read with patience; and what is refused, in a sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from broker_parts import fill, http_form, launch_form
from hypothesis import given
from hypothesis import strategies as st

from textor.broker.book import MOST_EXAMPLES, Book, Conflict
from textor.broker.forms import read_example, read_form
from textor.errors import TextorError, UseError

SUBJECT = {
    "Action": "set email subject to []",
    "AppClass": "email",
    "AppPath": None,
    "ActionType": 1,
    "Description": "Set the Subject of an EMail",
    "Route": "subject",
    "Method": 1,
    "ContentType": "application/json",
    "Contract": "SingleText",
    "Vector": [-0.01321471, -0.0028538294],
}
PYTHON = Path(sys.executable)


def test_the_json_of_the_document_is_read_in_either_case_and_with_names_for_numbers() -> None:
    form = read_form(SUBJECT)
    assert (form.action, form.kind, form.method, form.route) == (
        "set email subject to []",
        "HTTP",
        "POST",
        "subject",
    )
    camel = {key[0].lower() + key[1:]: value for key, value in SUBJECT.items()}
    assert read_form(camel | {"actionType": "http", "method": "Post", "vector": None}) == form
    assert read_form(SUBJECT | {"ActionType": "1", "route": "subject"}) == form


def test_a_given_vector_is_ignored() -> None:
    assert "vector" not in {name.lower() for name in read_form(SUBJECT).__struct_fields__}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"Action": ""}, "Action of this capability is missing."),
        ({"Action": "[]"}, 'The Action "[]" holds no words.'),
        ({"Action": 4}, "Action of this capability must be text, not 4."),
        (
            {"AppClass": "a/b"},
            'AppClass of this capability cannot be "a/b". It is a plain word or two: email.',
        ),
        (
            {"ActionType": 9},
            "ActionType of this capability is 9; it must be 0 or LAUNCH, 1 or HTTP, 2 or UI.",
        ),
        ({"ActionType": True}, "ActionType of this capability is True"),
        ({"Method": "NA"}, "The Method of an HTTP action cannot be NA."),
        ({"Method": "PATCH"}, 'Method of this capability is "PATCH"'),
        ({"Contract": "SingelText"}, "Did you mean SingleText?"),
        ({"Route": "../x"}, 'The Route "../x" is no path below'),
        ({"Route": "a?b=1"}, 'The Route "a?b=1" is no path below'),
        ({"ContentType": "text/xml"}, 'The ContentType "text/xml" cannot be sent.'),
        ({"Action": "set [] to []"}, "has 2 places, and SingleText holds one."),
        ({"Schema": {"type": "array"}}, "Schema of this capability must be a JSON Schema of type object."),
        ({"Schema": {"properties": 4}}, "Schema of this capability is no JSON Schema"),
        ({"Effects": ["harm"]}, 'Effects of this capability names "harm".'),
        ({"Description": "x" * 5000}, "has 5000 characters; 4000 are allowed"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UseError) as error:
        read_form(SUBJECT | changes)
    assert told in str(error.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ("Action", "AppClass", "AppPath", "ActionType", "Route", "Method", "Contract", "Schema", "Examples")


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON) | _JSON)
def test_whatever_is_sent_is_a_form_or_a_sentence(data: Any) -> None:
    book = Book()
    fill(book, [launch_form(PYTHON)])
    for read in (lambda: book.register(read_form(data)), lambda: book.teach(read_example(data))):
        try:
            for body in read():
                book.apply(body)
        except TextorError as error:
            assert str(error)


def test_names_are_made_once_and_stay() -> None:
    book = Book()
    book.reserved = lambda: {"files"}
    fill(
        book,
        [
            launch_form(PYTHON),
            SUBJECT,
            http_form("append email body with []", "body"),
            http_form("set input/output ratio to []", "ratio"),
            http_form("set input-output ratio to []", "ratio2"),
            launch_form(PYTHON, "column chart"),
            http_form("set column chart title to []", "subject", "column chart"),
            launch_form(PYTHON, "files"),
            launch_form(PYTHON, "日本"),
        ],
    )
    names = list(book.capabilities)[1:]
    assert names[:7] == [
        "email.start",
        "email.set_subject",
        "email.append_body",
        "email.set_input_output_ratio",
        "email.set_input_output_ratio_2",
        "column_chart.start",
        "column_chart.set_title",
    ]
    assert names[7] == "files_2.start"  # another provider has `files`
    assert names[8].isascii()
    fill(book, [SUBJECT | {"Description": "anew"}])  # the same action again is the same capability
    assert book.capabilities["email.set_subject"].purpose == "anew"
    assert len(book.apps["email"].entries) == 4


def test_launch_replaces_its_class_and_nobody_elses(tmp_path: Path) -> None:
    book = Book()
    fill(book, [launch_form(PYTHON), SUBJECT], [{"AppClass": "email", "Question": "q", "Answers": ["a"]}])
    fill(book, [launch_form(PYTHON, "drawing"), http_form("add line []", "line", "drawing")])
    other = tmp_path / "evil"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    with pytest.raises(Conflict, match=r"The class \"email\" belongs to .*python"):
        book.register(read_form(launch_form(other)))
    with pytest.raises(Conflict, match="belongs to"):  # the interpreter is the same, the program is not
        book.register(read_form(launch_form(PYTHON, AppArguments=["evil.py"])))
    with pytest.raises(Conflict, match="belongs to"):
        book.register(read_form(SUBJECT | {"AppPath": str(other)}))
    fill(book, [launch_form(PYTHON, Description="again")])
    assert "email.set_subject" not in book.capabilities
    assert book.examples == {}
    assert "drawing.add_line" in book.capabilities


def test_a_program_that_cannot_be_started_is_not_registered(tmp_path: Path) -> None:
    book = Book()
    plain = tmp_path / "plain"
    plain.write_text("")
    for path, told in (
        ("C:\\AIE\\Email.exe", "is no whole path of this machine"),
        (str(tmp_path / "gone"), "There is no program"),
        (str(plain), "cannot be executed"),
    ):
        with pytest.raises(UseError, match=told):
            book.register(read_form(launch_form(Path("x")) | {"AppPath": path}))
    with pytest.raises(
        Conflict, match=r"There is no app of the class \"email\"\. Register its LAUNCH first\."
    ):
        book.register(read_form(SUBJECT))


def test_examples_have_a_budget() -> None:
    book = Book()
    fill(book, [launch_form(PYTHON)])
    for number in range(MOST_EXAMPLES):
        fill(book, [], [{"AppClass": "email", "Question": f"q{number}", "Answers": ["a", "b\nc"]}])
    assert next(iter(book.examples.values())).answers == ("a", "b", "c")
    with pytest.raises(UseError, match="The examples of email are more than are taken: 20"):
        book.teach(read_example({"AppClass": "email", "Question": "one more", "Answers": ["a"]}))
    fill(book, [], [{"AppClass": "email", "Question": "q0", "Answers": ["anew"]}])  # the same one changes


def test_the_contract_says_what_is_taken() -> None:
    book = Book()
    two = {
        "properties": {"row": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["row", "text"],
    }
    fill(
        book,
        [
            launch_form(PYTHON),
            SUBJECT,
            http_form("clear email", "clear"),
            http_form("look at inbox", "inbox", Method="GET"),
            http_form("set cell [] to []", "cell", Schema=two, Effects=["outward"]),
        ],
    )
    subject, clear, inbox, cell = list(book.capabilities.values())[2:]
    assert (subject.effects, subject.repeat, list(subject.parameters["properties"])) == (
        ("write",),
        "once",
        ["text"],
    )
    assert clear.parameters["properties"] == {}
    assert (inbox.effects, inbox.repeat) == (("read",), "idempotent")
    assert (cell.effects, cell.parameters["required"]) == (("outward",), ["row", "text"])
    with pytest.raises(UseError, match=r"places of the Action .* are not those of its parameters"):
        book.register(read_form(http_form("set cell []", "cell2", Schema=two)))


def test_profiles() -> None:
    book = Book()
    fill(book, [launch_form(PYTHON), SUBJECT, launch_form(PYTHON, "drawing")])
    assert len(book.catalogue()) == 4
    for body in book.set_profile("work", ["email"]):
        book.apply(body)
    assert len(book.catalogue()) == 4
    for body in book.activate("work"):
        book.apply(body)
    assert book.active == "work"
    assert book.catalogue().names == ("user.tell", "email.start", "email.set_subject")
    assert book.catalogue() is book.catalogue()
    assert len(book.catalogue("")) == 4
    with pytest.raises(UseError, match=r"There is no profile \"wrok\"\. Did you mean work\?"):
        book.activate("wrok")
    with pytest.raises(UseError, match="There is no app"):
        book.set_profile("play", ["emial"])
    for body in book.activate(""):
        book.apply(body)
    assert book.active == ""
