"""`gateway bench` without its terminal: a cold call, then runs at temperature 0, for each model in turn."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.bench.figures import Run
from gateway.bench.request import Outcome, Target, measure
from gateway.core.reading import WireError

# Parameters that some models refuse; a run without them is better than none, and the report says so.
_OPTIONAL = ("temperature", "stream_options", "max_tokens")
_RENAMED = {"max_tokens": "max_completion_tokens"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of every model. `runs` rounds of `concurrency` requests at once, after one cold call."""

    prompt: str
    runs: int = 5
    max_tokens: int = 256
    concurrency: int = 1


@dataclass(slots=True)
class ModelRuns:
    """The runs of one model so far. `cold` is shown and counts in nothing. `dropped`: parameters it refused."""

    model: str
    cold: Run | None = None
    runs: list[Run] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    @property
    def sound(self) -> list[Run]:
        """The runs that have a rate."""
        return [run for run in self.runs if run.sound]


# Told after every request: model, runs done (0 after the cold call), the run.
Progress = Callable[[str, int, Run], None]


async def bench(target: Target, results: Sequence[ModelRuns], plan: Plan, progress: Progress) -> None:
    """Fills `results`, so that what was measured before an interruption is there."""
    for result in results:
        await _bench_model(target, result, plan, progress)


async def _bench_model(target: Target, result: ModelRuns, plan: Plan, progress: Progress) -> None:
    body = _body(result.model, plan)
    first = await _cold(target, result, body)
    result.cold = first.run
    progress(result.model, 0, first.run)
    for done in range(plan.runs):
        batch = [measure(target, body, with_record=first.gateway) for _ in range(plan.concurrency)]
        for index, outcome in enumerate(await asyncio.gather(*batch), start=1):
            result.runs.append(outcome.run)
            progress(result.model, done * plan.concurrency + index, outcome.run)


async def _cold(target: Target, result: ModelRuns, body: dict[str, Any]) -> Outcome:
    """The first call, again without each parameter that it is refused for."""
    outcome = await measure(target, body, with_record=False)
    for _ in _OPTIONAL:
        name = _refused_parameter(outcome.refused, body)
        if name is None:
            break
        value = body.pop(name)
        if name in _RENAMED:
            body[_RENAMED[name]] = value
        result.dropped.append(name)
        outcome = await measure(target, body, with_record=False)
    return outcome


def _refused_parameter(refused: WireError | None, body: dict[str, Any]) -> str | None:
    if refused is None or refused.code != "bad_request":
        return None
    said = f"{refused.param or ''} {refused.message or ''}"
    return next((name for name in _OPTIONAL if name in body and name in said), None)


def _body(model: str, plan: Plan) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": plan.prompt}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "max_tokens": plan.max_tokens,
    }
