"""Addresses in texts, in one form, so that the gate can say whether somebody named one.

An address counts as named when it stands verbatim somewhere: scheme, host, port, path, query and
fragment. One more character (a secret behind a known address) makes another address.
"""

from __future__ import annotations

import html
import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

_URL = re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s<>\"'`|\\^{}\x00-\x20\x7f]+")
#: Without a scheme only what cannot be the name of a file (`setup.py` is a domain as well).
_BARE = re.compile(
    r"(?i)(?<![\w@./:-])(?:www\.[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov))"
    r"(?![\w-])(?::\d+)?(?:/[^\s<>\"'`|\\^{}]*)?"
)
_HOST = re.compile(r"(?i)[\w-]+(\.[\w-]+)+\.?(:\d+)?(/\S*)?")
_ENDS = ".,;:!?)]}*_"
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def normal(address: str) -> str | None:
    """The address in one form, or None for what is none, has no host, or hides it (`user@host`)."""
    parts = _split(address)
    if parts is None:
        return None
    found = origin(address)
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{found}{path}{query}{fragment}"


def origin(address: str) -> str | None:
    """`scheme://host[:port]` in lower case, without the port that the scheme has anyway."""
    parts = _split(address)
    if parts is None:
        return None
    scheme, host = parts.scheme.lower(), _ascii(parts.hostname or "")
    assert host is not None  # `_split` saw to it
    port = parts.port
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + (f":{port}" if port and port != _PORTS.get(scheme) else "")


def host_of(address: str) -> str | None:
    """The host of an address, or of a bare `host[:port][/path]`; None when it is neither."""
    parts = _split(address)
    if parts is None and "://" not in address:
        parts = _split(f"none://{address}")
    return _ascii(parts.hostname or "") if parts else None


def is_bare(text: str) -> bool:
    """Whether a word looks like a host without a scheme: what a look-up by DNS is told."""
    return bool(_HOST.fullmatch(text))


def addresses_in(text: str, *, bare: bool = False) -> frozenset[str]:
    """All addresses that stand in a text, in normal form; `bare`: those without a scheme as well."""
    found: set[str] = set()
    for written in _written(text, bare):
        plain = html.unescape(written)
        for each in (written, plain, _trimmed(written), _trimmed(plain)):
            if (address := normal(each)) is not None:
                found |= {address, address.partition("#")[0]}
    return frozenset(found)


def urls_in(text: str) -> list[str]:
    """The addresses with a scheme, as they are written."""
    return _URL.findall(text)


#: Ends of names that are of this machine or its network; those of the second line are answered by
#: name servers of others with whatever address stands in the name.
_LOCAL = (
    *(".localhost", ".local", ".internal", ".lan", ".home", ".corp", ".intranet", ".private"),
    *(".localdomain", ".home.arpa", ".nip.io", ".sslip.io", ".xip.io", ".localtest.me", ".lvh.me"),
)


def is_local(host: str) -> bool:
    """Whether a host is this machine or in its network: what a page says of it counts for nothing."""
    name = host.lower().rstrip(".")
    if name == "localhost" or f".{name}".endswith(_LOCAL):
        return True
    try:
        return not _is_global(ipaddress.ip_address(name.partition("%")[0]))
    except ValueError:
        pass
    try:  # the old forms of numbers, such as 2130706433 and 0x7f.1
        return not _is_global(ipaddress.ip_address(socket.inet_aton(name)))
    except OSError:
        return "." not in name


#: Networks by which IPv6 reaches the IPv4 address in their last 32 bits.
_THROUGH = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/96", "::/96", "::ffff:0:0/96")))


def _is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Of an address of IPv6 that stands for one of IPv4, what that is."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.sixtofour or (address.teredo or (None, None))[1]
        if any(address in network for network in _THROUGH):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return address.is_global and not address.is_multicast


def _written(text: str, bare: bool) -> Iterable[str]:
    yield from _URL.findall(text)
    if bare:
        for word in _BARE.findall(text):
            yield f"https://{word}"
            yield f"http://{word}"


def _trimmed(address: str) -> str:
    """Without the punctuation of the sentence that it ends; a bracket that it opens stays."""
    while address and address[-1] in _ENDS:
        if address[-1] == ")" and address.count("(") >= address.count(")"):
            break
        address = address[:-1]
    return address


def _split(address: str) -> SplitResult | None:
    if not re.match(r"(?i)[a-z][a-z0-9+.-]*://", address) or re.search(r"[\s\\\x00-\x20\x7f]", address):
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or "@" in parts.netloc or port == 0 or not _ascii(parts.hostname):
        return None
    return parts


def _ascii(host: str) -> str | None:
    """A host as it is looked up. None for what programs look up differently: letters that the two
    standards of international names write in two ways, and signs that no name has."""
    host = host.lower().rstrip(".")
    if not host.isascii():
        if any(letter in host for letter in "\u00df\u1e9e\u03c2\u200c\u200d"):
            return None
        try:
            host = host.encode("idna").decode().lower()
        except UnicodeError:
            return None
    plain = host.partition("%")[0] if ":" in host else host  # the network card of an address of IPv6
    return host if re.fullmatch(r"[a-z0-9._:-]+", plain) else None
