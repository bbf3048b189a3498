"""A whole gateway in front of simulated providers, over real sockets, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import uvloop

from gateway.app import Gateway, Listening, Settings, assemble
from gateway.core.record import GenerationRecord
from gateway.core.types import Catalog, Deployment, Provider, Target, Timeouts
from gateway.limits.keys import KeyRing
from gateway.simulator import Script, SimulatedProvider

HELLO = [{"role": "user", "content": "hello"}]


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test on the event loop the gateway runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@dataclass
class Live:
    """`client` talks to the gateway; `sims` are the providers `p0`, `p1`, … in the order of the plan."""

    gateway: Gateway
    client: httpx.AsyncClient
    sims: list[SimulatedProvider]
    port: int
    listening: Listening

    def chat(self, stream: bool = True, **fields: Any) -> dict[str, Any]:
        return {"model": "m", "messages": HELLO, "stream": stream, **fields}

    async def post(self, stream: bool = True, **fields: Any) -> httpx.Response:
        """One chat completion, read to its end."""
        return await self.client.post("/v1/chat/completions", json=self.chat(stream, **fields))

    async def record(self, response: httpx.Response) -> GenerationRecord:
        return await self.record_of(response.headers["x-request-id"])

    async def record_of(self, generation_id: str) -> GenerationRecord:
        """The record, which is made in the moment after the last byte."""
        for _ in range(2000):
            found = self.gateway.services.records.get(generation_id)
            if found is not None:
                return found
            await asyncio.sleep(0.001)
        raise AssertionError("no record")


def catalog(providers: list[Provider], timeouts: Timeouts, twice: bool = False, **deployment: Any) -> Catalog:
    """One model `m` on all of them (`twice`: with two deployments each), and a model per provider (`only-p0`)."""
    deployments = [
        Deployment(id=f"{entry.name}/m{twin}", provider=entry, model="m", upstream_model="up", **deployment)
        for entry in providers
        for twin in (("", "-twin") if twice else ("",))
    ]
    targets = {"m": Target("m", tuple(deployments), "order", timeouts)}
    for entry in deployments:
        targets[f"only-{entry.provider.name}"] = Target(f"only-{entry.provider.name}", (entry,), "order", timeouts)
    return Catalog(
        targets=targets,
        public=tuple(targets),
        deployments={entry.id: entry for entry in deployments},
        providers={entry.name: entry for entry in providers},
    )


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[Gateway, Listening]]:
    """A gateway that serves until the block is left."""
    gateway = assemble(settings)
    listening = Listening(gateway)
    ready = asyncio.Event()
    serving = asyncio.create_task(listening.run(ready.set))
    await ready.wait()
    try:
        yield gateway, listening
    finally:
        listening.force()
        await serving


@asynccontextmanager
async def live(
    *scripts: Script,
    timeouts: Timeouts | None = None,
    provider: dict[str, Any] | None = None,
    deployment: dict[str, Any] | None = None,
    twice: bool = False,
    **settings: Any,
) -> AsyncIterator[Live]:
    """A gateway with one provider for each script."""
    limits = timeouts or Timeouts(connect_s=2)
    async with AsyncExitStack() as stack:
        sims = [await stack.enter_async_context(SimulatedProvider(script)) for script in scripts]
        providers = [
            Provider(name=f"p{index}", base_url=sim.base_url, **(provider or {})) for index, sim in enumerate(sims)
        ]
        made = Settings(
            catalog=catalog(providers, limits, twice, **(deployment or {})),
            **{"keys": KeyRing(), "port": 0, "drain_s": 1.0, **settings},
        )
        gateway, listening = await stack.enter_async_context(running(made))
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}", timeout=30, trust_env=False)
        )
        yield Live(gateway, client, sims, listening.port, listening)


def fast(**script: Any) -> Script:
    """A provider that does not keep a test waiting."""
    return replace(Script(ttft=0.005, tps=2000, output_tokens=20), **script)
