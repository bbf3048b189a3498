"""One round of one peer: paced streams, whole answers and first tokens, with the CPU that they cost it."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks import kernel
from benchmarks.load import Load, LoadResult, command, run
from benchmarks.native_build import BenchmarkError
from benchmarks.peers import Running


@dataclass(frozen=True, slots=True)
class Size:
    """How much work a round is."""

    streams: int = 48
    stream_concurrency: int = 16
    request_seconds: int = 2
    request_concurrency: int = 32
    first_tokens: int = 200

    def loads(self) -> Mapping[str, Load]:
        """The measured loads."""
        return {
            "stream": Load(stream=True, concurrency=self.stream_concurrency, count=self.streams),
            "in step": Load(stream=True, concurrency=self.stream_concurrency, count=self.streams, in_step=True),
            "request": Load(stream=False, concurrency=self.request_concurrency, seconds=self.request_seconds),
            "ttft": Load(stream=True, concurrency=1, count=self.first_tokens, tokens=4, interval_us=1000, first_us=0),
        }


WARM_UP = (
    Load(stream=True, concurrency=16, count=64, tokens=8, interval_us=2000),
    Load(stream=False, concurrency=32, count=2000),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round's figures. CPU is None where no process stands between; a chunk is one paced content chunk.

    The delays are those of the spread streams.
    """

    cpu_s_per_million_chunks: float | None
    cpu_s_per_million_chunks_in_step: float | None
    cpu_s_per_thousand_requests: float | None
    requests_per_s: float
    requests_per_cpu_s: float | None
    request_p50_ms: float
    request_p99_ms: float
    ttft_p50_ms: float
    ttft_p95_ms: float
    delay_p50_ms: float
    delay_p99_ms: float


FIGURES = tuple(field.name for field in fields(Round))


def measure(program: Path, peer: Running, size: Size, step: Callable[[str], None]) -> Round:
    """Runs the loads against a peer. Raises where any answer was wrong: a fast wrong answer is no figure."""
    results: dict[str, LoadResult] = {}
    spent: dict[str, float | None] = {}
    for name, load in size.loads().items():
        step(name)
        before = None if peer.pid is None else kernel.cpu_seconds(peer.pid)
        results[name] = checked(program, peer, load)
        spent[name] = None if peer.pid is None or before is None else kernel.cpu_seconds(peer.pid) - before
    return _figures(results, spent)


def checked(program: Path, peer: Running, load: Load) -> LoadResult:
    """Runs one load; raises where an answer was wrong or missing."""
    result = run(command(program, peer.port, peer.model, peer.headers, load), load.limit_s)
    if result.errors:
        raise BenchmarkError(f"{result.errors} of {result.answers} answers were wrong; the first: {result.first_error}")
    return result


def _figures(results: Mapping[str, LoadResult], spent: Mapping[str, float | None]) -> Round:
    stream, request, first = results["stream"], results["request"], results["ttft"]
    if stream.delay_ms is None or request.latency_ms is None or first.ttft_ms is None:
        raise BenchmarkError("a load was too small to measure")
    request_cpu = spent["request"]
    return Round(
        cpu_s_per_million_chunks=_per_chunk(spent["stream"], stream),
        cpu_s_per_million_chunks_in_step=_per_chunk(spent["in step"], results["in step"]),
        cpu_s_per_thousand_requests=None if request_cpu is None else request_cpu / request.answers * 1e3,
        requests_per_s=request.answers / request.seconds,
        requests_per_cpu_s=None if request_cpu is None else request.answers / request_cpu,
        request_p50_ms=request.latency_ms.p50,
        request_p99_ms=request.latency_ms.p99,
        ttft_p50_ms=first.ttft_ms.p50,
        ttft_p95_ms=first.ttft_ms.p95,
        delay_p50_ms=stream.delay_ms.p50,
        delay_p99_ms=stream.delay_ms.p99,
    )


def _per_chunk(cpu_s: float | None, result: LoadResult) -> float | None:
    return None if cpu_s is None else cpu_s / result.chunks * 1e6


def medians(rounds: Sequence[Round]) -> dict[str, float | None]:
    """The median of every figure."""
    return {name: _median([getattr(one, name) for one in rounds]) for name in FIGURES}


def spreads(rounds: Sequence[Round]) -> dict[str, float | None]:
    """Half the distance from the least to the greatest round, as a share of the median: how noisy a figure was."""
    shares: dict[str, float | None] = {}
    for name in FIGURES:
        values = [value for one in rounds if (value := getattr(one, name)) is not None]
        middle = _median(values)
        shares[name] = (max(values) - min(values)) / 2 / middle if middle else None
    return shares


def paired(rounds: Sequence[Round], base: Sequence[Round], name: str) -> float | None:
    """The median over rounds of one peer's figure by the base's in the same round: drift of the machine cancels."""
    return _median(
        [
            mine / theirs
            for a, b in zip(rounds, base, strict=True)
            if (mine := getattr(a, name)) and (theirs := getattr(b, name))
        ]
    )


def added(rounds: Sequence[Round], base: Sequence[Round], name: str) -> float | None:
    """The median over rounds of one peer's figure less the base's in the same round."""
    return _median([getattr(a, name) - getattr(b, name) for a, b in zip(rounds, base, strict=True)])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
