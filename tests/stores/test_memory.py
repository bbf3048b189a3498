"""The record store in memory."""

from dataclasses import replace

import pytest

from gateway.core.record import GenerationRecord
from gateway.stores.memory import RecordStore

RECORD = GenerationRecord(
    id="gen-0", created="2026-01-01T00:00:00.000Z", surface="chat", stream=True, requested_model="m", outcome="ok"
)


def _record(number: int) -> GenerationRecord:
    return replace(RECORD, id=f"gen-{number}", key=f"key-{number}")


def test_a_record_is_found_by_its_id_with_the_key_that_made_it() -> None:
    store = RecordStore()
    store.record(_record(1))
    found = store.get("gen-1")
    assert found is not None
    assert found.key == "key-1"
    assert store.get("gen-2") is None


def test_the_oldest_records_leave_first() -> None:
    store = RecordStore(limit=3)
    for number in range(5):
        store.record(_record(number))
    assert len(store) == 3
    assert [number for number in range(5) if store.get(f"gen-{number}")] == [2, 3, 4]


def test_a_record_of_the_same_id_replaces_and_counts_as_new() -> None:
    store = RecordStore(limit=2)
    store.record(_record(1))
    store.record(_record(2))
    store.record(replace(_record(1), outcome="error"))
    store.record(_record(3))
    assert store.get("gen-2") is None
    found = store.get("gen-1")
    assert found is not None
    assert found.outcome == "error"


def test_a_store_that_could_keep_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RecordStore(limit=0)
