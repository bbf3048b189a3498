"""A deployment in virtual time with its streams running: what the tick sees of them, and what their records bring."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp

from gateway.core.record import AttemptRecord, Chars, Tokens
from gateway.core.types import BreakerPolicy, Progress, SagPolicy
from gateway.metering.book import SpeedBook
from gateway.routing.health import Health as Keeper
from tests.routing.fleet import Now, deployment, record

STEP_S = 0.5
TTFT_S = 0.4
TPS = 100.0


@dataclass(slots=True)
class Stream:
    """Plays the meter of one stream. `shown`: characters to a token, where 4 are usual."""

    now: Now
    began: float
    ttft_s: float
    tps: float
    shown: float
    length: int
    first: float | None = None
    tokens: float = 0.0
    waited_s: float = 0.0

    def step(self, speed: float, ttft: float) -> bool:
        """Half a second of it; True at its end."""
        if self.first is None:
            self.waited_s += STEP_S / ttft
            if self.waited_s < self.ttft_s:
                return False
            self.first = self.now.at
            return False
        self.tokens += STEP_S * self.tps * speed
        return self.tokens >= self.length

    def progress(self, now: float) -> Progress:
        if self.first is None:
            return Progress(now - self.began, prompt_tokens=0)
        window_s = now - self.first
        tokens = self.tokens * self.shown
        tps = tokens / window_s if window_s else None
        return Progress(now - self.began, self.first - self.began, tokens, tps)


def always(_: float) -> float:
    return 1.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """One request each `every_s`, of `length` tokens, with this noise of speed, TTFT and characters to a token."""

    every_s: float = 1.0
    length: int = 1000
    noise: float = 0.25
    text: float = 0.08


def watched(
    seed: int,
    until_s: float,
    traffic: Traffic = Traffic(),
    *,
    speed: Callable[[float], float] = always,
    ttft: Callable[[float], float] = always,
    text: Callable[[float], float] = always,
    ticks: bool = True,
) -> list[tuple[float, str, str]]:
    """The transitions and their moments. `speed`, `ttft` and `text` are shares of 100 tok/s, 0.4 s, 4 characters."""
    rng, now = random.Random(seed), Now()
    book = SpeedBook(now)
    told: list[tuple[float, str, str]] = []
    entry = deployment("p/m")
    health = Keeper(
        [entry], BreakerPolicy(), SagPolicy(), book, lambda _, state, why: told.append((now.at, state, why)), now
    )
    streams: list[Stream] = []
    due = 0.0
    steps = 0
    while now.at < until_s:
        steps += 1
        now.at = steps * STEP_S
        slower = ttft(now.at)
        for stream in [stream for stream in streams if stream.step(speed(now.at), slower)]:
            streams.remove(stream)
            book.ended(entry.id, stream)  # type: ignore[arg-type]
            finish(stream, book, health, now.at)
        while due <= now.at:
            due += traffic.every_s
            stream = Stream(
                now,
                now.at,
                TTFT_S * exp(rng.gauss(0, traffic.noise)),
                TPS * exp(rng.gauss(0, traffic.noise)),
                text(now.at) * exp(rng.gauss(0, traffic.text)),
                traffic.length,
            )
            streams.append(stream)
            book.began(entry.id, stream)  # type: ignore[arg-type]
        if ticks and steps % 2 == 0:
            health.look(book.look(now.at), now.at)
    return told


def finish(stream: Stream, book: SpeedBook, health: Keeper, now: float) -> None:
    """Its record, as dispatch tells it: the book first."""
    first = stream.first or now
    tps, ttft_s = stream.tokens / (now - first), first - stream.began
    ended = replace(
        record("p/m", tps, ttft_s=ttft_s, duration_s=now - stream.began),
        tokens=Tokens(input=0, output=stream.length, source="usage"),
        chars=Chars(content=round(4 * stream.shown * stream.length)),
        attempts=(AttemptRecord("p/m", "p", "m", "primary", "ok", 200, ttft_ms=1000 * ttft_s),),
    )
    book.record(ended)
    health.record(ended)
