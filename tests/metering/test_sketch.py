"""Quantiles from logarithmic buckets: their error, their edges, and waits of which only a lower bound is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.metering.sketch import Counts, bucket_of, merge, quantiles, value_of


def counted(values: list[float]) -> Counts:
    counts: Counts = {}
    for value in values:
        bucket = bucket_of(value)
        assert bucket is not None
        merge(counts, {bucket: 1})
    return counts


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_quantile_is_off_by_two_percent_at_most(values: list[float], share: float) -> None:
    (found,) = quantiles(counted(values), (share,))
    ordered = sorted(values)
    rank = next(index for index in range(1, len(values) + 1) if index >= share * len(values) - 1e-9)
    assert found == pytest.approx(ordered[rank - 1], rel=0.0201)


def test_no_sample_gives_no_quantile() -> None:
    assert quantiles({}, (0.1, 0.5)) == [None, None]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_what_has_no_logarithm_is_left_out(value: float) -> None:
    assert bucket_of(value) is None


@pytest.mark.parametrize("value", [1e-300, 1e300, float("inf")])
def test_no_value_has_a_bucket_beyond_all_measure(value: float) -> None:
    bucket = bucket_of(value)
    assert bucket is not None
    assert abs(bucket) < 1000


@given(st.lists(st.floats(0.1, 1e4), max_size=60), st.lists(st.floats(0.1, 1e4), min_size=1, max_size=60))
def test_bounds_never_lower_a_quantile(values: list[float], waits: list[float]) -> None:
    shares = (0.1, 0.5, 0.9)
    without = quantiles(counted(values), shares)
    with_bounds = quantiles(counted(values), shares, counted(waits))
    for one, other in zip(without, with_bounds, strict=True):
        assert other is not None
        # Where the largest of all is a bound, it stands for the undecided: at least that.
        assert one is None or other >= min(one, value_of(max({*counted(values), *counted(waits)}))) - 1e-9


def test_a_bound_below_everything_changes_nothing_and_one_above_counts_as_late() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    (median,) = quantiles(counted(values), (0.5,))
    assert quantiles(counted(values), (0.5,), counted([0.5] * 50)) == [median]
    # Of eight requests four waited ten seconds and got nothing: the median of all is the last of those that did.
    (late,) = quantiles(counted(values), (0.5,), counted([10.0] * 4))
    assert late == pytest.approx(4.0, rel=0.0201)


def test_waits_alone_stand_for_themselves() -> None:
    found = quantiles({}, (0.1, 0.99), counted([5.0, 20.0]))
    assert found == [pytest.approx(20.0, rel=0.0201)] * 2


def test_the_estimate_is_that_of_kaplan_and_meier() -> None:
    # Events at 1, 3, 5; given up at 2 and 4: S(1) = 4/5, S(3) = 4/5 * 2/3 = 8/15, S(5) = 0.
    values, waits = counted([1.0, 3.0, 5.0]), counted([2.0, 4.0])
    found = quantiles(values, (0.2, 0.46, 0.47, 1.0), waits)
    assert found == [pytest.approx(exact, rel=0.0201) for exact in (1.0, 3.0, 5.0, 5.0)]
