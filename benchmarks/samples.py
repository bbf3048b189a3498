"""What the benchmarks of single parts work on: a catalogue, a chunk, a stream that was measured, its record."""

from dataclasses import replace

from gateway.core.clock import monotonic
from gateway.core.record import AttemptRecord, ClientView, GenerationRecord
from gateway.core.types import Call, Caller, Catalog, Deployment, Needs, Provider, Target, Timeouts
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS

CHUNK = (
    b'data: {"id":"chatcmpl-000000005eed0000","object":"chat.completion.chunk","created":1764500000,"model":"mock-1",'
    b'"choices":[{"index":0,"delta":{"content":" stream"},"finish_reason":null}],'
    b'"obfuscation":"00000000001234567890"}\n\n'
)
USAGE = b'{"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":64,"total_tokens":184}}'
TOKENS = 64


def catalog(count: int) -> Catalog:
    """So many deployments at one provider; the models `m1` and `all` on the first and on all of them."""
    provider = Provider(name="mock", base_url="http://127.0.0.1:1/v1")
    entries = [Deployment(f"mock/d{number}", provider, f"d{number}", f"d{number}") for number in range(count)]
    targets = {
        "m1": Target("m1", tuple(entries[:1]), "order", Timeouts()),
        "all": Target("all", tuple(entries), "order", Timeouts()),
    }
    return Catalog(targets, tuple(targets), {entry.id: entry for entry in entries}, {"mock": provider})


def call(target: Target) -> Call:
    """A request for the target."""
    now = monotonic()
    return Call(
        id="gen-0",
        surface="chat.completions",
        path="/v1/chat/completions",
        body={"model": target.name, "stream": True},
        stream=True,
        target=target,
        caller=Caller(),
        needs=Needs(prompt_tokens=100),
        started=now,
        received=now,
    )


def metered() -> Meter:
    """A meter that saw a whole stream of 64 chunks, 20 ms apart."""
    reading, usage = (DIALECTS["openai"].read_event(None, payload) for payload in (CHUNK[6:-2], USAGE))
    meter = Meter(0.0)
    meter.headers(0.2)
    for number in range(TOKENS):
        meter.observe(reading, 0.2 + number * 0.02)
    meter.observe(usage, 0.2 + TOKENS * 0.02)
    return meter


def record(deployment: Deployment) -> GenerationRecord:
    """The record of such a stream at this deployment."""
    measured = metered().finish("ok", 2.0)
    attempt = AttemptRecord(
        deployment=deployment.id,
        provider=deployment.provider.name,
        model=deployment.model,
        kind="primary",
        outcome="ok",
        status=200,
        start_ms=0.4,
        ttft_ms=measured.timing.ttft_ms,
        duration_ms=measured.timing.duration_ms,
        pool_wait_ms=0.0,
    )
    made = GenerationRecord(
        id="gen-0",
        created="2026-01-01T00:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="m1",
        outcome="ok",
        model=deployment.model,
        deployment=deployment.id,
        provider=deployment.provider.name,
        upstream_model=deployment.upstream_model,
        reason="only_choice",
        client=ClientView(200.0, 1500.0),
        attempts=(attempt,),
    )
    return replace(
        made,
        timing=replace(measured.timing, overhead_ms=0.8),
        tokens=measured.tokens,
        chars=measured.chars,
        speed=measured.speed,
        stream_events=measured.stream_events,
        gaps_s=measured.gaps_s,
    )
