"""State in this process: the latest generation records by id."""

from dataclasses import replace

from gateway.core.record import GenerationRecord

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
        self._records.pop(record.id, None)
        # Gaps are for the histogram: thousands of them in each of ten thousand records would be a gigabyte.
        self._records[record.id] = replace(record, gaps_s=()) if record.gaps_s else record
        if len(self._records) > self._limit:
            del self._records[next(iter(self._records))]

    def get(self, generation_id: str) -> GenerationRecord | None:
        """The record, to whoever asks: who may see it is decided by its `key`, elsewhere."""
        return self._records.get(generation_id)
