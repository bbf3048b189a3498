"""Token counts and server clocks as vendors of the OpenAI dialect write them, normalised."""

from typing import Any

from gateway.core.reading import Usage
from gateway.core.types import Json

# Where a vendor puts its own clock, and how each field reads: (field, our name, factor to our unit).
_SECONDS = (
    ("queue_time", "queue_ms", 1e3),
    ("prompt_time", "prompt_ms", 1e3),
    ("completion_time", "completion_ms", 1e3),
    ("total_time", "total_ms", 1e3),
)
# Groq and SambaNova write into the usage object itself.
_IN_USAGE = (
    *_SECONDS,
    ("time_to_first_token", "ttft_ms", 1e3),
    ("total_latency", "total_ms", 1e3),
    ("completion_tokens_after_first_per_sec", "tokens_per_s", 1.0),
)
# vLLM's tokens_per_second includes the prefill and is left out on purpose: 1 / mean_itl is the decode rate.
_VLLM = (
    ("queue_time_ms", "queue_ms", 1.0),
    ("time_to_first_token_ms", "ttft_ms", 1.0),
    ("generation_time_ms", "completion_ms", 1.0),
    ("mean_itl_ms", "itl_ms", 1.0),
)
_BESIDE: dict[str, tuple[tuple[str, str, float], ...]] = {
    "time_info": _SECONDS,
    "metrics": _VLLM,
    "timings": (
        ("prompt_ms", "prompt_ms", 1.0),
        ("predicted_ms", "completion_ms", 1.0),
        ("predicted_per_second", "tokens_per_s", 1.0),
    ),
    "perf_metrics": (
        ("server-time-to-first-token", "ttft_ms", 1e3),
        ("server-processing-time", "total_ms", 1e3),
        ("prefill-queue-duration", "queue_ms", 1e3),
        ("prefill-duration", "prompt_ms", 1e3),
        ("generation-duration", "completion_ms", 1e3),
    ),
    "stats": (
        ("time_to_first_token", "ttft_ms", 1e3),
        ("generation_time", "completion_ms", 1e3),
        ("tokens_per_second", "tokens_per_s", 1.0),
    ),
    "openrouter_metadata": (("generation_time", "total_ms", 1.0),),
}
CLOCK_KEYS = frozenset(_BESIDE)
_LARGEST = 1e12


def read_usage(raw: Any) -> Usage | None:
    """None for null and for a placeholder of zeros. Output includes reasoning, whatever the vendor's habit."""
    if type(raw) is not dict:
        return None
    prompt = _count(raw, "prompt_tokens", "input_tokens")
    completion = _count(raw, "completion_tokens", "output_tokens")
    total = _count(raw, "total_tokens")
    if not (prompt or completion or total):
        return None
    before = _details(raw, "prompt_tokens_details", "input_tokens_details")
    after = _details(raw, "completion_tokens_details", "output_tokens_details")
    reasoning = _first(_count(after, "reasoning_tokens"), _count(raw, "reasoning_tokens"))
    output, beside = _output(prompt, completion, total)
    if beside and not reasoning:
        reasoning = beside
    if output is not None and reasoning is not None and reasoning > output:
        output += reasoning  # it cannot be a part of what it exceeds (xAI without a total, Perplexity's research)
    return Usage(
        input=prompt,
        cached=_first(_count(before, "cached_tokens"), _count(raw, "prompt_cache_hit_tokens", "cached_tokens")),
        cache_write=_first(_count(before, "cache_write_tokens"), _count(raw, "cache_creation_input_tokens")),
        output=output,
        reasoning=reasoning,
        predicted=_predicted(after),
    )


def _output(prompt: int | None, completion: int | None, total: int | None) -> tuple[int | None, int]:
    """Output tokens, and how many of them the vendor counted beside its completion tokens (xAI, Gemini compat)."""
    if not prompt and not completion and total:
        return None, 0  # a total beside zeros: neither part was filled in
    if prompt is None or total is None or total <= prompt + (completion or 0):
        return completion, 0
    if completion is None:
        return total - prompt, 0
    return total - prompt, total - prompt - completion


def _predicted(details: Json) -> int | None:
    """Tokens of a predicted output: rejected ones are billed and never streamed, accepted ones cost no decoding."""
    accepted = _count(details, "accepted_prediction_tokens") or 0
    rejected = _count(details, "rejected_prediction_tokens") or 0
    return (accepted + rejected) or None


def read_clock(event: Json, usages: tuple[Any, ...]) -> dict[str, float] | None:
    """The server's own clock, in ms (`tokens_per_s` apart), from beside the usage and from inside it."""
    found: dict[str, float] = {}
    for key in CLOCK_KEYS.intersection(event):
        _take(event[key], _BESIDE[key], found)
    for usage in usages:
        _take(usage, _IN_USAGE, found)
        if type(usage) is dict:
            _take(usage.get("metrics"), _VLLM, found)
    if "itl_ms" in found and "ttft_ms" in found:
        # vLLM counts its time to the first token from when the request was scheduled.
        found["ttft_ms"] += found.get("queue_ms", 0.0)
    return found or None


def _take(raw: Any, fields: tuple[tuple[str, str, float], ...], found: dict[str, float]) -> None:
    if type(raw) is not dict:
        return
    for field, name, factor in fields:
        value = _number(raw.get(field))
        if value is not None:
            found[name] = value * factor


def _number(value: Any) -> float | None:
    """A plain non-negative number, also from a string such as `0.25` or `0.25s`."""
    if type(value) is str and len(value) < 32:
        try:
            value = float(value.removesuffix("s"))
        except ValueError:
            return None
    if (type(value) is int or type(value) is float) and 0 <= value < _LARGEST:
        return float(value)
    return None


def cached_by_server(event: Json) -> int | None:
    """llama.cpp tells its cached prompt tokens in `timings` only."""
    timings = event.get("timings")
    return _count(timings, "cache_n") if type(timings) is dict else None


def _details(raw: Json, *names: str) -> Json:
    for name in names:
        value = raw.get(name)
        if type(value) is dict:
            return value
    return {}


def _count(raw: Json, *names: str) -> int | None:
    for name in names:
        value = raw.get(name)
        if type(value) is int and 0 <= value < _LARGEST:
            return value
        if type(value) is float and 0 <= value < _LARGEST:
            return int(value)
    return None


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one
