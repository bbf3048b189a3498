"""The native mock upstream and load generator: right answers pass, wrong ones are told."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import pytest

from benchmarks.load import Load, LoadResult, command, run
from benchmarks.mock import MockUpstream, mock_upstream
from benchmarks.native_build import Tools, build

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

STREAM = Load(stream=True, concurrency=4, count=8, tokens=5, interval_us=1000, limit_s=20)


@pytest.fixture(scope="module")
def tools() -> Tools:
    return build()


@pytest.fixture
def upstream(tools: Tools) -> Iterator[MockUpstream]:
    with mock_upstream(tools.upstream) as started:
        yield started


def _run(tools: Tools, upstream: MockUpstream, load: Load, *more: str) -> LoadResult:
    return run([*command(tools.load, upstream.port, "m", (), load), *more], load.limit_s)


def test_every_token_of_every_stream_is_counted(tools: Tools, upstream: MockUpstream) -> None:
    result = _run(tools, upstream, STREAM)
    assert (result.answers, result.errors, result.chunks) == (8, 0, 40)
    assert result.ttft_ms is not None
    assert result.ttft_ms.count == 8


def test_in_step_streams_are_whole_too(tools: Tools, upstream: MockUpstream) -> None:
    result = _run(tools, upstream, replace(STREAM, in_step=True))
    assert (result.errors, result.chunks) == (0, 40)


def test_a_stream_with_too_few_tokens_is_an_error(tools: Tools, upstream: MockUpstream) -> None:
    result = _run(tools, upstream, STREAM, "--tokens", "6")
    assert result.errors == 8
    assert result.first_error == "a stream had 5 tokens of 6"


def test_a_missing_usage_chunk_is_an_error(tools: Tools, upstream: MockUpstream) -> None:
    assert _run(tools, upstream, STREAM, "--usage").errors == 8


def test_whole_answers_are_counted(tools: Tools, upstream: MockUpstream) -> None:
    result = _run(tools, upstream, Load(stream=False, concurrency=4, count=50, limit_s=20))
    assert (result.answers, result.errors) == (50, 0)
    assert upstream.counters().requests == 50


def test_a_stream_where_a_whole_answer_was_due_is_an_error(tools: Tools, upstream: MockUpstream) -> None:
    load = Load(stream=False, concurrency=1, count=1, limit_s=20)
    result = _run(tools, upstream, load, "--body", '{"stream": true, "mock_tokens": 1, "mock_interval_us": 1000}')
    assert result.errors == 1


def test_streams_whose_client_leaves_are_seen_by_the_upstream_as_aborted(tools: Tools, upstream: MockUpstream) -> None:
    load = replace(STREAM, tokens=100_000, stagger_us=0)
    with subprocess.Popen(command(tools.load, upstream.port, "m", (), load), stdout=subprocess.PIPE) as loading:
        assert _becomes(lambda: upstream.counters().open_streams == 4)
        loading.kill()
        loading.communicate()
    assert _becomes(lambda: upstream.counters().open_streams == 0)
    assert upstream.counters().aborted == 4
    assert upstream.counters().finished == 0


def _becomes(condition: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Every look is a round trip to the upstream, so this does not spin."""
    deadline = monotonic() + within_s
    while not (held := condition()) and monotonic() < deadline:
        pass
    return held
