"""`python -m benchmarks.data_plane`: what a proxy costs per paced chunk and per request, the gateway beside nginx."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import kernel, report
from benchmarks.mock import mock_upstream
from benchmarks.native_build import BenchmarkError, Tools, build
from benchmarks.peers import PEERS, Running, Setting
from benchmarks.processes import end_tidily
from benchmarks.rounds import WARM_UP, Round, Size, checked, measure

QUICK = Size(streams=16, request_seconds=1, first_tokens=50)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark. 0: measured; 1: something went wrong, or an answer was wrong."""
    options = _options(arguments)
    screen = Console(stderr=True)
    end_tidily()
    size = QUICK if options.quick else Size()
    try:
        run = measured(options.peers, options.rounds, size, screen)
    except BenchmarkError as error:
        screen.print(f"benchmark failed: {error}", style="red", markup=False)
        return 1
    Console(width=None if sys.stdout.isatty() else 132).print(report.terminal_table(run))
    if options.json:
        options.json.write_text(json.dumps(report.as_json(run), indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(report.markdown(run))
    return 0


def measured(peers: Sequence[str], count: int, size: Size, screen: Console) -> report.Run:
    """Starts everything, runs the rounds in turn (A B C A B C …), stops everything."""
    tools = build()
    rounds: dict[str, list[Round]] = {name: [] for name in peers}
    with ExitStack() as stack:
        started = _started(stack, peers, tools)
        columns = (
            TextColumn("{task.description:<24}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
        )
        progress = stack.enter_context(Progress(*columns, console=screen))
        task = progress.add_task("warm-up", total=count * len(peers) * len(size.loads()) + len(peers))
        for name, peer in started.items():
            with _naming(name):
                for load in WARM_UP:
                    checked(tools.load, peer, load)
            progress.advance(task)
        for number in range(1, count + 1):
            for name, peer in started.items():

                def step(load: str, shown: str = f"{number}/{count} {name}") -> None:
                    progress.update(task, description=f"{shown} {load}", advance=1)

                with _naming(name):
                    rounds[name].append(measure(tools.load, peer, size, step))
    return report.Run(machine=kernel.machine(), size=size, rounds=rounds)


@contextmanager
def _naming(peer: str) -> Iterator[None]:
    """Says whose failure it was."""
    try:
        yield
    except BenchmarkError as error:
        raise BenchmarkError(f"{peer}: {error}") from error


def _started(stack: ExitStack, peers: Sequence[str], tools: Tools) -> dict[str, Running]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
    upstream = stack.enter_context(mock_upstream(tools.upstream))
    started = {}
    for name in peers:
        own = folder / name
        own.mkdir()
        started[name] = stack.enter_context(PEERS[name](Setting(upstream_port=upstream.port, folder=own)))
    return started


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data_plane", description=__doc__)
    parser.add_argument(
        "--peers", type=_peers, default=list(PEERS), metavar="A,B", help=f"of {', '.join(PEERS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds per peer, interleaved (default: 5)")
    parser.add_argument("--quick", action="store_true", help="short rounds: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def _peers(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no peer {name!r}; there are {', '.join(PEERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
