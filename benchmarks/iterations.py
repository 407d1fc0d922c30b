"""How a session's storage grows, and how long reading its iterations back takes.

    python benchmarks/iterations.py [ITERATIONS]

Each iteration: a reply of 1 kB and a result of 1 kB. Goal: 1,000 iterations under 50 MB.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from textor import capability
from textor import events as e
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider
from textor.config import Config
from textor.events import Definition, Limits
from textor.hosts.local import LocalHost
from textor.journal.sqlite import SqliteJournal
from textor.layouts.monitor import Monitor
from textor.processors import Models
from textor.record.iterations import iterations
from textor.testing import ScriptedModel


@capability
def fetch(n: int) -> str:
    """Fetch a text."""
    return f"{n} " + "y" * 1000


async def measure(layout: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        replies = [f'{"z" * 1000}\n<actions><fetch n="{n}"/></actions>' for n in range(count)]
        model = ScriptedModel([*replies, "Done."], native_tools=False, window=1_000_000_000)
        config = Config(path=place / "config.toml", data=place)
        models = Models(config)
        models.add(model)
        providers = [*await core_providers(), FunctionProvider([fetch]), Monitor()]
        journal = SqliteJournal(place / "journal.db")
        services = await make_services(config, journal, models, providers)
        made = Machine(config, services, models, providers)
        made.host = LocalHost(services)
        await made.host.start()
        definition = Definition(
            "worker", dialects=("xml",), layout=layout, prompt="You work.", capabilities=("fetch",)
        )
        session = await made.create(
            "go",
            workspace=place / "work",
            definition=definition,
            model=model.id,
            limits=Limits(),
            policy="yes",
        )
        begun = time.process_time()
        async for event in session.follow():
            if isinstance(event.body, e.TurnEnded):
                assert event.body.reason == "replied", event.body
                break
        ran = time.process_time() - begun
        begun = time.process_time()
        found = [i async for i in iterations(journal, session.id, services.layout)]
        read = time.process_time() - begun
        await made.close()
        size = size_of(place)
    print(
        f"{layout:<13}{len(found):>6} iterations: {size:6.1f} MB; {ran:.1f} s CPU, read back in {read:.2f} s"
    )


def size_of(folder: Path) -> float:
    """MB of all files below."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


if __name__ == "__main__":
    for name in ("stable", "regenerated"):
        asyncio.run(measure(name, int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
