"""Streams whose every moment is known: what is recorded is what was sent, to a microsecond and a percent."""

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.truth_setting import SHAPES, Shape
from gateway.simulator import Script
from gateway.simulator.parse import read_script
from tests.truth.streams import Provider, measured, torn, truth_of

TTFT_S = 1e-6
RATE = 0.01

# Those of `make truth`, by name.
BY_NAME = {shape.name: shape for shape in SHAPES}


def _provider(shape: Shape, seed: int = 0) -> Provider:
    return Provider(read_script({**shape.script, "seed": seed}))


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("seed", range(5))
def test_first_token_and_speed_are_the_true_ones(name: str, seed: int) -> None:
    shape = BY_NAME[name]
    steps = _provider(shape, seed).stream()
    truth, record = truth_of(steps), measured(steps)
    assert record.speed.quality == shape.expect
    assert record.timing.ttft_ms == pytest.approx(truth.ttft * 1000, abs=TTFT_S * 1000)
    assert getattr(record.speed, shape.rate) == pytest.approx(truth.tps, rel=RATE)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("sizes", [(1,), (7,), (150,), (3000, 1, 40)])
def test_reads_of_any_size_give_the_same_figures(name: str, sizes: tuple[int, ...]) -> None:
    steps = _provider(BY_NAME[name]).stream()
    whole, cut = measured(steps), measured(torn(steps, cycle(sizes)))
    assert cut.speed == whole.speed
    assert cut.timing == whole.timing
    assert (cut.tokens, cut.chars) == (whole.tokens, whole.chars)


@given(
    ttft=st.floats(0.01, 3.0),
    tps=st.floats(5, 3000),
    per_chunk=st.integers(1, 16),
    chunks=st.integers(12, 60),
    jitter=st.floats(0, 0.5),
    seed=st.integers(0, 1000),
)
def test_any_steady_stream_is_recorded_as_it_was_sent(
    ttft: float, tps: float, per_chunk: int, chunks: int, jitter: float, seed: int
) -> None:
    script = Script(
        ttft=ttft, tps=tps, tokens_per_chunk=per_chunk, output_tokens=per_chunk * chunks, jitter=jitter, seed=seed
    )
    steps = Provider(script).stream()
    truth, record = truth_of(steps), measured(steps)
    assert record.timing.ttft_ms == pytest.approx(truth.ttft * 1000, abs=TTFT_S * 1000)
    assert record.tokens.output == per_chunk * chunks
    if record.speed.quality == "ok":
        assert record.speed.output_tps == pytest.approx(truth.tps, rel=RATE)
    else:
        # Nothing but the length of the window may speak against a steady stream.
        assert record.speed.quality in {"short", "burst"}
        assert record.speed.output_tps is None
