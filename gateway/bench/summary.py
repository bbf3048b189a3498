"""Medians and spreads of a model's runs. A failed run is in none of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from gateway.bench.figures import Run
from gateway.bench.harness import ModelRuns, Plan

FIGURES = (
    *("ttft_ms", "ttfa_ms", "output_tps", "answer_tps", "chars_per_s", "output_tokens", "answer_500_ms"),
    *("duration_ms", "max_gap_ms"),
)
FORMULAS = ("inter_token", "per_token_to_end", "end_to_end", "chunks")
GATEWAY = ("ttft_ms", "output_tps", "overhead_ms")


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the values that are known: the median, the least and the largest, and how many there are."""

    median: float
    least: float
    largest: float
    count: int


def spread(values: Iterable[float | None]) -> Spread | None:
    """None where nothing is known."""
    known = [value for value in values if value is not None]
    return Spread(median(known), min(known), max(known), len(known)) if known else None


@dataclass(frozen=True, slots=True)
class Summary:
    """One model. The figures are of runs that ended well; the formulas of those whose rate is sound."""

    model: str
    runs: int
    sound: int
    figures: Mapping[str, Spread | None]
    formulas: Mapping[str, Spread | None]
    gateway: Mapping[str, Spread | None]
    qualities: Mapping[str, int]
    failures: tuple[str, ...]


def summary(result: ModelRuns) -> Summary:
    """What the runs of one model come to."""
    good = [run for run in result.runs if run.outcome == "ok"]
    sound = result.sound
    return Summary(
        model=result.model,
        runs=len(result.runs),
        sound=len(sound),
        figures={name: spread(getattr(run, name) for run in good) for name in FIGURES},
        formulas={name: spread(getattr(run.formulas, name) for run in sound) for name in FORMULAS},
        gateway={name: spread((run.gateway or {}).get(name) for run in good) for name in GATEWAY},
        qualities=dict(Counter(run.quality or run.outcome for run in result.runs)),
        failures=tuple(run.error for run in result.runs if run.error is not None),
    )


def as_json(url: str, plan: Plan, results: Iterable[ModelRuns]) -> dict[str, Any]:
    """Everything, every single run included."""
    return {
        "url": url,
        "runs": plan.runs,
        "concurrency": plan.concurrency,
        "max_tokens": plan.max_tokens,
        "prompt_chars": len(plan.prompt),
        "models": [_model(result) for result in results],
    }


def _model(result: ModelRuns) -> dict[str, Any]:
    found = asdict(summary(result))
    found["dropped"] = list(result.dropped)
    found["cold"] = None if result.cold is None else _run(result.cold)
    found["each"] = [_run(run) for run in result.runs]
    rounded: dict[str, Any] = _rounded(found)
    return rounded


def _run(run: Run) -> dict[str, Any]:
    return asdict(run)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
