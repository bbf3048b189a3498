"""Which values a label may take: configured names and small enumerations, anything else is `other`."""

from collections.abc import Mapping

from gateway.core.errors import FAILURES

OTHER = "other"
NO_TIER = "none"

OUTCOMES = ("ok", "error", "truncated", "cancelled")
KINDS = ("primary", "fallback", "hedge", "probe")
QUALITIES = (
    *("ok", "short", "burst", "hidden_reasoning", "whole_tool", "estimate", "client_blocked"),
    *("error", "truncated", "cancelled", "corrupt"),
)
TOKEN_TYPES = ("input", "cached", "output", "reasoning")
TOKEN_SOURCES = ("usage", "estimate")
REASONS = (
    *("best", "cheapest", "explore", "affinity", "only_choice", "degraded", "last_resort"),
    *("order", "weighted", "trial", "trickle", "sagging", "fallback"),
)
# The number that stands for a state in `gateway_deployment_state`.
STATES: Mapping[str, int] = {"ok": 0, "unmeasured": 1, "sagging": 2, "probing": 3, "cooling": 4, "disabled": 5}
TRANSITION_REASONS = frozenset(
    {
        *FAILURES,
        *("provider", "trial", "trial_due", "trial_in_flight", "recovered", "reset", "admin"),
        *("measured", "speed", "ttft", "collapse", "new_baseline", "own_network"),
    }
)
# What an attempt can end with besides `ok` and a failure code.
_ENDINGS = frozenset({"ok", "cancelled", "truncated", "lost", "failed", *FAILURES})

SPEED_STATS = ("p50", "floor", "baseline", "lower", "upper")
TTFT_STATS = ("p50", "p90", "predicted_1k")

PROMPT_SIZES = ((2_000, "2k"), (8_000, "8k"), (32_000, "32k"), (128_000, "128k"))
LARGEST_PROMPT = "more"
# Every deployment sees these. A histogram for each rarer size would be a sixth of all series, for prompts that most
# deployments never get or cannot take.
USUAL_PROMPTS = ("2k", "8k", "32k")
UNKNOWN_PROMPT = "unknown"


def prompt_size(tokens: int | None) -> str:
    """The bucket of a prompt: `8k` is from 2,000 to under 8,000 tokens."""
    if tokens is None:
        return UNKNOWN_PROMPT
    for bound, name in PROMPT_SIZES:
        if tokens < bound:
            return name
    return LARGEST_PROMPT


def ending(outcome: str, error: str | None) -> str:
    """`ok`, or the failure code, or how the attempt ended where it failed of nothing."""
    word = "ok" if outcome == "ok" else error or outcome
    return word if word in _ENDINGS else OTHER


def one_of(word: str | None, allowed: frozenset[str] | tuple[str, ...]) -> str:
    """The word itself where it is one of the enumeration's."""
    return word if word is not None and word in allowed else OTHER
