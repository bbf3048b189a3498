"""Quantiles from logarithmic buckets: their error, their window, their edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.metering.sketch import SLOT_S, SLOTS, WindowedCounts, quantiles


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_quantile_is_off_by_two_percent_at_most(values: list[float], share: float) -> None:
    counts = WindowedCounts()
    for value in values:
        counts.add(value, 0.0)
    (found,) = quantiles(counts.merged(0.0), (share,))
    exact = sorted(values)[max(1, -int(-share * len(values) // 1)) - 1]
    assert found == pytest.approx(exact, rel=0.0201)


def test_no_sample_gives_no_quantile() -> None:
    assert quantiles({}, (0.1, 0.5)) == [None, None]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_what_has_no_logarithm_is_left_out(value: float) -> None:
    counts = WindowedCounts()
    counts.add(value, 0.0)
    assert counts.merged(0.0) == {}


def test_a_value_leaves_with_its_slot() -> None:
    counts = WindowedCounts()
    counts.add(5.0, 10.0)
    last = SLOT_S * SLOTS
    assert sum(counts.merged(last - 1).values()) == 1
    assert sum(counts.merged(last + 1).values()) == 0


def test_memory_is_bounded_by_slots_and_buckets() -> None:
    counts = WindowedCounts()
    for index in range(20_000):
        counts.add(1.0 + index % 1000, index * 1.0)
    assert len(counts.merged(20_000.0)) < 200
