"""How far the speed of one sample can be trusted: one word, by fixed rules in a fixed order."""

from dataclasses import dataclass

MIN_EVENTS = 3
MIN_TOKENS = 8
MIN_WINDOW_S = 0.020
BURST_SHARE = 0.80
BURST_EVENTS = 16
QUICK_GAP_S = 0.001
BURST_PAUSE_S = 0.250
BLOCKED_SHARE = 0.10
# No decoder is known to reach this for one stream; a higher figure is the rate of a buffer.
PLAUSIBLE_TPS = 20_000.0
# Below the resolution of any clock involved; differences of floats must not decide a rule.
_CLOCK_STEP_S = 1e-6
_ENDS = ("error", "cancelled", "truncated")


@dataclass(frozen=True, slots=True)
class Span:
    """Token-bearing reads from the first to the last one, in characters.

    `first_chars` came with the first read: they were decoded before the window and are not part of its rate.
    """

    window_s: float = 0.0
    reads: int = 0
    chars: int = 0
    first_chars: int = 0
    largest_read: int = 0

    @property
    def long_enough(self) -> bool:
        """The window is one that a rate can be taken from."""
        return self.window_s > MIN_WINDOW_S - _CLOCK_STEP_S

    @property
    def in_one_piece(self) -> bool:
        """So much came in one read that the time between reads says nothing."""
        return self.chars > 0 and self.largest_read >= BURST_SHARE * self.chars

    def rate(self, amount: float) -> float | None:
        """Of `amount` spread over all characters, what came after the first read, over the time that took."""
        if self.window_s <= 0 or self.chars <= 0:
            return None
        return amount * (1 - self.first_chars / self.chars) / self.window_s


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at. `output` and `reasoning` are the provider's counts, None where it did not say.

    `all` spans every kind of token, `answer` those that are not reasoning. `blocked_s` is the time inside the window.
    """

    outcome: str
    all: Span
    answer: Span
    events: int
    output: int | None = None
    reasoning: int | None = None
    reasoning_chars: int = 0
    summarised: bool = False
    whole_tool: bool = False
    corrupt: bool = False
    gaps: int = 0
    quick_gaps: int = 0
    longest_gap_s: float = 0.0
    blocked_s: float = 0.0
    choices: int = 1
    predicted: bool = False


def judge(facts: Facts) -> str:
    """The first of the words that applies, `ok` if none does."""
    if facts.outcome in _ENDS:
        return facts.outcome
    if facts.corrupt:
        return "corrupt"
    if facts.output is None:
        return "estimate"
    if _hides_reasoning(facts):
        return "hidden_reasoning"
    if _whole_tool(facts):
        return "whole_tool"
    if facts.all.in_one_piece or bursts(facts) or implausible(facts.all.rate(facts.output)):
        return "burst"
    if blocked(facts):
        return "client_blocked"
    return "short" if _short(facts) else "ok"


def _hides_reasoning(facts: Facts) -> bool:
    """Billed reasoning that was not streamed in full: nothing at all, a filler, a summary."""
    return facts.summarised or (facts.reasoning is not None and facts.reasoning > facts.reasoning_chars)


def _whole_tool(facts: Facts) -> bool:
    """A call that comes whole after streamed text or reasoning leaves the rate sound; one or two reads do not."""
    return facts.whole_tool and facts.all.reads <= 2


def bursts(facts: Facts) -> bool:
    """Reads on each other's heels with a long pause between: something buffered, and its flushes came in pieces."""
    quick = facts.events >= BURST_EVENTS and 2 * facts.quick_gaps > facts.gaps
    return quick and facts.longest_gap_s > BURST_PAUSE_S


def implausible(rate: float | None) -> bool:
    """Faster than anything decodes."""
    return rate is not None and rate > PLAUSIBLE_TPS


def blocked(facts: Facts) -> bool:
    """The client held us up so long that the window is partly its own."""
    return facts.blocked_s > 0 and facts.blocked_s > BLOCKED_SHARE * facts.all.window_s


def _short(facts: Facts) -> bool:
    """Too little to tell a rate from, or tokens that were not decoded one after the other."""
    few = facts.events < MIN_EVENTS or (facts.output or 0) < MIN_TOKENS
    return few or not facts.all.long_enough or facts.choices > 1 or facts.predicted


def weight(window_s: float) -> float:
    """A sample's weight in statistics: 15 ms of jitter at the ends against the 25 % that speeds vary by anyway."""
    if window_s <= 0:
        return 0.0
    return float(1 / (1 + 2 * (0.015 / (0.25 * window_s)) ** 2))
