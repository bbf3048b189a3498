"""What every record store does, in memory and on disk, and on disk after a restart."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from gateway.core.record import GenerationRecord, as_json
from gateway.stores.memory import RecordStore
from gateway.stores.sqlite import SqliteState
from tests.stores.records import RECORD, numbered


class Store(Protocol):
    def record(self, record: GenerationRecord) -> None: ...

    async def find(self, generation_id: str) -> Any: ...


# `settled` gives the store that is asked once everything was recorded.
Settled = Callable[[], Store]


@pytest.fixture(params=["memory", "disk", "restarted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Settled]]:
    if request.param == "memory":
        memory = RecordStore()
        yield memory, lambda: memory
        return
    opened = [SqliteState(tmp_path)]

    def restart() -> Store:
        opened[0].close()
        opened.append(SqliteState(tmp_path))
        return opened[1]

    yield opened[0], restart if request.param == "restarted" else lambda: opened[0]
    opened[-1].close()


def found(store: Store, generation_id: str) -> Any:
    return asyncio.run(store.find(generation_id))


def test_a_record_is_found_by_its_id_as_its_json_with_the_key_that_made_it(store: tuple[Store, Settled]) -> None:
    filled, settled = store
    filled.record(numbered(1))
    filled.record(RECORD)
    asked = settled()
    assert found(asked, "gen-1") == as_json(numbered(1))
    assert found(asked, "gen-1")["key"] == "key-1"
    assert found(asked, "gen-0") == as_json(RECORD)
    assert found(asked, "gen-0")["key"] is None


@pytest.mark.parametrize("unknown", ["gen-2", "", "gen-1 ", "GEN-1", "gen-1\0", "\ud800", "%", "x" * 100_000])
def test_an_id_that_never_was_is_not_found(store: tuple[Store, Settled], unknown: str) -> None:
    filled, settled = store
    filled.record(numbered(1))
    assert found(settled(), unknown) is None


def test_a_record_of_the_same_id_replaces_the_earlier_one(store: tuple[Store, Settled]) -> None:
    filled, settled = store
    filled.record(numbered(1))
    filled.record(replace(numbered(1), outcome="error", error="cut"))
    assert found(settled(), "gen-1")["error"] == "cut"


def test_what_is_not_part_of_the_json_is_not_kept(store: tuple[Store, Settled]) -> None:
    filled, settled = store
    filled.record(replace(RECORD, gaps_s=(0.1,) * 50, in_flight=3))
    assert found(settled(), "gen-0") == as_json(RECORD)


def test_thousands_at_once_are_all_found(store: tuple[Store, Settled]) -> None:
    filled, settled = store
    for number in range(3000):
        filled.record(numbered(number))
    asked = settled()
    assert all(found(asked, f"gen-{number}") == as_json(numbered(number)) for number in range(0, 3000, 100))
    assert found(asked, "gen-2999") is not None
