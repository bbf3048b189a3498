"""Limits on what is under way at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import RequestError
from gateway.limits.inflight import InflightBytes, Streams


def test_a_stream_over_the_limit_is_refused_at_once_with_a_time_to_come_back() -> None:
    streams = Streams(2)
    streams.acquire()
    streams.acquire()
    with pytest.raises(RequestError) as refused:
        streams.acquire()
    assert refused.value.status == 503
    assert refused.value.retry_after_s is not None
    assert streams.open == 2
    streams.release()
    streams.acquire()


def test_bytes_that_do_not_fit_are_refused_and_not_booked() -> None:
    bodies = InflightBytes(100)
    bodies.acquire(60)
    with pytest.raises(RequestError) as refused:
        bodies.acquire(41)
    assert refused.value.status == 503
    assert refused.value.retry_after_s is not None
    bodies.acquire(40)
    bodies.release(100)
    assert bodies.held == 0


def test_releasing_what_was_not_acquired_is_a_fault() -> None:
    with pytest.raises(ValueError, match="more requests released"):
        Streams(1).release()
    with pytest.raises(ValueError, match="more bytes released"):
        InflightBytes(1).release(1)


@given(sizes=st.lists(st.integers(0, 50)), limit=st.integers(0, 200))
def test_held_bytes_never_pass_the_limit_and_all_come_back(sizes: list[int], limit: int) -> None:
    bodies, taken = InflightBytes(limit), []
    for size in sizes:
        try:
            bodies.acquire(size)
        except RequestError:
            assert sum(taken) + size > limit
        else:
            taken.append(size)
        assert bodies.held == sum(taken) <= limit
    for size in taken:
        bodies.release(size)
    assert bodies.held == 0
