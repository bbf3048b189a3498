"""One request through its plan: attempt, commit or move on, answer, record."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError, RequestError
from gateway.core.ports import HealthBook, Listener, Planner, RunningStreams, Sink
from gateway.core.record import GenerationRecord
from gateway.core.types import Call, Candidate, Plan
from gateway.dispatch.answers import (
    Headers,
    describe,
    error_body,
    error_event,
    least_retry_after,
    meter_comment,
    most_useful,
    overhead_header,
    routing_headers,
)
from gateway.dispatch.attempt import Attempts
from gateway.dispatch.deadlines import Pulse
from gateway.dispatch.journey import Journey, Trial
from gateway.dispatch.verdicts import Verdicts

log = logging.getLogger("gateway.dispatch")

# A failure that came faster is worth one more try at the same place, where there is no other.
QUICK_FAILURE_S = 0.5
RETRY_WITHIN_S = 0.25
# The failure that asks whether anything would be left to move on to.
_LATE = AttemptError("timeout_ttft")


class Gauges(Protocol):
    """What is under way right now."""

    def request_began(self, model: str) -> None: ...

    def request_ended(self, model: str) -> None: ...

    def attempt_began(self, deployment_id: str) -> int:
        """Returns how many are under way there now, this one included."""

    def attempt_ended(self, deployment_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Serves calls. `listeners` hear of every finished request; `keepalive_after_s` is the longest silence."""

    planner: Planner
    health: HealthBook
    attempts: Attempts
    gauges: Gauges
    listeners: Sequence[Listener]
    running: RunningStreams
    keepalive_after_s: float
    rng: random.Random

    async def run(self, call: Call, sink: Sink) -> None:
        """Answers the call in every case but one: when the client left, CancelledError passes through."""
        journey = Journey(call)
        verdicts = Verdicts(self.health, call.id)
        self.gauges.request_began(call.target.name)
        try:
            await self._drive(journey, verdicts, sink)
        except asyncio.CancelledError:
            # A stop of the gateway is no departure of the client, which is told so.
            journey.outcome, journey.error = ("cancelled", None) if sink.left else ("error", "overloaded")
            raise
        except RequestError as error:
            journey.error = error.code
            await _refuse(journey, sink, error)
        except Exception:
            # The edge: a fault of ours must not take the connection, the gauges or the record with it.
            log.exception("request %s failed inside the gateway", call.id)
            journey.outcome, journey.error = "error", "internal"
            await _tell(journey, sink, 500, error_body(500, "internal error", code="internal"), [])
        finally:
            now = monotonic()
            verdicts.settle(now)
            self.gauges.request_ended(call.target.name)
            record = journey.record(now)
            for listener in self.listeners:
                listener.record(record)

    def refused(self, record: GenerationRecord) -> None:
        """A request was refused before it became a call; it is counted and kept all the same."""
        for listener in self.listeners:
            listener.record(record)

    async def _drive(self, journey: Journey, verdicts: Verdicts, sink: Sink) -> None:
        plan = self.planner.plan(journey.call, monotonic())
        if not plan.candidates:
            raise _no_candidate(journey.call, plan)
        pulse = Pulse(journey.call, sink, self.keepalive_after_s)
        queue = list(plan.candidates)
        retried = False
        while queue:
            candidate = queue.pop(0)
            began = monotonic()
            last = not _still_worth_trying(queue, candidate, _LATE)
            error = await self._try(journey, verdicts, candidate, (sink, pulse, last))
            if error is None:
                return
            if not error.kind.moves_on or error.code == "timeout_total":
                break
            queue = _still_worth_trying(queue, candidate, error)
            if not queue and not retried and error.kind.transient and monotonic() - began < QUICK_FAILURE_S:
                retried = True
                await asyncio.sleep(self.rng.uniform(0, RETRY_WITHIN_S))
                queue = [candidate]
        await _tell_failure(journey, sink)

    async def _try(
        self, journey: Journey, verdicts: Verdicts, candidate: Candidate, way: tuple[Sink, Pulse, bool]
    ) -> AttemptError | None:
        """One attempt with everything that must happen however it ends. None: the client has its answer."""
        deployment = candidate.deployment
        trial = journey.begin(candidate, monotonic())
        trial.on_commit = lambda: verdicts.committed(candidate, monotonic())
        self.health.admit(deployment, trial.began)
        trial.in_flight = self.gauges.attempt_began(deployment.id)
        sink, pulse, last = way
        try:
            await self.attempts.run(journey, trial, sink, pulse, last=last)
        except AttemptError as error:
            trial.outcome, trial.error = "failed", error
        finally:
            if trial.exchange is not None:
                trial.exchange.close()
            self.gauges.attempt_ended(deployment.id)
            if trial.meter is not None:
                self.running.ended(deployment.id, trial.meter)
            self._settle(journey, verdicts, trial)
        if trial.committed:
            journey.outcome = trial.outcome or "error"
            journey.error = trial.error.code if trial.error else None
            return None
        return trial.error

    def _settle(self, journey: Journey, verdicts: Verdicts, trial: Trial) -> None:
        now = monotonic()
        journey.close(trial, now)
        deployment = trial.candidate.deployment
        if trial.error is not None:
            verdicts.failed(deployment, trial.error, now)
        elif trial.outcome == "ok":
            verdicts.answered(deployment, now)
        else:
            verdicts.left(deployment, now)


