"""State that outlives the process: generation records, hourly figures and what was learnt, in a folder.

The event loop puts them in a queue; a thread packs and writes what has gathered. When the disk does not follow,
records are dropped and counted: no request waits for a disk, and no queue grows.
"""

import asyncio
import logging
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.core.errors import RequestError
from gateway.core.ports import Clock, Hour
from gateway.core.record import GenerationRecord
from gateway.core.speed import WINDOWS
from gateway.stores.database import Damaged, Database, TooNew
from gateway.stores.memory import RecordStore
from gateway.stores.outbox import Outbox
from gateway.stores.writer import BATCH, StateWriter

FLUSH_S = 1.0
QUEUE = 10_000

_READ_ERRORS = (sqlite3.Error, Damaged, TooNew)

log = logging.getLogger("gateway.stores")


class SqliteState:
    """A record store and a `Listener`; keeps the statistics of `Remembered` too.

    `wall` gives seconds since the epoch. Raises ConfigError where the folder cannot be used.
    """

    def __init__(self, folder: Path, *, limit: int = QUEUE, flush_s: float = FLUSH_S, wall: Clock = time.time) -> None:
        self._wall = wall
        self._memory = RecordStore()
        self._outbox = Outbox(limit, BATCH)
        self._writer = StateWriter(folder, self._outbox, uuid.uuid4().hex[:16], flush_s=flush_s, wall=wall)

    @property
    def dropped(self) -> int:
        """Records and hours that will never be stored: the disk did not follow, or they could not be written."""
        return self._writer.dropped

    def record(self, record: GenerationRecord) -> None:
        """Keeps it in memory and queues it for the database. Never blocks, never raises."""
        self._outbox.add(self._memory.keep(record))

    def get(self, generation_id: str) -> GenerationRecord | None:
        """One of the latest records of this process."""
        return self._memory.get(generation_id)

    async def find(self, generation_id: str) -> Mapping[str, Any] | None:
        """The record's JSON, its `key` among it, to whoever asks. Raises RequestError 503 where the disk fails."""
        found = await self._memory.find(generation_id)
        return found if found is not None else await asyncio.to_thread(self._stored, generation_id)

    def _stored(self, generation_id: str) -> Mapping[str, Any] | None:
        try:
            with self._reading() as database:
                found = database.record(generation_id)
        except _READ_ERRORS as error:
            log.warning("the state database cannot be read: %s", error)
            raise RequestError(503, "stored generations cannot be read now", code="state_unavailable") from error
        return found if isinstance(found, dict) else None

    def keep(self, hours: Iterable[Hour], learnt: Mapping[str, bytes]) -> None:
        """Queues statistics for the database. Of one deployment's hour the latest counts."""
        self._outbox.add_figures(hours, learnt)

    def remembered(self) -> tuple[Sequence[Hour], Mapping[str, bytes]]:
        """What earlier processes left, and others at work: the hours of the longest window, and what was learnt.

        Reads the disk. What cannot be read is left out.
        """
        now_hour = int(self._wall() // 3600)
        first_hour = now_hour - int(max(WINDOWS.values()) // 3600)
        hours: list[Hour] = []
        try:
            with self._reading() as database:
                # An hour that is far from come was written by a clock that was wrong.
                hours.extend(database.hours(first_hour, now_hour + 1))
                return hours, database.learnt()
        except _READ_ERRORS as error:
            log.warning("the statistics of earlier processes cannot all be read: %s", error)
            return hours, {}

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """A connection of its own: a look-up is rare, and so it shares nothing with the writing thread."""
        database = Database(self._writer.file, writes=False)
        try:
            yield database
        finally:
            database.close()

    def close(self) -> None:
        """Writes what is queued, for at most five seconds."""
        self._writer.close()
