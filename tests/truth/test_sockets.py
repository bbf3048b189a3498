"""The same through a real gateway: only what no scheduling can break is held against the provider's account."""

import asyncio
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
                assert record.speed.quality == quality
                assert record.speed.output_tps is None
            sound = sum(record.speed.quality == "ok" for record in records)
            text = gw.gateway.metrics.render().decode()
            counted = _qualities(text)
            assert {quality: counted[quality] for quality in ODD_STREAMS} == dict.fromkeys(ODD_STREAMS, 1)
            assert sum(counted.values()) == len(records) + len(ODD_STREAMS)
            assert _speeds_observed(text) == sound

    run(main())
