"""Windows and prices of well-known models, from the list that the client library brings along.

The list (genai-prices) is loaded on the first question, not at import: it costs 0.2 s of CPU.
What it does not know is None: an unknown price is unknown, never zero.
"""

from __future__ import annotations

from textor.models.server import Server


def listed_window(server: Server) -> int | None:
    """The context window in tokens that the list has for this model."""
    if not server.price_id:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(
            server.name, provider=None, provider_id=server.price_id, provider_api_url=None
        )
    except LookupError:
        return None
    return model.context_window


def price_of(server: Server, input: int, output: int, cached: int = 0) -> float | None:
    """US dollars for one request of so many tokens (`cached` of the `input` came from a cache)."""
    if server.prices is not None:
        return server.prices.of(input, output, cached)
    if not server.price_id:
        return None
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input, output_tokens=output, cache_read_tokens=min(cached, input))
    try:
        return float(calc_price(usage, server.name, provider_id=server.price_id).total_price)
    except (LookupError, ValueError):
        return None
