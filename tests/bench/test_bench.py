"""`gateway bench` against simulated providers: the truth is found, and a failed run is never a fast one."""

import asyncio
import json
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from gateway.bench.figures import Run
from gateway.bench.harness import ModelRuns, Plan, bench
from gateway.bench.request import Target
from gateway.bench.summary import as_json, spread, summary
from gateway.core.ports import Exchange, Outbound
from gateway.core.types import Credential, Provider, Timeouts
from gateway.simulator import Script, SimulatedProvider
from gateway.simulator.faults import Buffered, Cut, ErrorEvent, NoUsage, Status
from gateway.simulator.script import Reasoning
from gateway.simulator.truth import StreamTruth
from gateway.upstream.engine import HttpEngine
from tests.live import fast, live, run

PLAN = Plan("Write a function.", runs=3, max_tokens=64)
# Long enough that a late wake-up of a busy machine does not take the rate away.
STEADY = fast(tps=200, output_tokens=40)
ANY = Provider("bench", "http://127.0.0.1:9/v1")


async def benched(
    base_url: str, plan: Plan = PLAN, model: str = "m", key: str | None = None
) -> tuple[ModelRuns, list[tuple[int, Run]]]:
    credential = Credential("fixed", value=f"Bearer {key}") if key else Credential()
    provider = Provider("bench", base_url, credential=credential)
    engine = HttpEngine([provider], plan.concurrency)
    result, told = ModelRuns(model), []
    try:
        await bench(
            Target(engine, provider, Timeouts()), [result], plan, lambda _, done, latest: told.append((done, latest))
        )
    finally:
        await engine.close()
    return result, told


def with_sim(script: Script, main: Any) -> None:
    async def around() -> None:
        async with SimulatedProvider(script) as sim:
            await main(sim)

    run(around())


SHAPES = {
    "one token a chunk": Script(ttft=0.03, tps=200, output_tokens=64),
    "eight tokens a chunk": Script(ttft=0.03, tps=1000, tokens_per_chunk=8, output_tokens=200),
    "thinking aloud first": Script(ttft=0.03, tps=300, output_tokens=40, reasoning=Reasoning(tokens=40)),
    "silent thinking first": Script(
        ttft=0.03, tps=300, output_tokens=40, reasoning=Reasoning(tokens=40, streamed=False, seconds=0.1)
    ),
}


def sent_tps(truth: StreamTruth) -> float:
    """What left after the first write, and what left together with it, over the time that took."""
    first, last = truth.sent[0], truth.sent[-1]
    after = sum(count for at, count in zip(truth.sent, truth.counts, strict=True) if at - first > 0.001)
    return after / (last - first)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_simulated_truth_is_recovered(shape: str) -> None:
    """Held against what the provider did and when, so that a slow machine slows both."""

    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url, Plan("Write a function.", runs=5, max_tokens=1000))
        assert [one.error for one in result.runs] == [None] * 5
        truths = list(sim.stats.streams)[1:]
        ratios = []
        for one, truth in zip(result.runs, truths, strict=True):
            rate = one.answer_tps if shape.startswith("silent") else one.output_tps
            assert rate is not None
            ratios.append(rate / sent_tps(truth))
            assert one.ttft_ms is not None
            assert one.ttft_ms >= (truth.sent[0] - truth.request_read) * 1000 - 1
        # Single streams meet the scheduler; the median is what is reported. On an idle machine it is within 1 %.
        assert sorted(ratios)[2] == pytest.approx(1, rel=0.05)

    with_sim(SHAPES[shape], main)


def test_the_cold_call_is_made_shown_and_left_out() -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, told = await benched(sim.base_url)
        assert sim.stats.requests == 4
        assert result.cold is not None
        assert [done for done, _ in told] == [0, 1, 2, 3]
        assert summary(result).runs == 3
        body = sim.stats.seen[-1].body
        assert body is not None
        assert (body["temperature"], body["max_tokens"], body["stream_options"]) == (0, 64, {"include_usage": True})

    with_sim(fast(tps=400), main)


def test_calls_at_once_run_at_once() -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url, Plan("Write.", runs=2, concurrency=4))
        assert len(result.runs) == 8
        assert sim.stats.requests == 9

    with_sim(fast(tps=400), main)


@pytest.mark.parametrize(
    ("script", "outcome", "quality"),
    [
        (fast(faults=(Status(code=500),)), "error", None),
        (fast(faults=(Cut(after_tokens=8),)), "truncated", "truncated"),
        (fast(faults=(ErrorEvent(after_tokens=8),)), "error", "error"),
        (fast(tps=400, faults=(Buffered(),)), "ok", "burst"),
        (fast(tps=400, faults=(NoUsage(),)), "ok", "estimate"),
        (fast(output_tokens=4, tps=100), "ok", "short"),
    ],
)
def test_what_has_no_sound_rate_has_none(script: Script, outcome: str, quality: str | None) -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url)
        found = summary(result)
        assert {(one.outcome, one.quality) for one in result.runs} == {(outcome, quality)}
        assert (found.sound, found.figures["output_tps"]) == (0, None)
        assert all(value is None for value in found.formulas.values())
        assert (found.figures["ttft_ms"] is not None) == (outcome == "ok")
        assert len(found.failures) == (0 if outcome == "ok" else 3)

    with_sim(script, main)


