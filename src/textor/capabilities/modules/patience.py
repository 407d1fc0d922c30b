"""Work that a cancelling must not leave half done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def patiently(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which a cancelling does not reach; it is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.result()
        raise asyncio.CancelledError
    return task.result()
