"""Addresses in one form, and which of them somebody named."""

from __future__ import annotations

import pytest

from textor.addresses import addresses_in, host_of, is_local, normal


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("HTTPS://Docs.Example", "https://docs.example/"),
        ("https://docs.example:443/a?b=c#d", "https://docs.example/a?b=c#d"),
        ("http://docs.example:8080/", "http://docs.example:8080/"),
        ("https://docs.example./", "https://docs.example/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:db8::1]/x", "https://[2001:db8::1]/x"),
        ("https://user@evil.example/", None),
        ("https://docs.example\\@evil.example/", None),
        ("https://docs.example/ x", None),
        ("https:///x", None),
        ("file:///etc/passwd", None),
        ("docs.example", None),
        ("https://docs.example:99999/", None),
        ("https://docs.example\t.evil.example/", None),
    ],
)
def test_one_form(written: str, form: str | None) -> None:
    assert normal(written) == form


def test_addresses_are_found_as_they_stand_in_texts() -> None:
    text = 'See https://a.example/x, (https://b.example/y_(z)) and <a href="https://c.example/?p=1&amp;q=2">.'
    found = addresses_in(text)
    assert {"https://a.example/x", "https://b.example/y_(z)", "https://c.example/?p=1&q=2"} <= found
    assert addresses_in("main.py, setup.py, README.md, a@b.com", bare=True) == frozenset()
    assert "https://docs.example.org/x" in addresses_in("see docs.example.org/x.", bare=True)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("printer", True),
        ("nas.local", True),
        ("127.1", True),
        ("2130706433", True),
        ("0x7f.1", True),
        ("10.0.0.1", True),
        ("169.254.169.254", True),
        ("::1", True),
        ("example.org", False),
        ("8.8.8.8", False),
    ],
)
def test_what_is_in_the_network_of_this_machine(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_the_host_of_a_bare_name() -> None:
    assert host_of("Docs.Example:80/x") == "docs.example"
    assert host_of("https://x@y.example/") is None
    assert host_of("not a host") is None
