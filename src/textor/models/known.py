"""The providers that Textor knows by name: address, environment variable of the key, manners."""

from __future__ import annotations

import msgspec

from textor.models.server import Protocol, SystemRole


class Provider(msgspec.Struct, frozen=True):
    """A known provider. `key` is the environment variable of its key, "" when it needs none.

    `temperature` is the highest that it takes. `window` is assumed where neither the configuration
    nor the price list knows better: a cautious number, since a server that cuts prompts does so
    without a word.
    """

    name: str
    title: str
    base_url: str
    key: str = ""
    protocol: Protocol = "openai"
    system_role: SystemRole = "first"
    temperature: float = 2.0
    window: int = 32_768
    json_schema: bool = True
    completion_tokens: bool = False
    reasoning_field: str = ""
    price_id: str = ""
    free: bool = False  #: runs on this machine


KNOWN: dict[str, Provider] = {
    p.name: p
    for p in (
        Provider(
            "oai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY",
            system_role="all", window=128_000, completion_tokens=True, price_id="openai",
        ),
        Provider(
            "anthropic", "Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY",
            protocol="anthropic", temperature=1.0, window=200_000, price_id="anthropic",
        ),
        Provider(
            "mistral", "Mistral", "https://api.mistral.ai", "MISTRAL_API_KEY",
            protocol="mistral", temperature=1.5, window=128_000, price_id="mistral",
        ),
        Provider(
            "groq", "Groq", "https://api.groq.com", "GROQ_API_KEY",
            protocol="groq", window=128_000, price_id="groq",
        ),
        Provider(
            "deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY",
            window=64_000, json_schema=False, reasoning_field="reasoning_content", price_id="deepseek",
        ),
        Provider(
            "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY",
            price_id="openrouter",
        ),
        Provider("apipie", "APIpie", "https://apipie.ai/v1", "APIPIE_API_KEY"),
        Provider("ollama", "Ollama", "http://127.0.0.1:11434/v1", window=4_096, free=True),
        Provider("lm-studio", "LM Studio", "http://127.0.0.1:1234/v1", window=4_096, free=True),
    )
}  # fmt: skip
