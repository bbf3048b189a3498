"""`python -m benchmarks.micro`: what observing costs, against its bars and beside prometheus-client in the same run."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import kernel
from benchmarks.parts import chunk_parts, observation_parts, request_parts, scrape_parts
from benchmarks.scrape_delay import BAR_MS, ScrapeDelay, scrape_delay
from benchmarks.timing import Timed, timed

GROUPS = {
    "a chunk of a stream": chunk_parts,
    "an observation": observation_parts,
    "a request": request_parts,
    "a scrape": scrape_parts,
}
# A scrape by prometheus-client takes a second: fewer rounds do.
SCRAPE_ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures every part and prints the table. Exit code 1 with `--strict` where a median misses its bar."""
    options = _options(arguments)
    results: dict[str, list[Timed]] = {}
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("parts", total=len(GROUPS) + 1)
        for name, parts in GROUPS.items():
            rounds = min(options.rounds, SCRAPE_ROUNDS) if parts is scrape_parts else options.rounds
            results[name] = timed(parts(), rounds)
            progress.advance(task)
        delay = scrape_delay(options.scrapes)
        progress.advance(task)
    console = Console(width=None if sys.stdout.isatty() else 132)
    console.print(_table(results))
    console.print(_delay_table(delay))
    if options.json:
        options.json.write_text(json.dumps(_as_json(results, delay), indent=1) + "\n")
    missed = not delay.holds or any(one.holds is False for group in results.values() for one in group)
    return 1 if options.strict and missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="batches of 20 ms for each part (default: 15)")
    parser.add_argument(
        "--scrapes", type=int, default=20, help="scrapes during which the loop is watched (default: 20)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a median misses its bar")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.scrapes < 1:
        parser.error("--rounds and --scrapes must be at least 1")
    return options


def _table(results: Mapping[str, Sequence[Timed]]) -> Table:
    table = Table(title="CPU time of one call with warm caches, µs; the median of the rounds and the least of them")
    table.add_column("part")
    for heading in ("median", "least", "bar", "holds", "× prometheus-client"):
        table.add_column(heading, justify="right")
    for group in results.values():
        for one in group:
            bar = "" if one.bar_us is None else f"{one.bar_us:g}"
            ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
            table.add_row(one.name, _shown(one.us), _shown(one.least_us), bar, _verdict(one), ratio)
        table.add_section()
    return table


def _verdict(one: Timed) -> str:
    """A machine that does other work at the same time runs everything slower: then the least says more."""
    if one.bar_us is None:
        return ""
    return "yes" if one.holds else "least" if one.least_us < one.bar_us else "no"


def _shown(us: float) -> str:
    return f"{us:,.0f}" if us >= 1000 else f"{us:.3g}"


def _delay_table(delay: ScrapeDelay) -> Table:
    table = Table(title=f"Delay of a 1 ms ticker, ms; {delay.scrapes} scrapes of {delay.lines:,} series, all moved")
    for heading in ("", "ticks", "p50", "p99", "max", "bar (p99)", "holds"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, late in (("within scrapes", delay.scraping), ("in between", delay.resting)):
        scraping = late is delay.scraping
        table.add_row(
            *(name, str(late.ticks), f"{late.p50_ms:.2f}", f"{late.p99_ms:.2f}", f"{late.max_ms:.2f}"),
            f"{BAR_MS:g}" if scraping else "",
            ("yes" if delay.holds else "no") if scraping else "",
        )
    return table


def _as_json(results: Mapping[str, Sequence[Timed]], delay: ScrapeDelay) -> dict[str, object]:
    groups = {name: [asdict(one) | {"holds": one.holds} for one in group] for name, group in results.items()}
    return {
        "machine": asdict(kernel.machine()),
        "parts": groups,
        "scrape": asdict(delay) | {"bar_ms": BAR_MS, "holds": delay.holds},
    }


if __name__ == "__main__":
    sys.exit(main())