def _still_worth_trying(queue: Sequence[Candidate], failed: Candidate, error: AttemptError) -> list[Candidate]:
    """What is left of a plan after a failure."""
    if error.code == "context_length":
        window = failed.deployment.context
        return [next_ for next_ in queue if _larger(next_.deployment.context, window)]
    if error.code == "timeout_ttft":
        # A provider that let us wait once is not asked to do it again.
        return [next_ for next_ in queue if next_.deployment.provider.name != failed.deployment.provider.name]
    return list(queue)


def _larger(window: int | None, than: int | None) -> bool:
    return window is not None and than is not None and window > than


def _no_candidate(call: Call, plan: Plan) -> RequestError:
    reasons = sorted({f"{entry.deployment.id}: {entry.reason}" for entry in plan.dropped})
    message = f"no deployment of {call.target.name!r} can take this request ({'; '.join(reasons[:10])})"
    code = "context_length" if reasons and all("context" in reason for reason in reasons) else "bad_request"
    return RequestError(400, message, code=code, param="model")


async def _tell_failure(journey: Journey, sink: Sink) -> None:
    """Every attempt failed: the most useful of the failures, and when to come back."""
    error = most_useful(journey.errors)
    journey.error = error.code
    tried = len(journey.attempts)
    at = journey.attempts[len(journey.errors) - 1 - journey.errors[::-1].index(error)]
    wire = error.wire if error.kind.status == 400 else None
    body = error_body(
        error.kind.status,
        describe(error, at.deployment, tried),
        code=error.code if wire is None or wire.wire_code is None else str(wire.wire_code),
        param=wire.param if wire else None,
        attempts=journey.attempts,
    )
    await _tell(journey, sink, error.kind.status, body, least_retry_after(journey.errors))


async def _refuse(journey: Journey, sink: Sink, error: RequestError) -> None:
    body = error_body(error.status, error.message, code=error.code, param=error.param)
    await _tell(journey, sink, error.status, body, [])


async def _tell(journey: Journey, sink: Sink, status: int, body: bytes, extra: Headers) -> None:
    """An error as the answer, or inside the stream where that has begun."""
    if sink.started:
        told = meter_comment(journey.tell_failure(monotonic())) if journey.call.meter else b""
        await sink.write(told + error_event(body))
        await sink.end()
        return
    candidate = journey.last_candidate
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        overhead_header(journey.overhead_s),
        *routing_headers(journey.call.id, candidate, len(journey.attempts)),
        *extra,
    ]
    await sink.start(status, headers)
    await sink.write(body)
    await sink.end()
