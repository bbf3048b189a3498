"""Catalogs and records for the telemetry tests."""

from dataclasses import replace

from gateway.core.record import AttemptRecord, ClientView, GenerationRecord, Speed, Timing, Tokens
from gateway.core.types import Catalog, Deployment, Provider, Target, Timeouts


def catalog(models: int = 1, providers: int = 2) -> Catalog:
    """Models `m0`, `m1`, … each deployed at the providers `p0`, `p1`, …; `m0` has the alias `nickname`."""
    accounts = {f"p{index}": Provider(f"p{index}", f"http://p{index}") for index in range(providers)}
    deployments: dict[str, Deployment] = {}
    targets: dict[str, Target] = {}
    for model in (f"m{index}" for index in range(models)):
        ours = tuple(Deployment(f"{name}/{model}", account, model, model) for name, account in accounts.items())
        deployments |= {entry.id: entry for entry in ours}
        targets[model] = Target(model, ours, "order", Timeouts())
    public = tuple(targets)
    return Catalog({**targets, "nickname": targets["m0"]}, public, deployments, accounts)


ATTEMPT = AttemptRecord(
    deployment="p0/m0",
    provider="p0",
    model="m0",
    kind="primary",
    outcome="ok",
    status=200,
    pool_wait_ms=0.0,
    connect_ms=3.0,
    cost_usd=0.002,
)
FAILED = replace(ATTEMPT, outcome="failed", status=503, error="overloaded", cost_usd=None)
SECOND = replace(ATTEMPT, deployment="p1/m0", provider="p1", kind="fallback")

RECORD = GenerationRecord(
    id="gen-1",
    created="2026-01-01T00:00:00.000Z",
    surface="chat.completions",
    stream=True,
    requested_model="m0",
    outcome="ok",
    model="m0",
    deployment="p0/m0",
    provider="p0",
    reason="order",
    client=ClientView(ttft_ms=241.0, duration_ms=292.4),
    timing=Timing(overhead_ms=0.8, ttft_ms=240.0, ttfa_ms=250.0, max_gap_ms=1200.0, stalls=1),
    tokens=Tokens(input=3000, cached=1000, output=50, reasoning=None, source="usage"),
    speed=Speed(output_tps=83.3, chars_per_s=416.7, tpot_ms=12.0, quality="ok"),
    attempts=(ATTEMPT,),
    gaps_s=(0.012, 0.012, 1.2),
)
