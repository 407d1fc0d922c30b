"""From model ids and settings to servers; discovery; retries' arithmetic; prices."""

from __future__ import annotations

import asyncio

import pytest

from textor.errors import ConfigError, ModelError, UseError
from textor.models.discovery import discover
from textor.models.habits import Habits, estimate
from textor.models.known import KNOWN
from textor.models.registry import resolve
from textor.models.remote import RemoteModel
from textor.models.retry import Retry
from textor.settings import ModelSettings, ProviderSettings
from textor.testing import ScriptedServer

KEYS = {p.key: "k" for p in KNOWN.values() if p.key}


@pytest.mark.parametrize("provider", sorted(KNOWN))
def test_every_known_provider_resolves(provider: str) -> None:
    server = resolve(f"{provider}:some/model:7b", {}, KEYS)
    assert server.id == f"{provider}:some/model:7b"
    assert server.name == "some/model:7b"
    assert server.base_url.startswith("http")
    assert server.local == KNOWN[provider].free


def test_any_other_provider_by_configuration() -> None:
    settings = ProviderSettings(
        base_url="http://10.0.0.5:8000/v1/",
        api_key="abc",
        context_window=9_000,
        system_as_user=False,
        temperature=0.2,
        args={"top_k": 5, "min_p": 0.1},
        models={
            "big": ModelSettings(context_window=90_000, args={"top_k": 1}, price_input=1, price_output=2)
        },
    )
    small, big = resolve("mine:small", {"mine": settings}, {}), resolve("mine:big", {"mine": settings}, {})
    assert (small.base_url, small.api_key, small.system_role) == ("http://10.0.0.5:8000/v1", "abc", "all")
    assert (small.context_window, big.context_window) == (9_000, 90_000)
    assert big.args == {"top_k": 1, "min_p": 0.1}
    assert RemoteModel(small).price(1, 1) is None
    assert RemoteModel(big).price(1_000_000, 1_000_000) == 3.0


def test_the_key_is_in_no_text() -> None:
    server = resolve("oai:gpt-4o", {}, {"OPENAI_API_KEY": "sk-secret"})
    assert server.api_key == "sk-secret"
    assert "sk-secret" not in repr(server)


@pytest.mark.parametrize("wrong", ["gpt-4o", ":x", "oai:", ""])
def test_no_model_id(wrong: str) -> None:
    with pytest.raises(UseError, match="provider:name"):
        resolve(wrong, {})


def test_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(UseError, match="openrouter"):
        resolve("open-router:x", {}, KEYS)
    with pytest.raises(UseError, match="base_url"):
        resolve("qqqq:x", {}, KEYS)


def test_a_missing_key_names_the_variable_and_the_place() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve("deepseek:deepseek-chat", {}, {})
    assert "DEEPSEEK_API_KEY" in str(raised.value) and "[providers.deepseek]" in str(raised.value)


def test_a_temperature_out_of_range_names_the_key_and_the_range() -> None:
    with pytest.raises(ConfigError, match=r"providers\.anthropic\.temperature is 1\.5.*0 to 1"):
        resolve("anthropic:claude-sonnet-4-5", {"anthropic": ProviderSettings(temperature=1.5)}, KEYS)
    settings = ProviderSettings(models={"gpt-4o": ModelSettings(temperature=-1)})
    with pytest.raises(ConfigError, match=r'models\."gpt-4o"\.temperature'):
        resolve("oai:gpt-4o", {"oai": settings}, KEYS)


def test_prices_are_known_unknown_or_nothing() -> None:
    known = RemoteModel(resolve("oai:gpt-4o", {}, KEYS))
    assert known.price(1_000_000, 0) == pytest.approx(2.5)
    assert known.price(1_000_000, 0, 1_000_000) == pytest.approx(1.25)
    assert known.window == 128_000
    assert RemoteModel(resolve("oai:gpt-nobody-knows", {}, KEYS)).price(1, 1) is None
    assert RemoteModel(resolve("apipie:x", {}, KEYS)).price(1, 1) is None
    assert RemoteModel(resolve("ollama:llama3.2", {}, {})).price(1, 1) == 0.0
    elsewhere = {"oai": ProviderSettings(base_url="https://proxy.example/v1", api_key="k")}
    assert RemoteModel(resolve("oai:gpt-4o", elsewhere, {})).price(1, 1) is None


def test_local_servers_are_found() -> None:
    with ScriptedServer(models=("llama3.2", "qwen3")) as one, ScriptedServer(models=("phi",)) as two:
        with ScriptedServer() as gone:
            away = gone.url
        asked = {"ollama": one.url, "lm-studio": two.url, "away": away}
        assert asyncio.run(discover(asked)) == ("ollama:llama3.2", "ollama:qwen3", "lm-studio:phi")


@pytest.mark.parametrize("said", [b"", b"junk\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n{", b"x" * 100_000])
def test_what_is_no_model_server_is_passed_over(said: bytes) -> None:
    """Also one that says nothing: it is not waited for."""

    async def odd_and_asked() -> tuple[str, ...]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(said)
            if said:
                writer.close()
            await reader.read()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await discover({"ollama": f"http://127.0.0.1:{port}/v1"}, patience=0.05)

    assert asyncio.run(odd_and_asked()) == ()


def test_waits_grow_are_bounded_and_obey_the_server() -> None:
    retry = Retry(attempts=9, random=lambda: 0.0)
    fault = ModelError("x", fault="server")
    assert [retry.wait(fault, n) for n in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 30, 30, None]
    assert retry.wait(ModelError("x", fault="auth"), 1) is None
    assert retry.wait(ModelError("x", fault="rate", retry_after=40), 1) == 40
    assert retry.wait(ModelError("x", fault="rate", retry_after=4000), 1) is None


def test_the_ratio_is_a_running_mean_and_a_cut_prompt_is_seen() -> None:
    habits = Habits("all")
    assert habits.reported(100, 150)
    assert habits.tokens(100) == 150
    assert habits.reported(1_000, 1_400)
    assert 140 < habits.tokens(100) < 150
    assert not habits.reported(10_000, 4_096)
    assert 140 < habits.tokens(100) < 150


def test_the_estimate_knows_that_other_scripts_cost_more() -> None:
    assert estimate("abcd" * 10) == 10
    assert estimate("漢字" * 10) > 15
    assert estimate("") == 0
