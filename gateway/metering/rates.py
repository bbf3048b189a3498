"""The rates of one sample, each stated only where it is sound."""

from gateway.core.record import Speed
from gateway.metering import quality
from gateway.metering.quality import Facts
from gateway.metering.server_clock import server_rate

_UNSOUND_ANSWER = frozenset({"error", "cancelled", "truncated", "corrupt", "estimate", "whole_tool", "client_blocked"})
_BY_SERVER = frozenset({"burst", "whole_tool"})
_WITH_CHARS = frozenset({"ok", "estimate", "hidden_reasoning"})


def judge_speed(facts: Facts, clock: dict[str, float] | None, estimated: float | None, marks: tuple[str, ...]) -> Speed:
    """Quality and rates. `estimated` are the output tokens guessed where the provider counted none."""
    word = quality.judge(facts)
    rate, source, window_s = None, None, facts.all.window_s
    if word == "ok" and facts.output is not None:
        rate, source = facts.all.rate(facts.output), "client"
    elif word in _BY_SERVER and facts.output is not None and facts.choices == 1 and not facts.predicted:
        rate = server_rate(clock, facts.output)
        if quality.implausible(rate):
            rate = None
        if rate:
            source, window_s = "server", facts.output / rate
    even = _evenly_streamed(facts)
    return Speed(
        output_tps=rate,
        answer_tps=_answer_rate(facts, word),
        chars_per_s=facts.all.rate(facts.all.chars) if even and word in _WITH_CHARS else None,
        tpot_ms=1000 / rate if rate else None,
        estimated_tps=facts.all.rate(estimated) if even and facts.output is None and estimated is not None else None,
        source=source if rate is not None else None,
        quality=word,
        weight=quality.weight(window_s) if rate is not None else None,
        marks=marks,
    )


def answer_tokens(facts: Facts) -> int | None:
    """Output less reasoning; None where the split is unknown although there was reasoning, streamed or not."""
    if facts.output is None or (facts.reasoning is None and (facts.reasoning_chars or facts.summarised)):
        return None
    return max(0, facts.output - (facts.reasoning or 0))


def _answer_rate(facts: Facts, word: str) -> float | None:
    tokens = answer_tokens(facts)
    span = facts.answer
    if word in _UNSOUND_ANSWER or not tokens or not span.long_enough or facts.predicted:
        return None
    if span.in_one_piece or quality.bursts(facts) or quality.blocked(facts):
        return None
    rate = span.rate(tokens)
    return None if quality.implausible(rate) else rate


def _evenly_streamed(facts: Facts) -> bool:
    """The client's clock can time these characters, whatever is known of tokens."""
    span = facts.all
    if facts.events < quality.MIN_EVENTS or not span.long_enough or facts.choices > 1 or facts.corrupt:
        return False
    return not (span.in_one_piece or quality.bursts(facts) or quality.blocked(facts))
