"""One measured request: sent, read to its end, metered by the gateway's own meter."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from gateway import __version__
from gateway.bench.figures import Run, run_of
from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Engine, Exchange, Outbound
from gateway.core.reading import WireError
from gateway.core.types import Provider, Quirks, Timeouts
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS
from gateway.upstream.framers import FRAMERS

MAX_ERROR_BODY = 64 * 1024
# Longer silences are failures: no figure of theirs would mean anything.
FIRST_TOKEN_S = 300.0
SILENCE_S = 60.0
_RECORD = b": gateway "
_OPENAI = DIALECTS["openai"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go. The key is in the provider's credential and in no repr."""

    engine: Engine
    provider: Provider
    timeouts: Timeouts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request. `refused`: the error with which it was refused. `gateway`: one of ours answered."""

    run: Run
    refused: WireError | None = None
    gateway: bool = False


async def measure(target: Target, body: Mapping[str, Any], *, with_record: bool) -> Outcome:
    """Sends one chat request and measures its stream. Failures are outcomes, never raised."""
    provider = target.provider
    try:
        exchange = await target.engine.open(provider, _outbound(provider, body, with_record), target.timeouts)
    except AttemptError as error:
        return Outcome(Run("error", error=f"{error.code}: {error.detail or error.kind.says}"))
    try:
        return await _read(exchange)
    except AttemptError as error:
        return Outcome(Run("error", error=f"{error.code}: {error.detail or error.kind.says}"))
    finally:
        exchange.close()


def _outbound(provider: Provider, body: Mapping[str, Any], with_record: bool) -> Outbound:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": f"speed-gateway-bench/{__version__}",
    }
    if provider.credential.kind == "fixed":
        headers[provider.credential.header] = provider.credential.value
    if with_record:
        headers["x-gateway-meter"] = "1"
    return Outbound("/chat/completions", orjson.dumps(dict(body)), tuple(headers.items()))


async def _read(exchange: Exchange) -> Outcome:
    meter = Meter(exchange.sent)
    if not await exchange.head(exchange.sent + FIRST_TOKEN_S):
        return Outcome(Run("error", error="timeout: no answer"))
    assert exchange.headers_at is not None
    meter.headers(exchange.headers_at, exchange.sent)
    ours = any(name.startswith(b"x-gateway-") for name, _ in exchange.headers)
    if exchange.status != 200:
        return await _refusal(exchange, ours)
    stream = _Stream(meter)
    until = exchange.sent + FIRST_TOKEN_S
    while not stream.over:
        try:
            got = await exchange.read(until)
        except AttemptError as error:
            stream.fail(error)
            break
        if got is None:
            stream.fail(AttemptError("timeout_idle"))
            break
        data, at = got
        stream.take(data, at)
        if meter.first_token is not None:
            until = at + SILENCE_S
    if stream.done:
        exchange.release()
    return Outcome(stream.result(exchange.connect_s), gateway=ours)


async def _refusal(exchange: Exchange, ours: bool) -> Outcome:
    body = b""
    while len(body) < MAX_ERROR_BODY:
        got = await exchange.read(monotonic() + 5.0)
        if got is None or not got[0]:
            break
        body += got[0]
    found = _OPENAI.read_error(exchange.status, body, frozenset())
    says = f"HTTP {exchange.status}, {found.code}" + (f": {found.message[:300]}" if found.message else "")
    return Outcome(Run("error", error=says), refused=found, gateway=ours)


class _Stream:
    """The events of one answer on their way into the meter."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._framer = FRAMERS[_OPENAI.framing]()
        self._read_event = _OPENAI.reader(Quirks())
        self._record: dict[str, Any] | None = None
        self._at = 0.0
        self._cut = False
        self.error: str | None = None
        self.done = False
        self.over = False

    def take(self, data: bytes, at: float) -> None:
        """One read; empty at the end of the body."""
        self._at = at
        for event in self._framer.feed(data) if data else self._framer.flush():
            if event.comments:
                self._meter.comment()
                self._find_record(event.raw)
            if event.data:
                reading = self._read_event(event.name, event.data)
                self._meter.observe(reading, at)
                self.done = self.done or reading.terminal
                if reading.error is not None:
                    self.error = f"{reading.error.code}: {reading.error.message or 'an error inside the stream'}"[:300]
        self.over = self.done or not data or self.error is not None

    def fail(self, error: AttemptError) -> None:
        """The connection failed in the middle."""
        self.error = f"{error.code}: {error.detail or error.kind.says}"
        self._cut = error.code == "cut"

    def _find_record(self, raw: bytes) -> None:
        for line in raw.splitlines():
            if line.startswith(_RECORD):
                try:
                    self._record = orjson.loads(line[len(_RECORD) :])
                except ValueError:
                    self._record = None

    def result(self, connect_s: float | None) -> Run:
        if self.error is not None and not self._cut:
            outcome = "error"
        else:
            outcome = "ok" if self._meter.terminated and not self._cut else "truncated"
        error = self.error or (None if outcome == "ok" else "the stream ended without a finish reason")
        run = run_of(self._meter.finish(outcome, self._at), outcome, error, connect_s)
        if self._record is None:
            return run
        return _with_record(run, self._record)


def _with_record(run: Run, record: dict[str, Any]) -> Run:
    """Of the gateway's record what stands beside our own figures."""
    timing, speed = record.get("timing") or {}, record.get("speed") or {}
    kept = {
        "id": record.get("id"),
        "deployment": record.get("deployment"),
        "ttft_ms": timing.get("ttft_ms"),
        "ttfa_ms": timing.get("ttfa_ms"),
        "overhead_ms": timing.get("overhead_ms"),
        "output_tps": speed.get("output_tps"),
        "quality": speed.get("quality"),
    }
    return replace(run, gateway=kept)