def test_failures_do_not_colour_the_runs_beside_them() -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url, Plan("Write.", runs=12))
        found = summary(result)
        assert 0 < len(found.failures) < 12
        assert [one.sound for one in result.runs if one.error is not None] == [False] * len(found.failures)
        speed = found.figures["output_tps"]
        assert speed is not None
        assert speed.count == found.sound

    with_sim(replace(STEADY, seed=5, faults=(Cut(after_tokens=12, share=0.5),)), main)


class Fussy:
    """An API that refuses requests with certain parameters by name: one provider says no, another answers."""

    def __init__(self, answering: SimulatedProvider, refusing: dict[str, SimulatedProvider]) -> None:
        self._answering = Provider("answering", answering.base_url)
        self._refusing = {name: Provider(name, sim.base_url) for name, sim in refusing.items()}
        self._engine = HttpEngine([self._answering, *self._refusing.values()], 1)

    async def open(self, provider: Provider, request: Outbound, timeouts: Timeouts) -> Exchange:
        body = json.loads(request.body)
        named = next((name for name in self._refusing if name in body), None)
        chosen = self._answering if named is None else self._refusing[named]
        return await self._engine.open(chosen, request, timeouts)

    async def close(self) -> None:
        await self._engine.close()


def says(name: str) -> Script:
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return fast(faults=(Status(code=400, message=message),))


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        (("temperature",), {"max_tokens": 64, "stream_options": {"include_usage": True}}),
        (("stream_options",), {"temperature": 0, "max_tokens": 64}),
        (("max_tokens",), {"temperature": 0, "max_completion_tokens": 64, "stream_options": {"include_usage": True}}),
        (("max_tokens", "temperature"), {"max_completion_tokens": 64, "stream_options": {"include_usage": True}}),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_and_told(refused: tuple[str, ...], sent: dict[str, Any]) -> None:
    async def main(sim: SimulatedProvider) -> None:
        async with AsyncExitStack() as stack:
            refusing = {name: await stack.enter_async_context(SimulatedProvider(says(name))) for name in refused}
            engine, result = Fussy(sim, refusing), ModelRuns("m")
            stack.push_async_callback(engine.close)
            await bench(Target(engine, ANY, Timeouts()), [result], PLAN, lambda *_: None)
            assert result.dropped == list(refused)
            assert [one.outcome for one in result.runs] == ["ok"] * 3
            # Refused once, then never asked again.
            assert [one.stats.requests for one in refusing.values()] == [1] * len(refused)
            body = sim.stats.seen[-1].body
            assert body is not None
            assert {name: body[name] for name in body.keys() - {"model", "messages", "stream"}} == sent

    with_sim(STEADY, main)


def test_a_refusal_that_names_no_parameter_of_ours_is_a_failure() -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url)
        assert result.dropped == []
        assert result.cold is not None
        assert result.cold.error is not None
        assert "the prompt is too long" in result.cold.error
        assert sim.stats.requests == 4

    with_sim(fast(faults=(Status(code=400, message="the prompt is too long"),)), main)


def test_the_key_is_sent_and_in_no_report() -> None:
    async def main(sim: SimulatedProvider) -> None:
        result, _ = await benched(sim.base_url, key="sk-test-1234567890")
        assert sim.stats.seen[-1].header("authorization") == "Bearer sk-test-1234567890"
        assert "sk-test" not in repr(as_json(sim.base_url, PLAN, [result]))

    with_sim(fast(tps=400, api_key="sk-test-1234567890"), main)


def test_through_the_gateway_its_own_record_stands_beside_ours() -> None:
    async def main() -> None:
        async with live(STEADY) as gateway:
            result, _ = await benched(f"http://127.0.0.1:{gateway.port}/v1")
            for one in result.runs:
                assert one.gateway is not None
                record = await gateway.record_of(one.gateway["id"])
                assert one.gateway["deployment"] == "p0/m"
                assert one.gateway["output_tps"] == pytest.approx(record.speed.output_tps, abs=0.1)
            assert summary(result).gateway["ttft_ms"] is not None

    run(main())


def test_what_was_measured_is_there_when_it_is_interrupted() -> None:
    async def main(sim: SimulatedProvider) -> None:
        provider = Provider("bench", sim.base_url)
        engine = HttpEngine([provider], 1)
        result = ModelRuns("m")
        reached = asyncio.Event()

        def show(model: str, done: int, latest: Run) -> None:
            if done == 2:
                reached.set()

        target = Target(engine, provider, Timeouts())
        work: Coroutine[Any, Any, None] = bench(target, [result], Plan("Write.", runs=500), show)
        task = asyncio.create_task(work)
        await reached.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await engine.close()
        assert 2 <= len(result.runs) < 500
        assert as_json(sim.base_url, PLAN, [result])["models"][0]["sound"] >= 2

    with_sim(STEADY, main)


def test_a_spread_is_of_what_is_known() -> None:
    assert spread([None, None]) is None
    found = spread([3.0, None, 1.0, 2.0])
    assert found is not None
    assert (found.median, found.least, found.largest, found.count) == (2.0, 1.0, 3.0, 3)
