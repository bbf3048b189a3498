"""The output rate against a known truth: however a stream is cut into reads, 100 tok/s must read as 100 tok/s."""

from random import Random

import pytest

from gateway.core.reading import Reading, Usage
from gateway.core.record import Measurement
from gateway.metering.meter import Meter

TRUE_TPS = 100.0


def generated(tokens: int, per_event: int, events_per_read: int, *, seed: int = 1) -> Measurement:
    """Tokens of uneven length at a steady pace; an event leaves when its last token is decoded, a read likewise."""
    random = Random(seed)
    lengths = [random.choice((1, 2, 3, 4, 5, 6, 8)) for _ in range(tokens)]
    meter = Meter(0.0)
    held: list[int] = []
    for start in range(0, tokens, per_event):
        piece = lengths[start : start + per_event]
        held.append(sum(piece))
        done = start + len(piece)
        if len(held) == events_per_read or done == tokens:
            for chars in held:
                meter.observe(Reading(content=chars), 2.0 + done / TRUE_TPS)
            held = []
    meter.observe(Reading(finish="stop", usage=Usage(output=tokens)), 2.0 + tokens / TRUE_TPS)
    return meter.finish("ok", 2.0 + tokens / TRUE_TPS)


@pytest.mark.parametrize(
    ("per_event", "events_per_read", "tokens"),
    [
        (1, 1, 200),
        (1, 1, 2000),
        (5, 1, 300),
        (16, 1, 320),
        (16, 1, 2000),
        (1, 16, 800),
        (1, 64, 640),
        (1, 64, 2000),
        (16, 4, 2000),
        (3, 7, 1000),
    ],
)
def test_the_rate_is_right_within_one_percent(per_event: int, events_per_read: int, tokens: int) -> None:
    measured = generated(tokens, per_event, events_per_read)
    assert measured.speed.quality == "ok"
    assert measured.speed.output_tps == pytest.approx(TRUE_TPS, rel=0.01)
    assert measured.speed.answer_tps == pytest.approx(TRUE_TPS, rel=0.01)


@pytest.mark.parametrize("tokens", [40, 200, 4000])
def test_the_length_of_an_answer_does_not_change_its_rate(tokens: int) -> None:
    assert generated(tokens, 1, 1).speed.output_tps == pytest.approx(TRUE_TPS, rel=0.03)


def test_the_naive_rate_would_be_wrong() -> None:
    """What this definition is for: chunks of 16 tokens read 5 % fast by (n - 1) / T even over 320 tokens."""
    measured = generated(320, 16, 1)
    first, last = measured.timing.ttft_ms, measured.timing.last_token_ms
    assert first is not None
    assert last is not None
    assert (320 - 1) / (last - first) * 1000 > 1.04 * TRUE_TPS
