"""What a page counts: the quantities' numbers in its sheets. They are stored, so none ever changes its meaning."""

from gateway.core.speed import PROMPT_SIZES

TALLY = 0
TTFA = 1
CHARS = 2
GAP = 3
# TTFT by prompt size, and waits that ended without a token: lower bounds of a TTFT.
TTFT = 10
BOUND = 20
# Output speed by the attempts under way when it began.
SPEED = 30

# Tallies: whole numbers of things that happened.
OK = 1
ERRORS = 2
RATE_LIMITED = 3
UNCHARGED = 4
SERVER_SAMPLES = 5
COST_NANO_USD = 6
PRICED = 7
QUALITY = 32

QUALITIES = (
    *("ok", "short", "burst", "hidden_reasoning", "whole_tool", "estimate", "client_blocked"),
    *("error", "truncated", "cancelled", "corrupt"),
)

_SIZE_BOUNDS = (2_000, 8_000, 32_000, 128_000)
UNKNOWN_SIZE = len(PROMPT_SIZES)
LOADS = ("1", "2-4", "5-8", "9-16", "17+")
_LOAD_BOUNDS = (1, 4, 8, 16)


def size_of(tokens: int | None) -> int:
    """The number of a prompt's size bucket."""
    if tokens is None:
        return UNKNOWN_SIZE
    return next((index for index, bound in enumerate(_SIZE_BOUNDS) if tokens < bound), len(_SIZE_BOUNDS))


def load_of(in_flight: int | None) -> int:
    """The number of a load bin; 0 where the load is not known."""
    if in_flight is None:
        return 0
    return 1 + next((index for index, bound in enumerate(_LOAD_BOUNDS) if in_flight <= bound), len(_LOAD_BOUNDS))
