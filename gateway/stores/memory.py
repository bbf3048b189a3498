"""State in this process: the latest generation records by id."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.core.record import GenerationRecord, as_json

LIMIT = 10_000


class RecordStore:
    """A `Listener` that keeps the last `limit` records. The oldest leave first."""

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError("a record store keeps at least one record")
        self._limit = limit
        self._records: dict[str, GenerationRecord] = {}

    def __len__(self) -> int:
        return len(self._records)

    def record(self, record: GenerationRecord) -> None:
        """Keeps the record; one of the same id is replaced and counts as new."""
        self.keep(record)

    def keep(self, record: GenerationRecord) -> GenerationRecord:
        """As `record`; the answer is the record as it is kept."""
        # Gaps are for the histogram: thousands of them in each of ten thousand records would be a gigabyte.
        kept = replace(record, gaps_s=()) if record.gaps_s else record
        self._records.pop(record.id, None)
        self._records[record.id] = kept
        if len(self._records) > self._limit:
            del self._records[next(iter(self._records))]
        return kept

    def get(self, generation_id: str) -> GenerationRecord | None:
        """The record, to whoever asks: who may see it is decided by its `key`, elsewhere."""
        return self._records.get(generation_id)

    async def find(self, generation_id: str) -> Mapping[str, Any] | None:
        """The record's JSON, its `key` among it, to whoever asks."""
        found = self.get(generation_id)
        return None if found is None else as_json(found)
