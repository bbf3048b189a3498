"""The tables of `gateway bench`."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gateway.bench.harness import ModelRuns, Plan
from gateway.bench.summary import Spread, Summary, summary

_ROWS = (
    ("TTFT ms", "ttft_ms", 0),
    ("first answer token ms", "ttfa_ms", 0),
    ("output tok/s", "output_tps", 1),
    ("answer tok/s", "answer_tps", 1),
    ("characters/s", "chars_per_s", 0),
    ("output tokens", "output_tokens", 0),
    ("500 answer tokens, ms", "answer_500_ms", 0),
    ("longest gap ms", "max_gap_ms", 0),
)
_FORMULAS = (
    ("(n-1)/T, vLLM's and aiperf's", "inter_token"),
    ("(n-1)/(end-first)", "per_token_to_end"),
    ("n/whole time, LLMPerf's", "end_to_end"),
    ("chunks taken for tokens", "chunks"),
)


def tables(url: str, plan: Plan, results: Sequence[ModelRuns]) -> Iterator[RenderableType]:
    """The figures, the figures by other formulas, and what went wrong."""
    found = [summary(result) for result in results]
    at_once = f", {plan.concurrency} at once" if plan.concurrency > 1 else ""
    title = f"{url}: median (least to largest) of {plan.runs} runs{at_once}; the cold call is left out"
    yield _grid(title, found, [(label, _figure(name), digits) for label, name, digits in _ROWS])
    if any(spread for one in found for spread in one.gateway.values()):
        rows = [("TTFT ms", "ttft_ms", 0), ("output tok/s", "output_tps", 1), ("overhead ms", "overhead_ms", 1)]
        own = [(label, _gateway(name), digits) for label, name, digits in rows]
        yield _grid("The gateway's own figures of the same requests", found, own)
    others = [(label, _formula(name), 1) for label, name in _FORMULAS]
    yield _grid("tok/s of the same runs by other tools' formulas", found, others)
    yield from _remarks(results, found)


Figure = Callable[[Summary], Spread | None]


def _grid(title: str, found: Sequence[Summary], rows: Sequence[tuple[str, "Figure", int]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for one in found:
        table.add_column(one.model, justify="right")
    for label, figure, digits in rows:
        table.add_row(label, *(_shown(figure(one), digits) for one in found))
    return table


def _figure(name: str) -> Figure:
    return lambda one: one.figures[name]


def _formula(name: str) -> Figure:
    return lambda one: one.formulas[name]


def _gateway(name: str) -> Figure:
    return lambda one: one.gateway[name]


def _shown(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "-"
    if spread.count == 1:
        return f"{spread.median:,.{digits}f}"
    return f"{spread.median:,.{digits}f} ({spread.least:,.{digits}f} to {spread.largest:,.{digits}f})"


def _remarks(results: Sequence[ModelRuns], found: Sequence[Summary]) -> Iterator[RenderableType]:
    for result, one in zip(results, found, strict=True):
        words = ", ".join(f"{count} {word}" for word, count in sorted(one.qualities.items())) or "no run"
        cold = result.cold
        first = "" if cold is None or cold.ttft_ms is None else f"; cold TTFT {cold.ttft_ms:,.0f} ms"
        yield Text(f"{one.model}: {one.sound} of {one.runs} runs have a rate ({words}){first}")
        if result.dropped:
            yield Text(f"{one.model}: refused, and left out: {', '.join(result.dropped)}")
        failures = [*((cold.error,) if cold and cold.error else ()), *one.failures]
        for failure in dict.fromkeys(failures):
            yield Text(f"{one.model}: {failures.count(failure)} x {failure}", style="red")
