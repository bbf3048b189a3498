"""Loads: what the native load generator sends, and what it measured."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.native_build import BenchmarkError

# About the size of a short question with a system prompt.
_MESSAGES = [
    {
        "role": "system",
        "content": "You are a careful programmer. Answer with code where code helps, and keep it short.",
    },
    {"role": "user", "content": "Write a function that merges two sorted lists without sorting again. " * 4},
]


@dataclass(frozen=True, slots=True)
class Load:
    """One run of the load generator. After `seconds` no answer is begun; begun ones are read to their end.

    `stagger_us` is between the beginnings of the first streams; None: spread over a stream's length, and their chunks
    over the time between two, so that every chunk wakes the proxy by itself. `in_step`: the chunks of all streams
    come at the same moments, so that many share one wake-up.
    """

    stream: bool
    concurrency: int
    count: int | None = None
    seconds: int | None = None
    tokens: int = 64
    interval_us: int = 20_000
    first_us: int | None = None
    stagger_us: int | None = None
    in_step: bool = False
    abandon: bool = False
    limit_s: int = 300

    @property
    def spacing_us(self) -> int:
        """`stagger_us`, or what spreads the streams over a stream's length and chunks over the time between two."""
        if self.stagger_us is not None:
            return self.stagger_us
        return (self.tokens + 1) * self.interval_us // self.concurrency if self.stream else 0

    def body(self, model: str) -> dict[str, Any]:
        """The request's body, with the fields that set the mock upstream's pace."""
        body: dict[str, Any] = {"model": model, "messages": _MESSAGES, "temperature": 0}
        if self.stream:
            first = self.interval_us if self.first_us is None else self.first_us
            body |= {
                "stream": True,
                "mock_tokens": self.tokens,
                "mock_interval_us": self.interval_us,
                "mock_first_us": first,
                "mock_in_step": self.in_step,
            }
        return body


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of one quantity, in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What the load generator saw. `delay_ms`: from the mock upstream's send of a chunk to its read by the client."""

    answers: int
    unfinished: int
    errors: int
    first_error: str | None
    reconnects: int
    chunks: int
    events: int
    seconds: float
    ttft_ms: Spread | None
    delay_ms: Spread | None
    latency_ms: Spread | None


def command(program: Path, port: int, model: str, headers: Sequence[str], load: Load) -> list[str]:
    """The command line of the load generator."""
    words = [str(program), "--port", str(port), "--mode", "stream" if load.stream else "request"]
    words += ["--concurrency", str(load.concurrency), "--tokens", str(load.tokens), "--limit", str(load.limit_s)]
    words += ["--stagger-us", str(load.spacing_us), "--body", json.dumps(load.body(model))]
    words += [] if load.count is None else ["--count", str(load.count)]
    words += [] if load.seconds is None else ["--seconds", str(load.seconds)]
    words += ["--abandon"] if load.abandon else []
    for header in headers:
        words += ["--header", header]
    return words


def read_result(output: str) -> LoadResult:
    """The load generator's JSON."""
    raw = json.loads(output)
    for name in ("ttft_ms", "delay_ms", "latency_ms"):
        raw[name] = None if raw[name] is None else Spread(**raw[name])
    return LoadResult(**raw)


def run(words: Sequence[str], limit_s: int) -> LoadResult:
    """Runs the load generator to its end. Wrong answers are counted in the result; no result at all raises."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s + 30, check=False)
    if not done.stdout:
        raise BenchmarkError(f"the load generator gave no result (exit {done.returncode}): {done.stderr.strip()}")
    return read_result(done.stdout)
