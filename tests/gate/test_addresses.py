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
        ("https://fa\u00df.example/", None),
        ("https://fass\u200d.example/", None),
        ("https://evil.example%2f.docs.example/", None),
        ("https://evil.example%23.docs.example/", None),
        ("https://evil.example\uff0f.docs.example/", None),
        ("https://docs\u3002example/", "https://docs.example/"),
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
        ("0", True),
        ("0177.0.0.1", True),
        ("::ffff:127.0.0.1", True),
        ("64:ff9b::7f00:1", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:7f00:1::", True),
        ("fe80::1%eth0", True),
        ("127.0.0.1.nip.io", True),
        ("a.localtest.me", True),
        ("router.home", True),
        ("64:ff9b::808:808", False),
        ("2606:4700::1111", False),
        ("snip.io", False),
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
