"""One attempt at one deployment: send, wait for the head, judge the status, then relay or collect the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.core.clock import monotonic, utc_now
from gateway.core.errors import AttemptError
from gateway.core.ports import Dialect, Engine, Exchange, RunningStreams, Sink, StreamMeter
from gateway.core.reading import WireError
from gateway.core.types import Call, Candidate, Deployment, Provider
from gateway.dispatch.answers import (
    STREAM_HEADERS,
    error_body,
    error_event,
    meter_comment,
    overhead_header,
    passed_on,
    routing_headers,
)
from gateway.dispatch.deadlines import Deadlines, Pulse
from gateway.dispatch.journey import Journey, Trial
from gateway.dispatch.relay import Relay
from gateway.dispatch.upstream_request import outbound
from gateway.upstream.framers import FRAMERS
from gateway.upstream.retry_after import retry_after_s

MAX_ERROR_BODY = 256 * 1024
MAX_ANSWER = 64 * 1024 * 1024
# An error body that trickles in must not hold the next attempt up.
ERROR_BODY_S = 2.0
# Of configured headers; a shorter value is a word, and no text is to be mangled for it.
SHORTEST_SECRET = 12


@dataclass(frozen=True, slots=True)
class MeterStart:
    """What a meter is told at the start: its deployment, t0, the prompt estimate, whether it is a later attempt, the
    speed tier that was asked for, and whether tools may be called."""

    deployment: Deployment
    sent: float
    prompt_tokens: int
    retry: bool
    asked_tier: str | None = None
    tools: bool = False


NewMeter = Callable[[MeterStart], StreamMeter]


class Attempts:
    """Makes attempts. Holds what they share; keeps nothing of any one of them."""

    def __init__(
        self, engine: Engine, dialects: Mapping[str, Dialect], new_meter: NewMeter, running: RunningStreams
    ) -> None:
        self._engine = engine
        self._dialects = dialects
        self._new_meter = new_meter
        self._running = running

    async def run(self, journey: Journey, trial: Trial, sink: Sink, pulse: Pulse, *, last: bool) -> None:
        """Raises AttemptError while another deployment may still answer. Afterwards `trial.outcome` is set."""
        call, deployment = journey.call, trial.candidate.deployment
        dialect = self._dialects[deployment.provider.dialect]
        deadlines = Deadlines(call, pulse, last=last)
        sent = outbound(call, deployment, dialect)
        request, trial.dropped = sent.request, sent.dropped
        limits = call.target.timeouts
        longest_s = limits.pool_s + (deployment.provider.connect_s or limits.connect_s) + limits.tls_s
        exchange = await deadlines.bound(self._engine.open(deployment.provider, request, limits), longest_s)
        trial.exchange = exchange
        needs = call.needs
        start = MeterStart(deployment, exchange.sent, needs.prompt_tokens, trial.retry, sent.tier, needs.tools)
        trial.meter = meter = self._new_meter(start)
        if call.stream:
            self._running.began(deployment.id, meter)
        await _head(exchange, deadlines)
        journey.count_sending(trial)
        assert exchange.headers_at is not None
        meter.headers(exchange.headers_at, exchange.sent)
        if not 200 <= exchange.status < 300:
            raise await _refusal(exchange, dialect, deployment)
        if call.stream:
            await self._stream(journey, trial, sink, deadlines, pulse)
        else:
            await _whole(journey, trial, sink, dialect, deadlines)

    async def _stream(self, journey: Journey, trial: Trial, sink: Sink, deadlines: Deadlines, pulse: Pulse) -> None:
        exchange, meter = trial.exchange, trial.meter
        assert exchange is not None
        assert meter is not None
        provider = trial.candidate.deployment.provider
        dialect = self._dialects[provider.dialect]
        await _check_stream(exchange, dialect, deadlines, provider)
        wire = FRAMERS[dialect.framing](), dialect.reader(provider.quirks)
        relay = Relay(exchange, meter, wire, deadlines, pulse)
        tried = len(journey.attempts) + 1

        def head() -> list[tuple[bytes, bytes]]:
            journey.client_ttft_s = monotonic() - journey.call.started
            trial.commit()
            return [
                *STREAM_HEADERS,
                *routing_headers(journey.call.id, trial.candidate, tried),
                *passed_on(exchange.headers),
            ]

        def told(outcome: str) -> bytes:
            journey.overhead_s += relay.passing_s
            return meter_comment(journey.tell(trial, outcome, monotonic())) if journey.call.meter else b""

        await relay.run(sink, head, keep_usage=wants_usage(journey.call), footer=lambda: told("ok"))
        if relay.error is None:
            trial.outcome = "ok"
            exchange.release()
        else:
            trial.error = relay.error
            trial.outcome = "truncated" if relay.error.code == "cut" else "error"
            exchange.close()
            if relay.error.wire is not None:
                scrubbed(relay.error.wire, provider)
            await sink.write(told(trial.outcome) + error_event(_late_error(relay.error, trial.candidate)))
        await sink.end()


async def _head(exchange: Exchange, deadlines: Deadlines) -> None:
    deadlines.start(exchange.sent)
    while not await exchange.head(deadlines.until()):
        deadlines.start(exchange.sent)
        await deadlines.passed()
    deadlines.start(exchange.sent)


async def _refusal(exchange: Exchange, dialect: Dialect, deployment: Deployment) -> AttemptError:
    """The error an answer with another status than 2xx stands for."""
    try:
        body = await read_all(exchange, MAX_ERROR_BODY, monotonic() + ERROR_BODY_S)
    except AttemptError:
        body = None  # the status has already said it
    status = exchange.status
    comes_back_s = retry_after_s(exchange.headers, utc_now())
    if body is not None:
        exchange.release()
    if status < 400:
        return AttemptError("not_found", "answers with a redirect, which is not followed", status=status)
    wire = scrubbed(dialect.read_error(status, body or b"", deployment.provider.failover_on), deployment.provider)
    return AttemptError(wire.code, status=status, retry_after_s=comes_back_s, wire=wire)


def _check_plain(exchange: Exchange) -> bytes:
    """The media type, of an answer that is not compressed."""
    kinds = {name: value.lower() for name, value in exchange.headers if name in (b"content-type", b"content-encoding")}
    if kinds.get(b"content-encoding", b"identity") != b"identity":
        raise AttemptError("malformed", "compressed its answer although asked not to", status=exchange.status)
    return kinds.get(b"content-type", b"")


async def _check_stream(exchange: Exchange, dialect: Dialect, deadlines: Deadlines, provider: Provider) -> None:
    """Some providers answer a refusal with status 200 and plain JSON where a stream was asked for."""
    media_type = _check_plain(exchange)
    if media_type.startswith(b"text/html"):
        raise AttemptError("malformed", "sent a web page", status=exchange.status)
    if not media_type.startswith(b"application/json"):
        return
    body = await read_all(exchange, MAX_ERROR_BODY, min(deadlines.until(), monotonic() + ERROR_BODY_S))
    reading = dialect.read_body(body or b"")
    if reading.error is not None:
        raise AttemptError(reading.error.code, status=exchange.status, wire=scrubbed(reading.error, provider))
    raise AttemptError("malformed", "did not stream its answer", status=exchange.status)


async def _whole(journey: Journey, trial: Trial, sink: Sink, dialect: Dialect, deadlines: Deadlines) -> None:
    """A plain answer: collected, judged, passed on byte for byte."""
    exchange, meter, call = trial.exchange, trial.meter, journey.call
    assert exchange is not None
    assert meter is not None
    _check_plain(exchange)
    body = await read_all(exchange, MAX_ANSWER, deadlines.until())
    at = monotonic()
    if body is None:
        raise AttemptError("timeout_total", status=exchange.status)
    reading = dialect.read_body(body)
    if reading.error is not None:
        provider = trial.candidate.deployment.provider
        raise AttemptError(reading.error.code, status=exchange.status, wire=scrubbed(reading.error, provider))
    if reading.bad:
        raise AttemptError("malformed", "sent an answer that is no JSON object", status=exchange.status)
    meter.whole(reading, at)
    bears = reading.content or reading.reasoning or reading.tool or reading.unknown_delta or reading.repeat
    if not bears and reading.finish is None and not (reading.usage and reading.usage.output):
        raise AttemptError("empty", status=exchange.status)
    trial.commit()
    trial.outcome = "ok"
    exchange.release()
    journey.overhead_s += monotonic() - at
    await sink.start(
        200,
        [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            overhead_header(journey.overhead_s),
            *routing_headers(call.id, trial.candidate, len(journey.attempts) + 1),
            *passed_on(exchange.headers),
        ],
    )
    await sink.write(body)
    await sink.end()


def scrubbed(wire: WireError, provider: Provider) -> WireError:
    """An upstream's words without the gateway's own credential or configured headers, should they quote them."""
    secrets = [provider.credential.value.rpartition(" ")[2]]
    secrets += [value for _, value in provider.headers if len(value) >= SHORTEST_SECRET]
    for secret in filter(None, secrets):
        wire.message = wire.message and wire.message.replace(secret, "[key]")
        wire.param = wire.param and wire.param.replace(secret, "[key]")
        if isinstance(wire.wire_code, str):
            wire.wire_code = wire.wire_code.replace(secret, "[key]")
    return wire


async def read_all(exchange: Exchange, limit: int, until: float) -> bytes | None:
    """The whole body; None when it is not there by `until`. Raises AttemptError `malformed` over `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    while True:
        got = await exchange.read(until)
        if got is None:
            return None
        if not got[0]:
            return b"".join(parts)
        size += len(got[0])
        if size > limit:
            raise AttemptError("malformed", f"sent an answer over {limit // 1024} KB", status=exchange.status)
        parts.append(got[0])


def wants_usage(call: Call) -> bool:
    """Whether the client asked for the usage chunk itself."""
    options = call.body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _late_error(error: AttemptError, candidate: Candidate) -> bytes:
    says = error.detail or error.kind.says
    message = f"{candidate.deployment.id} {says}; the answer is incomplete"
    status = error.kind.status if error.kind.status != 400 else 502
    return error_body(status, message, code=error.code)
