"""The series of one deployment, joined once so that a record finds them with a single look-up."""

from collections.abc import Sequence

from gateway.core.record import AttemptRecord, GenerationRecord, Tokens
from gateway.telemetry.labels import (
    KINDS,
    QUALITIES,
    STATES,
    TOKEN_SOURCES,
    TOKEN_TYPES,
    TRANSITION_REASONS,
    USUAL_PROMPTS,
    ending,
    one_of,
    prompt_size,
)
from gateway.telemetry.registry import Registry


class DeploymentSeries:
    """Every metric that carries this deployment's labels. Where several share them there is no state to show."""

    def __init__(self, registry: Registry, provider: str, model: str, deployment: str) -> None:
        self._labels = labels = (provider, model, deployment)
        self._attempts = registry.scalar("gateway_attempts_total").under(*labels)
        self._ttft = registry.histogram("gateway_ttft_seconds").under(*labels)
        self._by_server = registry.scalar("gateway_server_clock_samples_total")
        self._samples = registry.scalar("gateway_speed_samples_total").under(*labels)
        self._tokens = registry.scalar("gateway_tokens_total").under(*labels)
        self._transitions = registry.scalar("gateway_deployment_transitions_total").under(*labels)
        self._connect = registry.histogram("gateway_connect_seconds").child(provider)
        self._pool_wait = registry.histogram("gateway_pool_wait_seconds").child(provider)
        self._ttfa = registry.histogram("gateway_ttfa_seconds").child(*labels)
        self._tps = registry.histogram("gateway_output_tokens_per_second").child(*labels)
        self._chars = registry.histogram("gateway_output_chars_per_second").child(*labels)
        self._tpot = registry.histogram("gateway_time_per_output_token_seconds").child(*labels)
        self._gaps = registry.histogram("gateway_gap_seconds").child(*labels)
        self._max_gap = registry.histogram("gateway_max_gap_seconds").child(*labels)
        self._stalls = registry.scalar("gateway_stalls_total").child(*labels)
        self._cost = registry.scalar("gateway_cost_usd_total").child(*labels)
        self._state = registry.scalar("gateway_deployment_state")
        self.in_flight = registry.scalar("gateway_deployment_in_flight").child(*labels)
        self._make_children()

    def _make_children(self) -> None:
        """What a sound stream moves exists from the start, so that its rate does; the rest comes on first use.

        To ask for a series is to make it.
        With every combination 200 deployments would have more series than a scrape should carry.
        """
        for kind in ("primary", "fallback"):
            self._attempts[kind, "ok"]
        for size in USUAL_PROMPTS:
            self._ttft[(size,)]
        self._samples[("ok",)]
        for kind in TOKEN_TYPES:
            self._tokens[kind, "usage"]
        self._tokens["output", "estimate"]

    def show_state(self, state: str) -> None:
        self._state.child(*self._labels).set(STATES[state])

    def transition(self, to: str, reason: str) -> None:
        """Counts a change of state."""
        self._transitions[to, one_of(reason, TRANSITION_REASONS)].inc()

    def attempt(self, entry: AttemptRecord) -> None:
        """One attempt, whether it answered the request or not."""
        self._attempts[one_of(entry.kind, KINDS), ending(entry.outcome, entry.error)].inc()
        if entry.connect_ms is not None:
            self._connect.observe(entry.connect_ms / 1000.0)
        if entry.pool_wait_ms is not None:
            self._pool_wait.observe(entry.pool_wait_ms / 1000.0)
        if entry.cost_usd is not None:
            self._cost.inc(entry.cost_usd)

    def answer(self, record: GenerationRecord) -> None:
        """What the record says of the attempt that answered."""
        timing, speed = record.timing, record.speed
        if timing.ttft_ms is not None:
            self._ttft[(prompt_size(record.tokens.input),)].observe(timing.ttft_ms / 1000.0)
        if timing.ttfa_ms is not None:
            self._ttfa.observe(timing.ttfa_ms / 1000.0)
        if timing.max_gap_ms is not None:
            self._max_gap.observe(timing.max_gap_ms / 1000.0)
        self._gaps.observe_all(record.gaps_s)
        self._stalls.inc(timing.stalls)
        self._count_tokens(record.tokens)
        if speed.quality is not None:
            self._samples[(one_of(speed.quality, QUALITIES),)].inc()
        if speed.source == "server":
            self._by_server.child(*self._labels).inc()
        # The same samples as in the speed book, so that a histogram and /v1/speed tell of the same streams.
        if speed.quality == "ok" or speed.source == "server":
            self._observe_speed(speed.output_tps, speed.chars_per_s, speed.tpot_ms)

    def _observe_speed(self, tps: float | None, chars_per_s: float | None, tpot_ms: float | None) -> None:
        if tps is not None:
            self._tps.observe(tps)
        if chars_per_s is not None:
            self._chars.observe(chars_per_s)
        if tpot_ms is not None:
            self._tpot.observe(tpot_ms / 1000.0)

    def _count_tokens(self, tokens: Tokens) -> None:
        if tokens.source is None:
            return
        source = one_of(tokens.source, TOKEN_SOURCES)
        counts: Sequence[int | None] = (tokens.input, tokens.cached, tokens.output, tokens.reasoning)
        for kind, count in zip(TOKEN_TYPES, counts, strict=True):
            if count:
                self._tokens[kind, source].inc(count)
