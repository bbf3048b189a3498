"""`python -m benchmarks.truth`: what the gateway records of simulated streams, against when they were really sent."""

import argparse
import asyncio
import functools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import kernel, truth_check, truth_odd
from benchmarks.native_build import BenchmarkError
from benchmarks.processes import end_tidily
from benchmarks.truth_check import Errors
from benchmarks.truth_client import streams
from benchmarks.truth_setting import SHAPES, Setting, Shape, model_name, provider_name, setting

CONCURRENCIES = (1, 8, 64)
COUNTS = {1: 15, 8: 40, 64: 192}
QUICK_COUNTS = {1: 4, 8: 16, 64: 64}


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape at one concurrency. `histograms`: /metrics agrees to a bucket; `speed_error`: /v1/speed at the worst.

    `unexpected`: samples whose quality is not the one of this shape. `run`: the first that held, or the last.
    `others`: the share of the machine that was busy with something else meanwhile.
    """

    shape: str
    concurrency: int
    streams: int
    unexpected: int
    ttft_ms: Errors
    rate: Errors
    histograms: bool
    speed_error: float
    run: int
    others: float

    @property
    def holds(self) -> bool:
        """Everything in it does."""
        agrees = self.histograms and self.speed_error <= truth_check.QUANTILE_ERROR
        return agrees and not self.unexpected and self.ttft_ms.holds and self.rate.holds


@dataclass(frozen=True, slots=True)
class Load:
    """How a cell is run: streams at once and in all; the first ones begin within `spread_s`."""

    at_once: int
    count: int
    spread_s: float


async def measured(place: Setting, shape: Shape, load: Load, run: int, done: Callable[[], None]) -> Cell:
    """Runs a cell and judges it."""
    model, provider = model_name(shape, load.at_once, run), provider_name(shape)
    busy = Busy()
    sent = await streams(place.port, model, (load.at_once, load.count), load.spread_s, done)
    others = busy.others()
    records = place.records([one.id for one in sent])
    truths = {one["prompt_tokens"]: one for one in place.truths(provider) if one["model"] == model}
    first = min(shape.script.get("tokens_per_chunk", 1), shape.script["output_tokens"])
    pairs = [truth_check.paired(records[one.id], truths[one.prompt_tokens], shape.rate, first) for one in sent]
    deployment = f"{provider}/{model}"
    text, window = place.metrics(), place.speed(deployment)
    ttfts = [pair.ttft_ms for pair in pairs]
    speeds = [pair.rate for pair in pairs if pair.rate is not None and shape.rate == "output_tps"]
    return Cell(
        shape=shape.name,
        concurrency=load.at_once,
        streams=len(sent),
        unexpected=sum(pair.quality != shape.expect for pair in pairs),
        ttft_ms=truth_check.ttft_errors(pairs),
        rate=truth_check.rate_errors(pairs),
        histograms=_histograms_agree(text, deployment, ttfts, speeds),
        speed_error=max(
            truth_check.worst_quantile(window["ttft_ms"], ttfts),
            truth_check.worst_quantile(window["output_tps"], speeds) if speeds else 0.0,
        ),
        run=run,
        others=others,
    )


class Busy:
    """What the machine does beside this program and the processes it started, from now on."""

    def __init__(self) -> None:
        self._began, self._machine, self._own = monotonic(), kernel.busy_seconds(), kernel.cpu_seconds(os.getpid())

    def others(self) -> float:
        """As a share of all its cores."""
        machine = kernel.busy_seconds() - self._machine
        own = kernel.cpu_seconds(os.getpid()) - self._own
        return max(0.0, machine - own) / (monotonic() - self._began) / (os.cpu_count() or 1)


def _histograms_agree(text: str, deployment: str, ttfts: Sequence[float], speeds: Sequence[float]) -> bool:
    ttft = truth_check.histogram(text, "gateway_ttft_seconds", deployment)
    speed = truth_check.histogram(text, "gateway_output_tokens_per_second", deployment)
    seconds = [ms / 1000 for ms in ttfts]
    rounding = truth_check.ROUNDING
    return truth_check.histogram_agrees(ttft, seconds, rounding / 1000) and (
        truth_check.histogram_agrees(speed, speeds, rounding) if speeds else truth_check.total(speed) == 0
    )


async def _run(options: argparse.Namespace, screen: Console) -> tuple[list[Cell], list[truth_odd.Finding]]:
    counts = QUICK_COUNTS if options.quick else COUNTS
    shapes = [shape for shape in SHAPES if options.only is None or options.only in shape.name]
    columns = (TextColumn("{task.description:<40}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    cells: list[Cell] = []
    with (
        tempfile.TemporaryDirectory(prefix="gateway-truth-") as folder,
        setting(shapes, options.concurrency, options.runs, Path(folder)) as place,
        Progress(*columns, TimeElapsedColumn(), console=screen) as progress,
    ):
        task = progress.add_task("", total=len(shapes) * sum(counts[at] for at in options.concurrency))
        for at in options.concurrency:
            for shape in shapes:
                progress.update(task, description=f"{shape.name}, {at} at once")
                load = Load(at, counts[at], 0.0 if options.together else shape.length_s)
                cells.append(await _held(place, shape, load, options.runs, functools.partial(progress.advance, task)))
        progress.update(task, description="what is no speed")
        findings = await truth_odd.findings(place) if options.only is None else []
    return cells, findings


async def _held(place: Setting, shape: Shape, load: Load, runs: int, done: Callable[[], None]) -> Cell:
    """Runs a cell until it holds. What else the machine does can only make a figure worse."""
    for run in range(1, runs):
        cell = await measured(place, shape, load, run, done if run == 1 else _quietly)
        if cell.holds:
            return cell
    return await measured(place, shape, load, runs, done if runs == 1 else _quietly)


def _quietly() -> None:
    """A repetition is no progress."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every figure is within its bar; 1: not, or something went wrong."""
    options = _options(arguments)
    screen = Console(stderr=True)
    end_tidily()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            cells, findings = runner.run(_run(options, screen))
    except BenchmarkError as error:
        screen.print(f"truth test failed: {error}", style="red", markup=False)
        return 1
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(_table(cells))
    if findings:
        console.print(_findings_table(findings))
    if options.json:
        options.json.write_text(json.dumps(_as_json(cells, findings), indent=1) + "\n")
    return 0 if all(cell.holds for cell in cells) and all(one.holds for one in findings) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer streams: a look, not a proof")
    parser.add_argument("--concurrency", type=int, nargs="+", choices=CONCURRENCIES, default=list(CONCURRENCIES))
    parser.add_argument(
        "--together", action="store_true", help="begin all at one moment; else within a stream's length"
    )
    parser.add_argument("--only", metavar="TEXT", help="only shapes with this in their name")
    parser.add_argument("--runs", type=int, default=2, help="how often a cell is run that does not hold (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as JSON")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    return options


