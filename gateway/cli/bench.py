"""`gateway bench`: how fast a model really answers, straight at a provider or through the gateway."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.bench.figures import Run
from gateway.bench.harness import ModelRuns, Plan, bench
from gateway.bench.request import Target
from gateway.bench.summary import as_json
from gateway.cli.bench_table import tables
from gateway.config.hosts import base_url
from gateway.core.errors import ConfigError
from gateway.core.types import Credential, Provider, Timeouts
from gateway.upstream.engine import HttpEngine

DEFAULT_URL = "http://127.0.0.1:8080/v1"
KEY_VARIABLE = "GATEWAY_BENCH_KEY"
MAX_CONCURRENCY = 512
MAX_RUNS = 1000
_LONGEST_PROMPT = 8_000_000


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `bench` to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure how fast models answer",
        description="Asks each model for the same piece of code: one cold call, which is discarded, then RUNS calls "
        "at temperature 0. Exit code 1 where a model has no run with a sound rate.",
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="as the target names it")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"base URL of an OpenAI-compatible API ({DEFAULT_URL})")
    parser.add_argument("--key", help=f"its key; better in ${KEY_VARIABLE}, where no list of processes shows it")
    parser.add_argument("--runs", type=_whole(MAX_RUNS), default=5, help="measured calls of each model (5)")
    parser.add_argument("--prompt", metavar="FILE", help="a prompt of your own")
    parser.add_argument("--max-tokens", type=_whole(1_000_000), default=256, help="the longest answer asked for (256)")
    parser.add_argument("--concurrency", type=_whole(MAX_CONCURRENCY), default=1, help="calls at once (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every run")
    parser.set_defaults(run=run)


def _whole(largest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text) if text.isdecimal() and len(text) < 10 else 0
        if not 1 <= value <= largest:
            raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {largest}")
        return value

    return number


def run(args: argparse.Namespace) -> int:
    """Exit code 0 where every model has a sound rate, else 1; 2 for wrong usage."""
    plan = Plan(_prompt(args.prompt), args.runs, args.max_tokens, args.concurrency)
    provider = _provider(args.url, args.key or os.environ.get(KEY_VARIABLE))
    results = [ModelRuns(model) for model in dict.fromkeys(args.models)]
    interrupted = False
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measure(provider, results, plan, quiet=args.json))
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted; this is what was measured", file=sys.stderr)
    if args.json:
        print(json.dumps(as_json(provider.base_url, plan, results), indent=2))
    else:
        for table in tables(provider.base_url, plan, results):
            Console().print(table)
    return 1 if interrupted or not all(result.sound for result in results) else 0


async def _measure(provider: Provider, results: list[ModelRuns], plan: Plan, *, quiet: bool) -> None:
    engine = HttpEngine([provider], plan.concurrency)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    # Progress goes to standard error, so that a pipe gets the answer alone.
    console = Console(stderr=True)
    try:
        with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
            total = len(results) * plan.runs * plan.concurrency
            task = bar.add_task("cold call", total=total, latest="")

            def show(model: str, done: int, latest: Run) -> None:
                bar.update(task, description=model, advance=1 if done else 0, latest=_brief(latest))

            await bench(Target(engine, provider, Timeouts()), results, plan, show)
    finally:
        await engine.close()


def _brief(latest: Run) -> str:
    if latest.error is not None:
        return latest.error[:60]
    rate = "no rate" if latest.output_tps is None else f"{latest.output_tps:.0f} tok/s"
    return f"{rate} ({latest.quality})"


def _prompt(file: str | None) -> str:
    if file is None:
        return files("gateway.bench").joinpath("prompt.txt").read_text("utf-8")
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"--prompt {file}: cannot be read as UTF-8 text ({type(error).__name__})"]) from None
    if not text.strip() or len(text) > _LONGEST_PROMPT:
        raise ConfigError([f"--prompt {file}: is empty or longer than {_LONGEST_PROMPT:,} characters"])
    return text


def _provider(url: str, key: str | None) -> Provider:
    try:
        checked = base_url(url)
    except ValueError as error:
        raise ConfigError([f"--url: {error}"]) from None
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise ConfigError(["--key: must be printable ASCII"])
    credential = Credential("fixed", "authorization", f"Bearer {key}") if key else Credential()
    return Provider("bench", checked, credential=credential)
