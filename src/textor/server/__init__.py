"""The page and its HTTP interface: one more face of a session (events out, commands in)."""

from __future__ import annotations

from textor.server.app import create_app
from textor.server.serve import serve

__all__ = ["create_app", "serve"]
