"""Statistics go to the state and come back: with a scripted book, and with the real one."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from gateway.app import say_why
from gateway.core.clock import monotonic, wall_offset_s
from gateway.core.ports import Hour
from gateway.metering.book import SpeedBook
from gateway.stores.remembering import AT_ONCE, Remembering
from gateway.stores.sqlite import SqliteState
from tests.stores.records import CREATED, SAMPLE

HOUR = CREATED // 3600


class ScriptedBook:
    """Has these hours to tell, and remembers what it is given back."""

    def __init__(self, hours: Iterable[Hour] = (), learnt: Mapping[str, bytes] | None = None) -> None:
        self.hours = list(hours)
        self.known = dict(learnt or {})
        self.asked = 0
        self.restored: list[tuple[list[Hour], Mapping[str, bytes]]] = []
        self.offsets: set[float] = set()

    def changed_hours(self, wall_offset_s: float, now: float) -> Iterator[Hour]:
        self.asked += 1
        self.offsets.add(wall_offset_s)
        while self.hours:
            yield self.hours.pop(0)

    def learnt(self, wall_offset_s: float, now: float) -> Mapping[str, bytes]:
        return self.known

    def restore(self, hours: Iterable[Hour], learnt: Mapping[str, bytes], wall_offset_s: float, now: float) -> None:
        self.offsets.add(wall_offset_s)
        self.restored.append((list(hours), learnt))

    @property
    def given(self) -> list[Hour]:
        return [hour for hours, _ in self.restored for hour in hours]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a process left: 200 hours of one deployment, one of another."""
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    hours = [Hour("p/long", HOUR - ago, b"%d" % ago) for ago in range(150)] + [Hour("p/short", HOUR, b"short")]
    Remembering(state, ScriptedBook(hours, {"p/long": b"learnt"}), lambda: 5.0).note()
    state.close()
    return tmp_path


def test_everything_is_given_back_before_serving_where_the_time_allows(folder: Path) -> None:
    state = SqliteState(folder, wall=lambda: CREATED)
    book = ScriptedBook()
    Remembering(state, book, lambda: 7.0).restore(within_s=3600)
    state.close()
    assert book.restored[0] == ([], {"p/long": b"learnt"})
    assert sorted((entry.deployment_id, entry.hour, entry.payload) for entry in book.given) == sorted(
        [("p/long", HOUR - ago, b"%d" % ago) for ago in range(150)] + [("p/short", HOUR, b"short")]
    )
    assert all(len({entry.deployment_id for entry in hours}) <= 1 for hours, _ in book.restored)
    assert max(len(hours) for hours, _ in book.restored) == AT_ONCE
    assert [entry.hour for entry in book.given if entry.deployment_id == "p/long"] == [HOUR - ago for ago in range(150)]
    assert "p/short" in {entry.deployment_id for entry in book.given[: AT_ONCE + 1]}
    assert book.offsets == {7.0}


def test_what_the_start_has_no_time_for_follows_while_serving(folder: Path) -> None:
    async def main() -> None:
        state = SqliteState(folder, wall=lambda: CREATED)
        book = ScriptedBook()
        remembering = Remembering(state, book)
        remembering.restore(within_s=0)
        assert (book.given, book.restored[0][1]) == ([], {"p/long": b"learnt"})
        running = asyncio.create_task(remembering.run())
        while len(book.given) < 151:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.to_thread(state.close)

    asyncio.run(main())


def test_changes_are_noted_again_and_again_while_serving(tmp_path: Path) -> None:
    async def main() -> None:
        state = SqliteState(tmp_path, wall=lambda: CREATED)
        book = ScriptedBook([Hour("p/m", HOUR, b"1"), Hour("p/n", HOUR, b"n")])
        running = asyncio.create_task(Remembering(state, book).run(every_s=0.001))
        while book.asked < 3:
            await asyncio.sleep(0)
        book.hours = [Hour("p/m", HOUR, b"2")]
        while book.hours or book.asked < 6:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.to_thread(state.close)

    asyncio.run(main())
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    assert sorted(entry.payload for entry in state.remembered()[0]) == [b"2", b"n"]
    state.close()


def counted(folder: Path, records: int) -> int:
    """A process that restores, hears of so many records and notes them, some more than once; samples in 24 hours."""
    state = SqliteState(folder)
    book = SpeedBook(monotonic, offset_s=wall_offset_s())
    remembering = Remembering(state, book)
    remembering.restore()
    for _ in range(records):
        book.record(SAMPLE)
        remembering.note()
    remembering.note()
    state.close()
    return book.window("p/m", 86_400.0, monotonic()).samples


def test_the_statistics_of_processes_one_after_the_other_add_up_and_none_counts_twice(tmp_path: Path) -> None:
    assert counted(tmp_path, 5) == 5
    assert counted(tmp_path, 3) == 8
    assert counted(tmp_path, 0) == 8
    assert counted(tmp_path, 1) == 9
    assert counted(tmp_path, 0) == 9


def test_two_processes_at_once_add_up_for_the_third(tmp_path: Path) -> None:
    first, second = SqliteState(tmp_path), SqliteState(tmp_path)
    for state, records in ((first, 4), (second, 7)):
        book = SpeedBook(monotonic, offset_s=wall_offset_s())
        for _ in range(records):
            book.record(SAMPLE)
        Remembering(state, book).note()
    first.close()
    second.close()
    assert counted(tmp_path, 0) == 11


def test_what_was_learnt_is_known_after_the_restart(tmp_path: Path) -> None:
    state = SqliteState(tmp_path)
    book = SpeedBook(monotonic, offset_s=wall_offset_s())
    for _ in range(40):
        book.record(SAMPLE)
    before = book.report("p/m", monotonic())
    Remembering(state, book).note()
    state.close()
    state = SqliteState(tmp_path)
    book = SpeedBook(monotonic, offset_s=wall_offset_s())
    Remembering(state, book).restore()
    state.close()
    after = book.report("p/m", monotonic())
    assert before.baseline_tps is not None
    assert after.baseline_tps == pytest.approx(before.baseline_tps, rel=1e-6)
    assert after.chars_per_token == before.chars_per_token


def test_a_fault_that_ends_the_noting_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(ScriptedBook):
        def learnt(self, wall_offset_s: float, now: float) -> Mapping[str, bytes]:
            raise ValueError("a fault of ours")

    async def main() -> None:
        state = SqliteState(tmp_path)
        task = asyncio.create_task(Remembering(state, Faulty()).run(every_s=0.001))
        task.add_done_callback(say_why)
        await asyncio.wait([task])
        await asyncio.to_thread(state.close)

    asyncio.run(main())
    assert "Remembering.run" in caplog.text
    assert "a fault of ours" in caplog.text
