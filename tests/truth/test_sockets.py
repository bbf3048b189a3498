"""The same through a real gateway: only what no scheduling can break is held against the provider's account."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.truth_odd import ODD_STREAMS
from benchmarks.truth_setting import SHAPES
from gateway.core.record import GenerationRecord
from gateway.simulator import Script
from gateway.simulator.parse import read_script
from gateway.simulator.truth import StreamTruth
from tests.live import Live, live, run

AT_ONCE = 8


def _qualities(text: str) -> dict[str, float]:
    return {
        sample.labels["quality"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "gateway_speed_samples_total" and sample.labels["provider"] == "p0"
    }


def _speeds_observed(text: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "gateway_output_tokens_per_second_count" and sample.labels["provider"] == "p0"
    )


async def _asked(gw: Live, number: int, **fields: Any) -> tuple[GenerationRecord, StreamTruth]:
    """A stream whose prompt has a length of its own, its record, and what the provider says of it."""
    messages = [{"role": "user", "content": "x" * 4 * number}]
    record = await gw.record(await gw.post(messages=messages, **fields))
    (truth,) = (one for one in gw.sims[0].stats.streams if one.prompt_tokens == number)
    assert record.tokens.input in {number, None}
    return record, truth


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_token_is_read_before_it_was_written(shape: Any) -> None:
    # The pace does not matter here: what is faster than the machine comes late, never early.
    script = read_script({**shape.script, "output_tokens": 48, "tps": 400, "ttft": 0.02})

    async def main() -> None:
        async with live(script) as gw:
            asked = [_asked(gw, number) for number in range(1, AT_ONCE + 1)]
            for record, truth in await asyncio.gather(*asked):
                assert truth.first_token is not None
                assert record.timing.ttft_ms is not None
                # t0 is before the provider read the request, the first read after it wrote the token.
                assert record.timing.ttft_ms >= (truth.first_token - truth.request_read) * 1000
                assert record.tokens.output == truth.output_tokens
                assert record.chars.content + record.chars.reasoning == 5 * truth.tokens

    run(main())


def test_every_stream_is_counted_by_its_quality_and_only_sound_ones_as_speed() -> None:
    async def main() -> None:
        async with live(Script(ttft=0.01, tps=400, output_tokens=40)) as gw:
            numbers = iter(range(1, 100))
            records = [(await _asked(gw, next(numbers)))[0] for _ in range(2)]
            for quality, fields in ODD_STREAMS.items():
                hurried = {name: value for name, value in fields.items() if name != "tps"}
                record, _ = await _asked(gw, next(numbers), sim=hurried)
                # Where the machine stands still, few tokens come in one piece.
                assert record.speed.quality == quality or (quality, record.speed.quality) == ("short", "burst")
                assert record.speed.output_tps is None
                records.append(record)
            text = gw.gateway.metrics.render().decode()
            told = Counter(record.speed.quality for record in records)
            assert {quality: count for quality, count in _qualities(text).items() if count} == dict(told)
            assert _speeds_observed(text) == told["ok"]

    run(main())


def test_the_gauges_are_of_the_streams_that_were_recorded() -> None:
    async def main() -> None:
        async with live(Script(ttft=0.02, tps=300, output_tokens=40)) as gw:
            records = [(await _asked(gw, number))[0] for number in range(1, 6)]
            shown = {
                (sample.name, sample.labels.get("stat")): sample.value
                for family in text_string_to_metric_families(gw.gateway.metrics.render().decode())
                for sample in family.samples
                if sample.labels.get("deployment") == records[0].deployment
            }
            ttfts = [record.timing.ttft_ms / 1000 for record in records if record.timing.ttft_ms is not None]
            shown_p50 = shown["gateway_deployment_ttft_seconds", "p50"]
            assert 0.97 * min(ttfts) <= shown_p50 <= 1.03 * max(ttfts)
            speeds = [record.speed.output_tps for record in records if record.speed.output_tps is not None]
            if speeds:  # a machine that stands still for a while makes bursts of them
                assert shown["gateway_deployment_effective_samples", None] > 0
                speed = "gateway_deployment_speed_tokens_per_second"
                assert 0.97 * min(speeds) <= shown[speed, "p50"] <= 1.03 * max(speeds)
                assert shown[speed, "lower"] < shown[speed, "upper"]
            assert 0.5 < shown["gateway_token_estimate_ratio", None] < 2
            assert ("gateway_server_clock_decode_ratio", None) not in shown

    run(main())
