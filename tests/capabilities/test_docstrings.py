import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.capabilities.docstrings import read_docstring

GOOGLE = """Find a house.

Looks in all streets.

Args:
    street (str): the street,
        without number
    number: which one: from 1

Returns:
    house: the house
"""

GOOGLE_WITHOUT_PURPOSE = """
Args:
    street: the street, without number

    number: which one: from 1
"""

NUMPY = """Find
a house.

Parameters
----------
street : str
    the street,
    without number
number : int, optional
    which one: from 1

Returns
-------
house : str
    the house
"""

SPHINX = """Find a house.

:param str street: the street,
    without number
:param number: which one: from 1
:type number: int
:returns: the house
"""


@pytest.mark.parametrize("text", [GOOGLE, GOOGLE_WITHOUT_PURPOSE, NUMPY, SPHINX])
def test_the_three_forms(text):
    doc = read_docstring(inspect.cleandoc(text))
    assert doc.parameters == {"street": "the street, without number", "number": "which one: from 1"}
    assert doc.purpose == ("" if text is GOOGLE_WITHOUT_PURPOSE else "Find a house.")


def test_a_plain_text_has_no_parameters():
    doc = read_docstring("Look at this:\n\n    note: not a parameter\n\nArguments are welcome.")
    assert doc.purpose == "Look at this:"
    assert doc.parameters == {}


@given(st.lists(st.sampled_from([*GOOGLE.split("\n"), *NUMPY.split("\n"), *SPHINX.split("\n"), "", "  x"])))
def test_any_mixture_is_read_to_its_end(lines):
    doc = read_docstring("\n".join(lines))
    assert set(doc.parameters) <= {"street", "number", "house", "type", "x"} | {
        word.rstrip(":") for line in lines for word in line.split()
    }
