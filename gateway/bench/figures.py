"""The figures of one run: ours, and what other tools would say of the same stream, each under its own name."""

from dataclasses import dataclass, field
from typing import Any

from gateway.core.record import Measurement

ANSWER_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Formulas:
    """Tokens per second as other tools define them. All count `n` tokens by the provider's usage.

    `inter_token`: (n − 1) / (last token − first token): the inverse of vLLM's TPOT and of aiperf's inter-token latency.
    `per_token_to_end`: (n − 1) / (end − first token): the same where the end of the stream is taken for the last token.
    `end_to_end`: n / (end − request): LLMPerf's throughput of a request; punishes a late first token.
    `chunks`: (chunks − 1) / (last token − first token): what counting chunks for tokens gives.
    """

    inter_token: float | None = None
    per_token_to_end: float | None = None
    end_to_end: float | None = None
    chunks: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One request. Rates are None where they would be wrong; `quality` says why. `error`: why it is no answer at all.

    `gateway`: the gateway's own record of the same request, where there is one in between.
    """

    outcome: str
    error: str | None = None
    quality: str | None = None
    ttft_ms: float | None = None
    ttfa_ms: float | None = None
    output_tps: float | None = None
    answer_tps: float | None = None
    chars_per_s: float | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    duration_ms: float | None = None
    answer_500_ms: float | None = None
    max_gap_ms: float | None = None
    connect_ms: float | None = None
    source: str | None = None
    marks: tuple[str, ...] = ()
    formulas: Formulas = Formulas()
    server_clock: dict[str, float] | None = None
    gateway: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def sound(self) -> bool:
        """An answer with a rate that can be believed."""
        return self.outcome == "ok" and self.output_tps is not None


def run_of(measured: Measurement, outcome: str, error: str | None, connect_s: float | None) -> Run:
    """The figures of what the meter measured."""
    timing, speed, tokens = measured.timing, measured.speed, measured.tokens
    counted = tokens.output if tokens.source == "usage" else None
    return Run(
        outcome=outcome,
        error=error,
        quality=speed.quality,
        ttft_ms=timing.ttft_ms,
        ttfa_ms=timing.ttfa_ms,
        output_tps=speed.output_tps,
        answer_tps=speed.answer_tps,
        chars_per_s=speed.chars_per_s,
        output_tokens=counted,
        reasoning_tokens=tokens.reasoning,
        duration_ms=timing.duration_ms,
        answer_500_ms=_answer_ms(timing.ttfa_ms, speed.answer_tps),
        max_gap_ms=timing.max_gap_ms,
        connect_ms=None if connect_s is None else connect_s * 1000,
        source=speed.source,
        marks=speed.marks,
        formulas=_formulas(measured, counted) if outcome == "ok" else Formulas(),
        server_clock=measured.server_clock,
    )


def _answer_ms(ttfa_ms: float | None, answer_tps: float | None) -> float | None:
    """When an answer of 500 tokens is there."""
    return None if ttfa_ms is None or not answer_tps else ttfa_ms + ANSWER_TOKENS / answer_tps * 1000


def _formulas(measured: Measurement, tokens: int | None) -> Formulas:
    timing = measured.timing
    first, last, end = timing.ttft_ms, timing.last_token_ms, timing.duration_ms
    if first is None or last is None or end is None:
        return Formulas()
    chunks = measured.stream_events.tokens
    return Formulas(
        inter_token=_rate(None if tokens is None else tokens - 1, last - first),
        per_token_to_end=_rate(None if tokens is None else tokens - 1, end - first),
        end_to_end=_rate(tokens, end),
        chunks=_rate(chunks - 1, last - first),
    )


def _rate(count: int | None, ms: float) -> float | None:
    return None if count is None or count <= 0 or ms <= 0 else 1000 * count / ms
