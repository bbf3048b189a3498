"""An answer as a timeline: what is written when, counted from the whole request, and how it ends."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import TypeVar

from gateway.simulator.answer import Answer
from gateway.simulator.chat import Chat
from gateway.simulator.faults import Fault
from gateway.simulator.pace import Pace
from gateway.simulator.script import Script
from gateway.simulator.wire import Frames

# Seconds from the whole request, the bytes, the tokens in them.
Step = tuple[float, bytes, int]


class Ending(Enum):
    """How an answer ends, once its last step is written."""

    DONE = "done"  # complete: the connection may serve another
    CLOSE = "close"  # FIN
    RESET = "reset"  # RST
    SILENT = "silent"  # nothing more, and the connection stays open


Timeline = Generator[Step, None, Ending]
AnyFault = TypeVar("AnyFault", bound=Fault)


@dataclass(frozen=True, slots=True)
class Job:
    """All that the timeline of one answer depends on."""

    chat: Chat
    script: Script
    faults: tuple[Fault, ...]
    answer: Answer
    frames: Frames
    pace: Pace
    rng: Random
    ttft: float
    keep_alive: bool
    chunked: bool
    response_id: str
    created: int

    def struck(self, kind: type[AnyFault]) -> AnyFault | None:
        """The first fault of this very kind, where one strikes."""
        return next((fault for fault in self.faults if type(fault) is kind), None)


def at_once(data: bytes, ending: Ending = Ending.DONE, delay: float = 0.0) -> Timeline:
    """One write, then the ending."""
    yield delay, data, 0
    return ending


def silent() -> Timeline:
    """Not a byte, ever."""
    yield from ()
    return Ending.SILENT


def reset() -> Timeline:
    """Not a byte, then RST."""
    yield from ()
    return Ending.RESET


def buffered(steps: Timeline) -> Timeline:
    """Everything in one write, when the last of it is due."""
    at, held, tokens = 0.0, [], 0
    ending = Ending.DONE
    while True:
        try:
            at, data, count = next(steps)
        except StopIteration as stop:
            ending = _ending(stop)
            break
        held.append(data)
        tokens += count
    yield at, b"".join(held), tokens
    return ending


def split(steps: Timeline, pieces: int, every: float, rng: Random) -> Timeline:
    """Every write torn at arbitrary bytes, its pieces `every` seconds apart. Tokens count with the last piece."""
    free = 0.0
    while True:
        try:
            at, data, tokens = next(steps)
        except StopIteration as stop:
            return _ending(stop)
        at = max(at, free)
        parts = list(_torn(data, pieces, rng))
        for place, part in enumerate(parts):
            yield at + place * every, part, tokens if place == len(parts) - 1 else 0
        free = at + len(parts) * every


def _ending(stop: StopIteration) -> Ending:
    assert isinstance(stop.value, Ending)
    return stop.value


def _torn(data: bytes, pieces: int, rng: Random) -> Iterator[bytes]:
    cuts = sorted(rng.sample(range(1, len(data)), min(pieces, len(data)) - 1)) if len(data) > 1 else []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]
