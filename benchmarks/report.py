"""The report of a run: a table for the terminal, the same in Markdown, and JSON with every round."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from benchmarks.kernel import Machine
from benchmarks.rounds import Round, Size, added, medians, paired, spreads

YARDSTICK = "nginx"
BASE = "direct"
HEADINGS = (
    "",
    "CPU s / M chunks",
    "× nginx",
    "in step",
    "× nginx",
    "CPU s / k requests",
    "× nginx",
    "requests / s",
    "TTFT + ms",
    "delay p50 + ms",
    "delay p99 + ms",
)


@dataclass(frozen=True, slots=True)
class Run:
    """All rounds of all peers."""

    machine: Machine
    size: Size
    rounds: Mapping[str, Sequence[Round]]


def rows(run: Run) -> list[list[str]]:
    """One row a peer. CPU figures carry their spread over the rounds."""
    table = []
    for name, mine in run.rounds.items():
        middle, noise = medians(mine), spreads(mine)
        table.append(
            [
                name,
                _with_noise(middle, noise, "cpu_s_per_million_chunks", ".1f"),
                _shown(_ratio(run, name, "cpu_s_per_million_chunks"), ".2f"),
                _with_noise(middle, noise, "cpu_s_per_million_chunks_in_step", ".1f"),
                _shown(_ratio(run, name, "cpu_s_per_million_chunks_in_step"), ".2f"),
                _with_noise(middle, noise, "cpu_s_per_thousand_requests", ".3f"),
                _shown(_ratio(run, name, "cpu_s_per_thousand_requests"), ".2f"),
                _shown(middle["requests_per_s"], ",.0f"),
                _shown(_added(run, name, "ttft_p50_ms"), ".3f"),
                _shown(_added(run, name, "delay_p50_ms"), ".3f"),
                _shown(_added(run, name, "delay_p99_ms"), ".3f"),
            ]
        )
    return table


def terminal_table(run: Run) -> Table:
    """The rows for the terminal."""
    table = Table(title=f"{_round_count(run)} rounds, medians; ± is half the range of the rounds")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left", min_width=6)
    for row in rows(run):
        table.add_row(*row)
    return table


def markdown(run: Run) -> str:
    """The rows as a Markdown table, with the class of machine below."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "| --- |" + " ---: |" * (len(HEADINGS) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(run)]
    box = run.machine
    lines += [
        "",
        f"{box.cores} cores ({box.cpu}), Linux {box.kernel}, Python {box.python}; {_round_count(run)} rounds.",
    ]
    return "\n".join(lines) + "\n"


def as_json(run: Run) -> dict[str, Any]:
    """Every round, the medians, and the ratios to nginx of the same run."""
    peers = {
        name: {
            "rounds": [asdict(one) for one in mine],
            "median": medians(mine),
            "spread": spreads(mine),
            "ratio_chunks": _ratio(run, name, "cpu_s_per_million_chunks"),
            "ratio_chunks_in_step": _ratio(run, name, "cpu_s_per_million_chunks_in_step"),
            "ratio_requests": _ratio(run, name, "cpu_s_per_thousand_requests"),
            "added_ttft_p50_ms": _added(run, name, "ttft_p50_ms"),
        }
        for name, mine in run.rounds.items()
    }
    return {"machine": asdict(run.machine), "size": asdict(run.size), "peers": peers}


def _ratio(run: Run, name: str, figure: str) -> float | None:
    return paired(run.rounds[name], run.rounds[YARDSTICK], figure) if YARDSTICK in run.rounds else None


def _added(run: Run, name: str, figure: str) -> float | None:
    if name == BASE or BASE not in run.rounds:
        return None
    return added(run.rounds[name], run.rounds[BASE], figure)


def _round_count(run: Run) -> int:
    return len(next(iter(run.rounds.values())))


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _with_noise(middle: Mapping[str, float | None], noise: Mapping[str, float | None], name: str, form: str) -> str:
    value, share = middle[name], noise[name]
    return _shown(value, form) + ("" if value is None or share is None else f" ±{share:.0%}")
