"""The output rate against a known truth: however a stream is cut into reads, 100 tok/s must read as 100 tok/s."""

from random import Random

import pytest

from gateway.core.reading import Reading, Usage
from gateway.core.record import Measurement
from gateway.metering.meter import Meter

TRUE_TPS = 100.0


def generated(
    tokens: int, per_event: int = 1, per_read: int = 1, *, first: int = 0, jitter_s: float = 0.0, seed: int = 1
) -> Measurement:
    """Tokens of uneven length at a steady pace; an event leaves when its last token is decoded, a read likewise.

    `first`: so many events make up the first read. `jitter_s`: reads arrive late by up to so much, in their order.
    """
    random = Random(seed)
    lengths = [random.choice((1, 2, 3, 4, 5, 6, 8)) for _ in range(tokens)]
    meter = Meter(0.0)
    held: list[int] = []
    due, at = first or per_read, 0.0
    for start in range(0, tokens, per_event):
        piece = lengths[start : start + per_event]
        held.append(sum(piece))
        done = start + len(piece)
        if len(held) == due or done == tokens:
            at = max(at, 2.0 + done / TRUE_TPS + random.uniform(0, jitter_s))
            for chars in held:
                meter.observe(Reading(content=chars), at)
            held, due = [], per_read
    meter.observe(Reading(finish="stop", usage=Usage(output=tokens)), at)
    return meter.finish("ok", at)


def naive(measured: Measurement) -> float:
    """What others publish: (n - 1) / T."""
    first, last = measured.timing.ttft_ms, measured.timing.last_token_ms
    assert first is not None
    assert last is not None
    return ((measured.tokens.output or 0) - 1) / (last - first) * 1000


@pytest.mark.parametrize(
    ("shape", "usual"),
    [
        # How the stream is cut, and what (n - 1) / T reads of it, in tok/s.
        ({"tokens": 200}, 100),
        ({"tokens": 2000}, 100),
        ({"tokens": 300, "per_event": 4}, 101),
        ({"tokens": 300, "per_event": 5}, 101),
        ({"tokens": 256, "per_event": 8}, 103),
        ({"tokens": 320, "per_event": 16}, 105),
        ({"tokens": 104, "per_event": 16}, 117),
        ({"tokens": 64, "per_event": 16}, 131),
        ({"tokens": 2000, "per_event": 16}, 101),
        ({"tokens": 800, "per_read": 16}, 102),
        ({"tokens": 256, "per_read": 64}, 133),
        ({"tokens": 128, "per_read": 64}, 198),
        ({"tokens": 640, "per_read": 64}, 111),
        ({"tokens": 2000, "per_read": 64}, 103),
        ({"tokens": 2000, "per_event": 16, "per_read": 4}, 103),
        ({"tokens": 1000, "per_event": 3, "per_read": 7}, 102),
        ({"tokens": 400, "first": 12}, 103),
        ({"tokens": 400, "first": 150}, 160),
        ({"tokens": 2000, "jitter_s": 0.02}, 100),
        ({"tokens": 2000, "per_event": 16, "jitter_s": 0.02}, 101),
    ],
    ids=str,
)
def test_the_rate_is_right_within_one_percent_where_the_usual_one_is_not(shape: dict[str, int], usual: int) -> None:
    runs = [generated(**shape, seed=seed) for seed in range(40)]  # type: ignore[arg-type]
    rates = [run.speed.output_tps for run in runs if run.speed.output_tps is not None]
    answers = [run.speed.answer_tps for run in runs if run.speed.answer_tps is not None]
    assert {run.speed.quality for run in runs} == {"ok"}
    # Tokens of uneven length scatter a single answer by their share of the first read; the mean has no bias.
    assert sum(rates) / len(rates) == pytest.approx(TRUE_TPS, rel=0.01)
    assert answers == rates
    assert sum(map(naive, runs)) / len(runs) == pytest.approx(usual, rel=0.01)


@pytest.mark.parametrize(
    "shape",
    [
        {"tokens": 200},
        {"tokens": 320, "per_event": 16},
        {"tokens": 640, "per_read": 64},
        {"tokens": 2000, "per_read": 64},
        {"tokens": 400, "first": 12},
    ],
    ids=str,
)
def test_a_single_answer_scatters_by_no_more_than_its_uneven_tokens(shape: dict[str, int]) -> None:
    rates = sorted(generated(**shape, seed=seed).speed.output_tps or 0 for seed in range(41))  # type: ignore[arg-type]
    assert rates[20] == pytest.approx(TRUE_TPS, rel=0.01)
    assert (rates[0], rates[-1]) == pytest.approx((TRUE_TPS, TRUE_TPS), rel=0.025)


@pytest.mark.parametrize("tokens", [40, 200, 4000])
def test_the_length_of_an_answer_does_not_change_its_rate(tokens: int) -> None:
    assert generated(tokens).speed.output_tps == pytest.approx(TRUE_TPS, rel=0.03)
