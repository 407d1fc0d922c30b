"""When and how long to wait before a request is tried again. The library's own retries are off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from textor.errors import ModelError

#: A server that asks for more patience than this is not waited for.
LONGEST_WAIT = 300.0


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with full jitter above one half, after Brooker, "Exponential Backoff And
    Jitter" (AWS, 2015). `attempts` counts the first try too; `base` and `longest` are seconds;
    `sleep` and `random` (0 to 1) are injected by tests."""

    attempts: int = 5
    base: float = 1.0
    longest: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = field(default=random.random)

    def wait(self, fault: ModelError, failed: int) -> float | None:
        """Seconds until the next try after `failed` failed ones; None: give up.

        Retry-After is obeyed as told, and a little more, so that many waiters do not come at once.
        """
        if not fault.transient or failed >= self.attempts:
            return None
        if fault.retry_after is not None:
            if fault.retry_after > LONGEST_WAIT:
                return None
            return fault.retry_after + self.random() * min(1.0, 0.1 * fault.retry_after)
        step = min(self.longest, self.base * 2.0 ** (failed - 1))
        return float(step * (0.5 + 0.5 * self.random()))
