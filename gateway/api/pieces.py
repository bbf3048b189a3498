"""Answers of figures that cost something to make: kept for a second, made in slices, shared by everyone who asks."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import orjson

from gateway.core.ports import Clock

# An answer may be a second late. Of its time the event loop spends at most a tenth on figures, so that many of them
# are kept for longer; but none longer than anybody would take for the present.
KEEP_S = 1.0
LONGEST_KEEP_S = 15.0
LEAST_REST = 10.0
# The event loop is given back at least this often: a late read is a wrong TTFT.
SLICE_S = 0.002
MAX_PIECES = 10_000
MAX_ANSWERS = 32

# What a piece is of: a deployment's id, and which part of it.
Key = tuple[str, str]
# A piece, and what makes it; that is told the moment it is to be of, in monotonic seconds.
Wanted = tuple[Key, Callable[[float], Any]]


class Pace:
    """Work in slices of two milliseconds."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = perf_counter() + SLICE_S

    async def rest(self) -> None:
        """Between two steps: lets the event loop go on where the slice is used up."""
        if perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + SLICE_S


@dataclass(frozen=True, slots=True)
class Piece:
    """`text` is JSON; `made` the moment of its figures, in monotonic seconds; `cost_s` what it took to make."""

    text: bytes
    made: float
    cost_s: float


class Pieces:
    """The pieces made so far, each made anew when it is too old.

    Who finds one missing makes it, so that many who ask at once share the work.
    """

    def __init__(self, clock: Clock, limit: int = MAX_PIECES) -> None:
        self._clock = clock
        self._limit = limit
        self._kept: dict[Key, Piece] = {}
        self._cost_s = 0.0

    @property
    def keep_s(self) -> float:
        """How long a piece is good for."""
        return min(max(KEEP_S, LEAST_REST * self._cost_s), LONGEST_KEEP_S)

    async def collect(self, wanted: Iterable[Wanted]) -> list[Piece]:
        """The pieces, in this order."""
        found: list[Piece] = []
        pace = Pace()
        for key, make in wanted:
            piece = self._kept.get(key)
            if piece is None or self._clock() - piece.made >= self.keep_s:
                piece = self._make(key, make)
            found.append(piece)
            await pace.rest()
        return found

    def _make(self, key: Key, make: Callable[[float], Any]) -> Piece:
        now, began = self._clock(), perf_counter()
        text = orjson.dumps(make(now))
        piece = Piece(text, now, perf_counter() - began)
        self._drop(key)
        self._kept[key] = piece
        self._cost_s += piece.cost_s
        if len(self._kept) > self._limit:
            self._drop(next(iter(self._kept)))
        return piece

    def _drop(self, key: Key) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._cost_s = max(0.0, self._cost_s - dropped.cost_s)


class Answers:
    """Whole answers, each good for a second. One is made at a time: many slices in one turn of the loop are none."""

    def __init__(self, clock: Clock, limit: int = MAX_ANSWERS) -> None:
        self._clock = clock
        self._limit = limit
        self._kept: dict[Hashable, tuple[float, bytes]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The answer of this key. Who asks while it is being made waits for it."""
        async with self._one_at_a_time:
            kept = self._kept.get(key)
            if kept is not None and self._clock() - kept[0] < KEEP_S:
                return kept[1]
            body = await make()
            self._kept.pop(key, None)
            self._kept[key] = (self._clock(), body)
            if len(self._kept) > self._limit:
                del self._kept[next(iter(self._kept))]
            return body