def _table(cells: Sequence[Cell]) -> Table:
    bars = truth_check
    table = Table(
        title="Recorded against sent: errors of single streams, and quantiles against the exact ones",
        caption=f"bars: TTFT under {bars.TTFT_MEDIAN_MS:g} and {bars.TTFT_P95_MS:g} ms, speed under "
        f"{bars.RATE_MEDIAN:.0%} and {bars.RATE_P95:.0%}, /metrics to a bucket, "
        f"/v1/speed within {bars.QUANTILE_ERROR:.0%}",
    )
    table.add_column("streams", min_width=26)
    for heading in ("at once", "n"):
        table.add_column(heading, justify="right")
    for heading in ("TTFT ms: median", "p95", "tok/s: median", "p95", "odd", "/metrics", "/v1/speed"):
        table.add_column(heading, justify="right")
    for heading in ("others' CPU", "run", ""):
        table.add_column(heading, justify="right")
    for cell in cells:
        table.add_row(
            *(cell.shape, str(cell.concurrency), str(cell.streams)),
            *(f"{cell.ttft_ms.median:.2f}", f"{cell.ttft_ms.p95:.2f}"),
            *(f"{cell.rate.median:.2%}", f"{cell.rate.p95:.2%}"),
            *(str(cell.unexpected), "agrees" if cell.histograms else "differs", f"{cell.speed_error:.1%}"),
            *(f"{cell.others:.0%}", str(cell.run), _verdict(cell.holds)),
        )
    return table


def _findings_table(findings: Sequence[truth_odd.Finding]) -> Table:
    table = Table("What must not count as speed", "found", "", title="Statistics of a deployment with odd streams")
    for one in findings:
        table.add_row(one.name, one.found, _verdict(one.holds))
    return table


def _verdict(holds: bool) -> str:
    return "pass" if holds else "FAIL"


def _as_json(cells: Sequence[Cell], findings: Sequence[truth_odd.Finding]) -> dict[str, Any]:
    return {
        "machine": asdict(kernel.machine()),
        "cells": [asdict(cell) | {"holds": cell.holds} for cell in cells],
        "findings": [asdict(one) for one in findings],
        "holds": all(cell.holds for cell in cells) and all(one.holds for one in findings),
    }


if __name__ == "__main__":
    sys.exit(main())
