"""`python -m benchmarks.open_streams`: memory per open stream, and what stays when streams end or clients leave."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import kernel
from benchmarks.load import Load, command, read_result
from benchmarks.mock import MockUpstream, mock_upstream
from benchmarks.native_build import BenchmarkError, build
from benchmarks.peers import PEERS, Running, Setting
from benchmarks.processes import end_tidily, stop
from benchmarks.rounds import WARM_UP, checked

POLL_S = 0.05
OPENING_S = 60.0
SETTLED_S = 2.0
# How long after its client left an upstream stream may still be open.
LEAVING_S = 5.0


@dataclass(frozen=True, slots=True)
class Held:
    """One count of open streams. Bytes and sockets of the peer's process tree.

    `idle` is before, `open` with all streams running, `after` when all have ended. `leaving_s`: from the clients'
    leaving until the upstream had no stream of theirs open; None where it never came to that.
    """

    streams: int
    idle_bytes: int
    open_bytes: int
    after_bytes: int
    idle_sockets: int
    open_sockets: int
    after_sockets: int
    ended_whole: int
    leaving_s: float | None
    left_sockets: int


def hold(program: Path, upstream: MockUpstream, peer: Running, streams: int) -> Held:
    """Opens the streams, lets them end; opens them again, and has all clients leave."""
    if peer.pid is None:
        raise BenchmarkError("there is no process to look at")
    # Slow and long: the count matters here, not the pace.
    load = Load(stream=True, concurrency=streams, count=streams, tokens=24, interval_us=500_000, stagger_us=1000)
    idle_bytes, idle_sockets = kernel.resident_bytes(peer.pid), kernel.sockets(peer.pid)
    with _loading(program, peer, load) as loading:
        _await_open(upstream, streams)
        open_bytes, open_sockets = kernel.resident_bytes(peer.pid), kernel.sockets(peer.pid)
        output, _ = loading.communicate(timeout=load.limit_s)
    result = read_result(output.decode())
    if result.errors:
        raise BenchmarkError(f"{result.errors} of {streams} streams went wrong; the first: {result.first_error}")
    time.sleep(SETTLED_S)
    after_bytes, after_sockets = kernel.resident_bytes(peer.pid), kernel.sockets(peer.pid)
    with _loading(program, peer, load) as loading:
        _await_open(upstream, streams)
        loading.kill()
        leaving_s = _until(lambda: upstream.counters().open_streams == 0, LEAVING_S)
    time.sleep(SETTLED_S)
    return Held(
        streams=streams,
        idle_bytes=idle_bytes,
        open_bytes=open_bytes,
        after_bytes=after_bytes,
        idle_sockets=idle_sockets,
        open_sockets=open_sockets,
        after_sockets=after_sockets,
        ended_whole=result.answers,
        leaving_s=leaving_s,
        left_sockets=kernel.sockets(peer.pid),
    )


@contextmanager
def _loading(program: Path, peer: Running, load: Load) -> Iterator[subprocess.Popen[bytes]]:
    words = command(program, peer.port, peer.model, peer.headers, load)
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        stop(process)
        if process.stdout is not None:
            process.stdout.close()


def _await_open(upstream: MockUpstream, streams: int) -> None:
    if _until(lambda: upstream.counters().open_streams >= streams, OPENING_S) is None:
        raise BenchmarkError(f"only {upstream.counters().open_streams} of {streams} streams were open at once")


def _until(condition: Callable[[], bool], within_s: float) -> float | None:
    """Seconds until the condition held."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if condition():
            return time.monotonic() - began
        time.sleep(POLL_S)
    return None


def measured(name: str, counts: Sequence[int], screen: Console) -> list[Held]:
    """All counts on one running peer, least first: what an earlier one leaves behind shows in the next."""
    tools = build()
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder,
        mock_upstream(tools.upstream) as upstream,
        PEERS[name](Setting(upstream_port=upstream.port, folder=Path(folder))) as peer,
    ):
        for load in WARM_UP:
            checked(tools.load, peer, load)
        held = []
        for count in counts:
            screen.print(f"{name}: {count} streams …")
            held.append(hold(tools.load, upstream, peer, count))
        return held


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured and nothing left behind; 1: otherwise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.open_streams", description=__doc__)
    parser.add_argument("--peer", choices=[name for name in PEERS if name != "direct"], default="gateway")
    parser.add_argument(
        "--streams", type=int, nargs="+", default=[1000, 2000], metavar="N", help="(default: 1000 2000)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(arguments)
    screen = Console(stderr=True)
    end_tidily()
    try:
        held = measured(options.peer, sorted(options.streams), screen)
    except BenchmarkError as error:
        screen.print(f"benchmark failed: {error}", style="red", markup=False)
        return 1
    Console().print(_table(options.peer, held))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in held], indent=1) + "\n")
    return 0 if all(one.leaving_s is not None for one in held) else 1


def _table(name: str, held: Sequence[Held]) -> Table:
    table = Table(title=f"{name}: resident memory and sockets with open streams")
    # Memory is compared with the fresh process: a later count finds what an earlier one left to be used again.
    for heading in ("streams", "idle MB", "open MB", "KB a stream", "after MB", "sockets", "upstreams closed after"):
        table.add_column(heading, justify="right")
    for one in held:
        table.add_row(
            str(one.streams),
            f"{one.idle_bytes / 1e6:.1f}",
            f"{one.open_bytes / 1e6:.1f}",
            f"{(one.open_bytes - held[0].idle_bytes) / one.streams / 1e3:.1f}",
            f"{one.after_bytes / 1e6:.1f}",
            f"{one.idle_sockets} → {one.open_sockets} → {one.after_sockets}; left {one.left_sockets}",
            "never" if one.leaving_s is None else f"{one.leaving_s:.2f} s",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
