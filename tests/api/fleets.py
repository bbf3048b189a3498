"""A gateway over made-up deployments, for surfaces that show what is known of them."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx

from gateway.app import Gateway, Settings
from gateway.core.record import AttemptRecord, GenerationRecord, Speed, Timing, Tokens
from gateway.core.types import Catalog, Deployment, Provider, Target, Timeouts
from gateway.limits.keys import KeyRing
from tests.live import running

# Nothing listens there.
HOUSE = Provider(name="house", base_url="http://127.0.0.1:9/v1")
CLOUD = Provider(name="cloud", base_url="http://127.0.0.1:9/v1")


def deployment(provider: Provider, model: str, **fields: Any) -> Deployment:
    return Deployment(
        **{
            "id": f"{provider.name}/{model}",
            "provider": provider,
            "model": model,
            "upstream_model": model,
            **fields,
        }
    )


def catalog(deployments: Iterable[Deployment], *routes: Target) -> Catalog:
    """A model for each public name among the deployments, and the routes."""
    listed = tuple(deployments)
    models = {entry.model: [other for other in listed if other.model == entry.model] for entry in listed}
    targets = {name: Target(name, tuple(served), "order", Timeouts()) for name, served in models.items()}
    targets |= {route.name: route for route in routes}
    return Catalog(
        targets, tuple(targets), {entry.id: entry for entry in listed}, {HOUSE.name: HOUSE, CLOUD.name: CLOUD}
    )


def route(name: str, *deployments: Deployment, **fields: Any) -> Target:
    return Target(name, deployments, "order", Timeouts(), route=name, **fields)


@asynccontextmanager
async def serving(made: Catalog, **settings: Any) -> AsyncIterator[tuple[Gateway, httpx.AsyncClient]]:
    """The gateway and a client of it."""
    values = {"catalog": made, "keys": KeyRing(), "port": 0, "drain_s": 1.0, **settings}
    async with (
        running(Settings(**values)) as (gateway, listening),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}", timeout=30, trust_env=False) as client,
    ):
        yield gateway, client


def answered(
    entry: Deployment, *, ttft_ms: float = 240.0, tps: float = 80.0, cost_usd: float = 0.25
) -> GenerationRecord:
    """A good stream at this deployment."""
    attempt = AttemptRecord(
        deployment=entry.id,
        provider=entry.provider.name,
        model=entry.model,
        kind="primary",
        outcome="ok",
        status=200,
        ttft_ms=ttft_ms,
        duration_ms=ttft_ms + 1000,
        pool_wait_ms=0.0,
        cost_usd=cost_usd,
    )
    return GenerationRecord(
        id="gen-1",
        created="",
        surface="chat.completions",
        stream=True,
        requested_model=entry.model,
        outcome="ok",
        model=entry.model,
        deployment=entry.id,
        provider=entry.provider.name,
        timing=Timing(ttft_ms=ttft_ms, ttfa_ms=ttft_ms, duration_ms=ttft_ms + 1000, max_gap_ms=12.0),
        tokens=Tokens(input=11, cached=0, output=80, source="usage"),
        speed=Speed(output_tps=tps, chars_per_s=4 * tps, quality="ok", weight=0.9, source="client"),
        attempts=(attempt,),
        in_flight=1,
        cost_usd=cost_usd,
    )


def failed(entry: Deployment) -> GenerationRecord:
    """An attempt that the deployment failed."""
    good = answered(entry)
    attempt = replace(good.attempts[0], outcome="failed", error="server_error", status=500, ttft_ms=None, cost_usd=None)
    return replace(
        good, outcome="error", error="server_error", timing=Timing(), speed=Speed(quality="error"), attempts=(attempt,)
    )
