"""Playback against a scripted transport: what falls due is written together, nothing while the client does not read."""

import asyncio
from collections.abc import Callable
from typing import cast

from gateway.core.clock import monotonic
from gateway.simulator.playback import Playback
from gateway.simulator.timeline import Ending, Step, Timeline
from gateway.simulator.truth import Stats, StreamTruth


class Transport:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.on_write: Callable[[], None] = lambda: None

    def write(self, written: bytes) -> None:
        self.writes.append(written)
        self.on_write()


def steps(*given: Step) -> Timeline:
    yield from given
    return Ending.DONE


def playing(timeline: Timeline, started: float) -> tuple[Playback, Transport, list[Ending], StreamTruth]:
    transport, endings = Transport(), list[Ending]()
    truth = StreamTruth(1, "m", True, (), started, 3, 1)
    stats = Stats()
    stats.began(truth)
    known = cast(asyncio.Transport, transport)
    return Playback(known, timeline, truth, stats, started, endings.append), transport, endings, truth


def test_late_steps_go_out_in_one_write_with_their_own_plan() -> None:
    async def main() -> None:
        playback, transport, endings, truth = playing(steps((0, b"a", 1), (1, b"b", 1), (2, b"c", 1)), monotonic() - 10)
        playback.start()
        assert (transport.writes, endings) == ([b"abc"], [Ending.DONE])
        assert [due - truth.request_read for due in truth.due] == [0, 1, 2]
        assert len(set(truth.sent)) == 1

    asyncio.run(main())


def test_a_step_in_the_future_waits_for_its_timer() -> None:
    async def main() -> None:
        playback, transport, endings, truth = playing(steps((0, b"a", 1), (3600, b"b", 1)), monotonic())
        playback.start()
        assert (transport.writes, endings, truth.ended) == ([b"a"], [], None)
        playback.stop("aborted")
        assert truth.ending == "aborted"

    asyncio.run(main())


def test_nothing_is_written_while_held_and_what_fell_due_follows_at_once() -> None:
    async def main() -> None:
        many = [(0.0, b"x", 1)] * 600
        playback, transport, endings, truth = playing(steps(*many), monotonic() - 1)
        transport.on_write = playback.hold
        playback.start()
        assert truth.tokens == len(transport.writes[0]) == 256
        await asyncio.sleep(0)
        assert len(transport.writes) == 1
        transport.on_write = lambda: None
        playback.resume()
        while not endings:
            await asyncio.sleep(0)
        assert truth.tokens == 600

    asyncio.run(main())


def test_stopping_twice_counts_once() -> None:
    async def main() -> None:
        playback, _, _, truth = playing(steps((3600, b"a", 1)), monotonic())
        playback.start()
        playback.stop("aborted")
        playback.stop("killed")
        assert truth.ending == "aborted"

    asyncio.run(main())
