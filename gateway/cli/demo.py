"""`gateway demo`: a simulated fleet as processes, the gateway in front of it, steady traffic, a live table."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import uvloop
from rich.console import Console
from rich.live import Live

from gateway.api.server import stop_on_signals
from gateway.app import Gateway, Listening, Settings, assemble
from gateway.cli.demo_table import DemoTable, Tally
from gateway.cli.demo_traffic import send_traffic
from gateway.cli.descriptors import raise_file_limit
from gateway.core.errors import ConfigError
from gateway.core.types import Catalog, Deployment, Provider, SagPolicy, Target, Timeouts
from gateway.limits.keys import KeyRing
from gateway.simulator import read_fleet

DEFAULT_PORT = 8080
DEFAULT_RATE = 4.0
MAX_RATE = 200.0
START_S = 20.0
# A line of the table on a terminal that cannot be redrawn.
PLAIN_EVERY_S = 5.0
REFRESH_S = 0.5
ROUTE = "fast"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `demo` to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="a simulated fleet, the gateway in front of it, and a live table",
        description="Starts five simulated providers as processes of their own (kill one and watch), the gateway in "
        "front of them, and steady traffic. Needs no key and no network. The answers are invented.",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="the gateway's port (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=DEFAULT_RATE, help="requests per second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="stop after so long (default: until Ctrl-C)")
    parser.add_argument("--traffic", metavar="URL", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when it was stopped, 1 when a part could not be started."""
    if not 0 < args.rate <= MAX_RATE:
        raise ConfigError([f"--rate: must be over 0 and at most {MAX_RATE:g} requests per second"])
    if not 0 <= args.port <= 65535:
        raise ConfigError(["--port: must be 0 to 65535"])
    if args.seconds is not None and args.seconds <= 0:
        raise ConfigError(["--seconds: must be over 0"])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if args.traffic:
            runner.run(send_traffic(args.traffic, ROUTE, args.rate))
            return 0
        return runner.run(_demo(args))


@dataclass(frozen=True, slots=True)
class Child:
    """One simulated provider's process."""

    name: str
    base_url: str
    process: asyncio.subprocess.Process


async def _demo(args: argparse.Namespace) -> int:
    console = Console()
    names = [script.name for script in read_fleet()]
    async with AsyncExitStack() as stack:
        console.print(f"starting {len(names)} simulated providers …")
        try:
            children = await asyncio.gather(*(stack.enter_async_context(_provider(name)) for name in names))
        except (OSError, TimeoutError, ValueError) as error:
            console.print(f"a simulated provider did not start: {error!r}")
            return 1
        tally = Tally()
        gateway = assemble(_settings(children, args.port), further=(tally,))
        listening = Listening(gateway)
        with stop_on_signals(listening.stop, listening.force):
            await _serve(
                gateway,
                listening,
                DemoTable(gateway, tally, {child.name: child.process for child in children}),
                (console, args),
            )
    return 0


async def _serve(
    gateway: Gateway, listening: Listening, table: DemoTable, way: tuple[Console, argparse.Namespace]
) -> None:
    """Runs everything until a stop."""
    console, args = way
    ready = asyncio.Event()
    serving = asyncio.create_task(listening.run(ready.set))
    await ready.wait()
    url = f"http://127.0.0.1:{listening.port}/v1"
    _introduce(console, url)
    if args.seconds is not None:
        asyncio.get_running_loop().call_later(args.seconds, listening.stop)
    async with _traffic(url, args.rate):
        showing = asyncio.create_task(_show(console, table))
        await serving
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
    console.print(table.summary())


def _introduce(console: Console, url: str) -> None:
    console.print(f"\n[bold]base_url[/bold]  {url}   (any key; model [bold]{ROUTE}[/bold], or one provider's name)")
    body = json.dumps({"model": ROUTE, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    console.print(f"curl -N {url}/chat/completions -H 'content-type: application/json' \\", soft_wrap=True)
    console.print(f"  -d '{body}'", soft_wrap=True, highlight=False)
    console.print("[dim]moth sags, wasp fails, both on a schedule; kill a provider by its pid. Ctrl-C stops.[/dim]\n")


async def _show(console: Console, table: DemoTable) -> None:
    """The live table; on what is no terminal a table every few seconds."""
    if not console.is_terminal:
        while True:
            await asyncio.sleep(PLAIN_EVERY_S)
            console.print(table.render())
    with Live(table.render(), console=console, auto_refresh=False, transient=True) as live:
        while True:
            await asyncio.sleep(REFRESH_S)
            live.update(table.render(), refresh=True)


def _settings(children: list[Child], port: int) -> Settings:
    """A route over the whole fleet by equal weights, and each provider under its own name."""
    providers = {child.name: Provider(name=child.name, base_url=child.base_url) for child in children}
    deployments = tuple(
        Deployment(id=f"{name}/demo", provider=entry, model="demo", upstream_model="demo")
        for name, entry in providers.items()
    )
    timeouts = Timeouts(connect_s=1.0, ttft_s=3.0)
    targets = {
        ROUTE: Target(ROUTE, deployments, "weighted", timeouts, route=ROUTE, description="the whole fleet"),
        **{entry.provider.name: Target(entry.provider.name, (entry,), "order", timeouts) for entry in deployments},
    }
    return Settings(
        catalog=Catalog(targets, tuple(targets), {entry.id: entry for entry in deployments}, providers),
        keys=KeyRing(),
        timeouts=timeouts,
        sag=SagPolicy(dwell_s=5.0),
        port=port,
        drain_s=2.0,
    )


@asynccontextmanager
async def _provider(name: str) -> AsyncIterator[Child]:
    """A provider's process, from its first word to its end."""
    words = [sys.executable, "-m", "gateway", "fleet", "--only", name, "--json"]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
        yield Child(name, json.loads(line)["providers"][0]["base_url"], process)
    finally:
        await _end(process)


@asynccontextmanager
async def _traffic(url: str, rate: float) -> AsyncIterator[None]:
    """The client is a process of its own: it must not take time from the loop that measures."""
    words = [sys.executable, "-m", "gateway", "demo", "--traffic", url, "--rate", str(rate)]
    process = await asyncio.create_subprocess_exec(*words, start_new_session=True)
    try:
        yield
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
