"""The provider's own clock: the rate it states, and our difference to it."""

from collections.abc import Mapping

from gateway.core.record import Speed

# Rates that differ by more are told apart from others by a mark.
DISAGREEMENT = 0.25


def server_rate(clock: Mapping[str, float] | None, output: int) -> float | None:
    """By the best of the clocks that were sent: time between tokens, its own rate, the time of the decode."""
    if not clock:
        return None
    between, own, decode = clock.get("itl_ms"), clock.get("tokens_per_s"), clock.get("completion_ms")
    return 1000 / between if between else own or (1000 * output / decode if decode else None)


def compared(clock: Mapping[str, float], speed: Speed, output: int | None, ttft_ms: float | None) -> dict[str, float]:
    """The clock with our difference to it, as far as both sides know.

    `decode_ratio`: our tok/s over the server's. `ttft_difference_ms`: our TTFT less the server's wait and prefill: the
    network, and what lies between.
    """
    found = dict(clock)
    theirs = server_rate(clock, output) if output is not None else None
    if theirs and speed.output_tps is not None and speed.source == "client":
        found["decode_ratio"] = speed.output_tps / theirs
    served_ms = _first_token_ms(clock)
    if served_ms is not None and ttft_ms is not None:
        found["ttft_difference_ms"] = ttft_ms - served_ms
    return found


def disagrees(clock: Mapping[str, float]) -> bool:
    """The two clocks tell different speeds."""
    ratio = clock.get("decode_ratio")
    return ratio is not None and not 1 - DISAGREEMENT <= ratio <= 1 + DISAGREEMENT


def _first_token_ms(clock: Mapping[str, float]) -> float | None:
    """Its time to the first token, else queue and prefill."""
    own, prefill = clock.get("ttft_ms"), clock.get("prompt_ms")
    if own is not None:
        return own
    return None if prefill is None else clock.get("queue_ms", 0.0) + prefill
