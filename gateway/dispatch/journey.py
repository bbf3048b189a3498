"""The account of one request while it runs: its attempts, its waits, and at the end its record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.core.clock import iso_utc, utc_now
from gateway.core.errors import AttemptError
from gateway.core.ports import Exchange, StreamMeter
from gateway.core.record import AttemptRecord, ClientView, GenerationRecord, Measurement, Speed, Timing
from gateway.core.types import Call, Candidate, Price

_FAILED = "failed"
_GIVEN_UP = frozenset({"timeout_ttft", "timeout_idle", "timeout_total"})


@dataclass(slots=True)
class Trial:
    """One attempt while it runs. `outcome` stays None until it is known. Moments are monotonic seconds."""

    candidate: Candidate
    kind: str
    began: float
    retry: bool
    exchange: Exchange | None = None
    meter: StreamMeter | None = None
    dropped: tuple[str, ...] = ()
    outcome: str | None = None
    error: AttemptError | None = None
    committed: bool = False
    in_flight: int | None = None
    on_commit: Callable[[], None] | None = None

    def commit(self) -> None:
        """The client is given this attempt's answer from here on."""
        self.committed = True
        if self.on_commit is not None:
            self.on_commit()

    @property
    def sent(self) -> float | None:
        """This attempt's t0; None where the request never went out."""
        return None if self.exchange is None else self.exchange.sent


