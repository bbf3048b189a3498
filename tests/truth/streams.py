"""The simulator's own streams, played on a clock that does not exist: every byte at exactly its moment, no socket."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.record import AttemptRecord, GenerationRecord, Measurement
from gateway.core.types import Quirks
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS
from gateway.simulator import Script, Stats
from gateway.simulator.connection import Request
from gateway.simulator.service import Service
from gateway.upstream.sse import Framer

MODEL = "m"
DEPLOYMENT = "p0/m0"


@dataclass(frozen=True, slots=True)
class Step:
    """One write: seconds after the request was read, the bytes of the event stream, the tokens in them."""

    at: float
    data: bytes
    tokens: int


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened. Seconds; tokens per second after the first write that had any."""

    ttft: float
    tps: float


class Provider:
    """A simulated provider without a socket."""

    def __init__(self, script: Script) -> None:
        self._service = Service(lambda: script, Stats(), lambda request: (_ for _ in ()).throw(AssertionError(request)))

    def stream(self, prompt_tokens: int = 10, **fields: Any) -> list[Step]:
        """The writes of one answer, in the order and at the moments of its timeline, without the HTTP around them."""
        messages = [{"role": "user", "content": "x" * (4 * prompt_tokens)}]
        options = {"include_usage": True}
        body = {"model": MODEL, "stream": True, "messages": messages, "stream_options": options, **fields}
        headers = (("content-type", "application/json"),)
        # Without chunked coding the body of the answer is the event stream itself.
        request = Request("POST", "/v1/chat/completions", headers, json.dumps(body).encode(), 0.0, True, False)
        head, *steps = [Step(*step) for step in self._service.reply(request).timeline]
        assert head.data.startswith(b"HTTP/1.1 200")
        return steps


def truth_of(steps: Sequence[Step]) -> Truth:
    """From the moments of the writes that bear tokens."""
    told = [step for step in steps if step.tokens]
    first, last = told[0], told[-1]
    after = sum(step.tokens for step in told) - first.tokens
    return Truth(first.at, after / (last.at - first.at) if last.at > first.at else 0.0)


def measured(steps: Sequence[Step], t0: float = 1000.0) -> Measurement:
    """What the gateway's own parts make of it: framing, dialect and meter, each read stamped with its exact moment."""
    framer, read, meter = Framer(), DIALECTS["openai"].reader(Quirks()), Meter(t0)
    meter.headers(t0 + steps[0].at)
    for step in steps:
        for event in framer.feed(step.data):
            if event.data is not None:
                meter.observe(read(event.name, event.data), t0 + step.at)
    return meter.finish("ok", t0 + steps[-1].at)


def torn(steps: Sequence[Step], sizes: Iterator[int]) -> list[Step]:
    """The same bytes in smaller reads, as a network tears them: all pieces of a write come at its moment."""
    pieces = []
    for step in steps:
        at = 0
        while at < len(step.data):
            end = min(len(step.data), at + next(sizes))
            pieces.append(Step(step.at, step.data[at:end], 0))
            at = end
    return pieces


def record_of(measurement: Measurement, number: int = 0) -> GenerationRecord:
    """The record of a request that ended well."""
    timing = measurement.timing
    attempt = AttemptRecord(
        deployment=DEPLOYMENT,
        provider="p0",
        model="m0",
        kind="primary",
        outcome="ok",
        status=200,
        headers_ms=timing.headers_ms,
        ttft_ms=timing.ttft_ms,
        duration_ms=timing.duration_ms,
        pool_wait_ms=0.0,
    )
    return GenerationRecord(
        id=f"gen-{number}",
        created="2026-01-01T00:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="m0",
        outcome="ok",
        model="m0",
        deployment=DEPLOYMENT,
        provider="p0",
        reason="order",
        timing=timing,
        tokens=measurement.tokens,
        chars=measurement.chars,
        speed=measurement.speed,
        stream_events=measurement.stream_events,
        gaps_s=measurement.gaps_s,
        finish_reason=measurement.finish_reason,
        terminated=measurement.terminated,
        attempts=(attempt,),
    )
