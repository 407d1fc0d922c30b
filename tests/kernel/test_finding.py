"""Found capabilities are shown with a message and used through `use`, held to their own schema."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kernel_parts import bodies, ended, machine, until

from textor import events as e
from textor.actions import Capability, Outcome
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.events import Definition, Event
from textor.testing import Call, Reply, ScriptedModel
from textor.tree.finding import Ranking

WEATHER = Capability(
    "weather.forecast",
    "The weather of a city for the days to come.",
    parameters(("city",), city={"type": "string"}, days={"type": "integer", "default": 1}),
    effects=("network",),
)
STOCKS = Capability(
    "stocks.price", "The price of a share.", parameters(("symbol",), symbol={"type": "string"})
)


async def perform(arguments: dict[str, object], scope: object) -> Outcome:
    return Outcome("done", f"sunny in {arguments['city']} for {arguments['days']} days")


def found_turn(
    folder: Path, replies: Sequence[Reply | str], policy: str
) -> tuple[list[Event], ScriptedModel]:
    async def run() -> tuple[list[Event], ScriptedModel]:
        model = ScriptedModel(replies)
        modules = TableProvider("modules", [Entry(WEATHER, perform), Entry(STOCKS, perform)])
        definition = Definition("tester", capabilities=("use", "time.now"))
        async with machine(model, tmp=folder) as made:
            await made.services.registry.add(modules)
            session = await made.create(
                "Will it rain in Ghent? I want the weather forecast.",
                workspace=folder,
                definition=definition,
                model=model.id,
                policy=policy,
                attended=False,
            )
            return await until(session, ended), model

    return asyncio.run(run())


def used(**arguments: object) -> Reply:
    return Reply(calls=(Call("use", {"name": "weather.forecast", "arguments": arguments}),))


def test_what_is_found_is_shown_and_used_under_its_own_name(tmp_path: Path) -> None:
    events, model = found_turn(tmp_path, [used(city="Ghent", days="3"), "Sunny."], "yes")
    shown = str(model.asked[0].context.messages[-1])
    assert "weather.forecast(city: string, days?: integer)" in shown
    assert shown.index("weather.forecast") < shown.index("stocks.price")
    assert {t.name for t in model.asked[0].context.tools} == {"use", "time_now"}
    [action] = bodies(events, e.GenerationFinished)[0].actions
    assert (action.capability, action.arguments) == ("weather.forecast", {"city": "Ghent", "days": 3})
    assert [b.outcome.text for b in bodies(events, e.ActionFinished)] == ["sunny in Ghent for 3 days"]


def test_the_gate_judges_what_really_runs(tmp_path: Path) -> None:
    events, _ = found_turn(tmp_path, [used(city="Ghent"), "Denied."], "deny")
    assert [b.verdict for b in bodies(events, e.ActionJudged)] == ["deny"]
    assert bodies(events, e.ActionStarted) == []


def test_wrong_arguments_and_names_are_told(tmp_path: Path) -> None:
    replies = [
        used(town="Ghent"),
        Reply(calls=(Call("use", {"name": "weather.forcast", "arguments": {}}),)),
        Reply(calls=(Call("use", {"name": "shell.run", "arguments": {"command": "ls"}}),)),
        "I give up.",
    ]
    events, _ = found_turn(tmp_path, replies, "yes")
    texts = [b.outcome.text for b in bodies(events, e.ActionFinished)]
    assert "city" in texts[0]
    assert "weather.forecast" in texts[1]
    assert "no 'shell.run'" in texts[2]
    assert {b.outcome.state for b in bodies(events, e.ActionFinished)} == {"failed"}


def test_two_rankings_are_fused() -> None:
    ranking = Ranking(["read a file", "write a file", "send a mail"], [])
    assert ranking.best("please write files", 2)[0] == 1
    assert ranking.best("nothing of the kind at all", 3) == []