class Journey:
    """One request from arrival to record."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.created = utc_now()
        self.attempts: list[AttemptRecord] = []
        self.errors: list[AttemptError] = []
        self.outcome = "error"
        self.error: str | None = None
        self.overhead_s = 0.0
        self.client_ttft_s: float | None = None
        self._final: Trial | None = None
        self._told: GenerationRecord | None = None
        self._measured = Measurement()
        self._cost_usd: float | None = None

    @property
    def last_candidate(self) -> Candidate | None:
        """Where the latest attempt was made."""
        return self._final.candidate if self._final else None

    def begin(self, candidate: Candidate, now: float) -> Trial:
        """An attempt starts."""
        first = not self.attempts
        if first:
            self.overhead_s += now - self.call.received
        # A second try where the plan began is no fallback to anything.
        primary = all(entry.deployment == candidate.deployment.id for entry in self.attempts)
        return Trial(candidate, "primary" if primary else "fallback", now, retry=not first)

    def count_sending(self, trial: Trial) -> None:
        """Adds our own share of the time until the request was written."""
        exchange = trial.exchange
        if exchange is not None:
            waited = exchange.pool_wait_s + (exchange.connect_s or 0.0)
            self.overhead_s += max(0.0, exchange.sent - trial.began - waited)

    def tell(self, trial: Trial, outcome: str, now: float) -> GenerationRecord:
        """The record as the client is told it within the stream; it stays the record if nothing else comes of it."""
        before = (trial.outcome, self.outcome, self.error)
        trial.outcome, self.outcome = outcome, outcome
        self.error = trial.error.code if trial.error else None
        attempts, errors = list(self.attempts), list(self.errors)
        self.close(trial, now)
        told = self.record(now)
        self.attempts, self.errors = attempts, errors
        # Until the client has it, the answer is not complete.
        trial.outcome, self.outcome, self.error = before
        self._told = told
        return told

    def tell_failure(self, now: float) -> GenerationRecord:
        """The record as the client is told it within a stream that came to no answer."""
        self._told = None
        self._told = self.record(now)
        return self._told

    def close(self, trial: Trial, now: float) -> None:
        """An attempt ended: its entry is written, and its figures kept where it is the one that answered."""
        outcome = trial.outcome or "cancelled"
        measured = self._measure(trial, outcome, now)
        cost_usd = cost(trial.candidate.deployment.price, measured)
        self.attempts.append(_entry(self.call, trial, outcome, measured, cost_usd, now))
        self._final, self._measured, self._cost_usd = trial, measured, cost_usd
        if trial.error is not None:
            self.errors.append(trial.error)

    def _measure(self, trial: Trial, outcome: str, now: float) -> Measurement:
        word = "error" if outcome == _FAILED else outcome
        if trial.meter is not None:
            return trial.meter.finish(word, now)
        return Measurement(speed=Speed(quality=word))

    def record(self, now: float) -> GenerationRecord:
        """The finished record."""
        if self._told is not None and (self._told.outcome, self._told.error) == (self.outcome, self.error):
            return self._told
        call, trial, measured = self.call, self._final, self._measured
        deployment = trial.candidate.deployment if trial else None
        wasted = _wasted(self.attempts[:-1])
        return GenerationRecord(
            id=call.id,
            created=iso_utc(self.created),
            surface=call.surface,
            stream=call.stream,
            requested_model=str(call.body.get("model")),
            outcome=self.outcome,
            client_request_id=call.client_request_id,
            key=call.caller.name,
            task=call.task,
            session=call.session,
            route=call.target.route,
            model=deployment.model if deployment else None,
            deployment=deployment.id if deployment else None,
            provider=deployment.provider.name if deployment else None,
            upstream_model=deployment.upstream_model if deployment else None,
            served_model=measured.served_model,
            served_tier=measured.served_tier,
            reason=trial.candidate.reason if trial else None,
            error=self.error,
            finish_reason=measured.finish_reason,
            terminated=measured.terminated,
            client=ClientView(_ms(self.client_ttft_s), _ms(now - call.started)),
            timing=self._timing(trial, measured.timing),
            tokens=measured.tokens,
            chars=measured.chars,
            speed=measured.speed,
            server_clock=measured.server_clock,
            stream_events=measured.stream_events,
            dropped_params=trial.dropped if trial else (),
            cost_usd=self._cost_usd,
            splice=measured.splice,
            cost_wasted_usd=wasted,
            attempts=tuple(self.attempts),
            gaps_s=measured.gaps_s,
            in_flight=trial.in_flight if trial else None,
        )

    def _timing(self, trial: Trial | None, timing: Timing) -> Timing:
        exchange = trial.exchange if trial else None
        return replace(
            timing,
            overhead_ms=_ms(self.overhead_s),
            pool_wait_ms=_ms(exchange.pool_wait_s) if exchange else None,
            connect_ms=_ms(exchange.connect_s) if exchange else None,
        )


def _entry(
    call: Call, trial: Trial, outcome: str, measured: Measurement, cost_usd: float | None, now: float
) -> AttemptRecord:
    deployment, exchange, sent = trial.candidate.deployment, trial.exchange, trial.sent
    arrived = exchange.headers_at if exchange else None
    return AttemptRecord(
        deployment=deployment.id,
        provider=deployment.provider.name,
        model=deployment.model,
        kind=trial.kind,
        outcome=outcome,
        status=exchange.status if exchange and arrived is not None else None,
        error=trial.error.code if trial.error else None,
        start_ms=_ms(trial.began - call.started),
        headers_ms=_ms(arrived - sent) if arrived is not None and sent is not None else None,
        ttft_ms=measured.timing.ttft_ms,
        duration_ms=_ms(now - (sent if sent is not None else trial.began)),
        pool_wait_ms=_ms(exchange.pool_wait_s) if exchange else None,
        connect_ms=_ms(exchange.connect_s) if exchange else None,
        cost_usd=cost_usd,
    )


def _wasted(attempts: Sequence[AttemptRecord]) -> float | None:
    """What the attempts before the last one cost; None where that is not known of one that may be billed."""
    costs = [entry.cost_usd for entry in attempts if entry.cost_usd is not None or _may_be_billed(entry)]
    known = [cost_usd for cost_usd in costs if cost_usd is not None]
    return sum(known, 0.0) if len(known) == len(costs) else None


def _may_be_billed(entry: AttemptRecord) -> bool:
    """It answered, or was at it when we gave it up. A refusal costs nothing, nor does what was never sent."""
    return entry.ttft_ms is not None or (entry.pool_wait_ms is not None and entry.error in _GIVEN_UP)


def cost(price: Price | None, measured: Measurement) -> float | None:
    """US dollars for one answer; None where a price or a count that matters is not known."""
    tokens = measured.tokens
    if price is None or price.input is None or price.output is None:
        return None
    if tokens.input is None or tokens.output is None or tokens.source != "usage":
        return None
    cached = min(tokens.cached or 0, tokens.input)
    cached_price = price.input if price.cached_input is None else price.cached_input
    total = (tokens.input - cached) * price.input + cached * cached_price + tokens.output * price.output
    return total / 1e6


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000.0
