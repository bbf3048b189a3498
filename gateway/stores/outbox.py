"""What waits for the state database: filled by the event loop, emptied by the writing thread."""

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from gateway.core.ports import Hour
from gateway.core.record import GenerationRecord

# Hours that wait for a disk: a day of 400 deployments.
HOURS_WAITING = 10_000


class Outbox:
    """Up to `limit` records, and of every deployment's hour the latest. What does not fit is dropped and counted.

    `wake` is set when `batch` records wait.
    """

    def __init__(self, limit: int, batch: int) -> None:
        self.wake = threading.Event()
        self._limit = limit
        self._batch = batch
        self._records: deque[GenerationRecord] = deque()
        self._hours: dict[tuple[str, int], Hour] = {}
        self._learnt: dict[str, bytes] = {}
        # Held for as long as it takes to put statistics in or take them out: the loop never waits for a disk.
        self._lock = threading.Lock()
        self._refused = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def refused(self) -> int:
        """Records and hours that found no place."""
        return self._refused

    def add(self, record: GenerationRecord) -> None:
        """A few tenths of a microsecond, whatever the disk does."""
        waiting = len(self._records)
        if waiting >= self._limit:
            self._refused += 1
            return
        self._records.append(record)
        if waiting == self._batch:
            self.wake.set()

    def add_figures(self, hours: Iterable[Hour], learnt: Mapping[str, bytes]) -> None:
        """A later hour of the same name replaces the earlier one."""
        with self._lock:
            for entry in hours:
                self._hours[entry.deployment_id, entry.hour] = entry
            self._learnt.update(learnt)
            self._trim()

    def take(self) -> GenerationRecord | None:
        """The record that has waited longest."""
        try:
            return self._records.popleft()
        except IndexError:
            return None

    def take_figures(self) -> tuple[Sequence[Hour], Mapping[str, bytes]]:
        """All that wait."""
        with self._lock:
            hours, learnt = tuple(self._hours.values()), self._learnt
            self._hours, self._learnt = {}, {}
        return hours, learnt

    def give_back(self, hours: Iterable[Hour], learnt: Mapping[str, bytes]) -> None:
        """What could not be written waits on, unless a later one has come."""
        with self._lock:
            self._hours = {(entry.deployment_id, entry.hour): entry for entry in hours} | self._hours
            self._learnt = {**learnt, **self._learnt}
            self._trim()

    def _trim(self) -> None:
        while len(self._hours) > HOURS_WAITING:
            del self._hours[next(iter(self._hours))]
            self._refused += 1
