"""The thread that writes the state database. Only it writes."""

import logging
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gateway.core.clock import monotonic
from gateway.core.errors import ConfigError
from gateway.core.ports import Clock, Hour
from gateway.core.record import GenerationRecord
from gateway.stores.database import PRUNE_ROWS, Database, Row, is_damage
from gateway.stores.folder import open_state
from gateway.stores.outbox import Outbox

# Records of one transaction.
BATCH = 1_000
CLOSE_S = 5.0
TELL_EVERY_S = 60.0
PRUNE_EVERY_S = 5.0
# Transactions of one pruning, so that the thread comes back to its queue.
_PRUNE_STEPS = 20
_LONGEST_RETRY_S = 30.0
# Packing a record holds the interpreter for some 60 µs, in which no stream is read: a few, then a pause.
_PACKED_AT_ONCE = 4
_PAUSE_S = 0.0005

log = logging.getLogger("gateway.stores")


class StateWriter:
    """Writes what is in the outbox every `flush_s` seconds. `run` names this process in the rows it writes.

    Raises ConfigError where the folder cannot be used.
    """

    def __init__(self, folder: Path, outbox: Outbox, run: str, *, flush_s: float, wall: Clock) -> None:
        self._folder = folder
        self._outbox = outbox
        self._run_id = run
        self._flush_s = flush_s
        self._wall = wall
        # The latest; after a failure one that is closed.
        self._opened = open_state(folder)
        self._is_open = True
        self._rows: list[Row] = []
        self._lost = 0
        self._failures = 0
        self._retry_at = self._prune_at = 0.0
        self._told, self._tell_at = 0, 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="state", daemon=True)
        self._thread.start()

    @property
    def file(self) -> Path:
        """The database; it may have been taken away."""
        return self._opened.file

    @property
    def dropped(self) -> int:
        """Records and hours that will never be written."""
        return self._outbox.refused + self._lost

    def close(self) -> None:
        """Writes what waits, for at most five seconds."""
        self._closing.set()
        self._outbox.wake.set()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            log.warning("state: the disk is too slow; up to %d records are lost", len(self._outbox) + len(self._rows))

    def _work(self) -> None:
        while not self._closing.is_set():
            self._outbox.wake.wait(self._flush_s)
            self._outbox.wake.clear()
            if monotonic() >= self._retry_at:
                self._turn()
            self._tell()
        self._turn()
        if self._rows or len(self._outbox):
            log.warning("state: %d records could not be written", len(self._rows) + len(self._outbox))
        self._close()

    def _turn(self) -> None:
        while self._write_batch():
            pass
        if not self._failures and monotonic() >= self._prune_at:
            self._prune_at = monotonic() + PRUNE_EVERY_S
            self._prune()

    def _write_batch(self) -> bool:
        """One transaction. False where nothing waits any more, or the disk fails."""
        hours, learnt = self._outbox.take_figures()
        try:
            database = self._database()
            self._pack(database)
            if not (self._rows or hours or learnt):
                return False
            now_s = int(self._wall())
            stamped = [(name, now_s, payload) for name, payload in learnt.items()]
            database.write(self._rows, hours, stamped, self._run_id, self._pause)
        except (sqlite3.OperationalError, ConfigError) as error:
            self._failed(error, hours, learnt)
            return False
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if is_damage(error):
                self._failed(error, hours, learnt)
                return False
            # Not the disk but what it was given, such as a name that is no text: no retry will help.
            self._lost += len(self._rows) + len(hours)
            log.warning("state: %d rows cannot be stored: %s", len(self._rows) + len(hours), error)
        self._rows = []
        if self._failures:
            self._failures = 0
            log.info("state is written again")
        return len(self._outbox) > 0

    def _database(self) -> Database:
        """The database, opened anew where its file was taken away. Raises ConfigError."""
        if not self._is_open or not self._opened.in_place:
            self._reopen(damaged=False)
        return self._opened.database

    def _reopen(self, *, damaged: bool) -> None:
        self._close()
        self._opened = open_state(self._folder, self._opened, damaged=damaged)
        self._is_open = True

    def _close(self) -> None:
        self._is_open = False
        self._opened.database.close()

    def _pack(self, database: Database) -> None:
        """Makes rows of the oldest records."""
        packed = 0
        while len(self._rows) < BATCH and (record := self._outbox.take()) is not None:
            try:
                self._rows.append(_row(database, record))
            except (TypeError, ValueError) as error:  # orjson's encode errors are TypeErrors
                self._lost += 1
                log.warning("state: the record of request %s cannot be stored: %s", record.id, error)
            packed += 1
            if packed % _PACKED_AT_ONCE == 0:
                self._pause()

    def _pause(self) -> None:
        """Lets the event loop have the interpreter; none when closing."""
        self._closing.wait(_PAUSE_S)

    def _failed(self, error: Exception, hours: Sequence[Hour], learnt: Mapping[str, bytes]) -> None:
        """Keeps everything for a later try; a file that is damaged is put aside first."""
        self._outbox.give_back(hours, learnt)
        self._failures += 1
        self._retry_at = monotonic() + min(_LONGEST_RETRY_S, 2.0 ** (self._failures - 1))
        if self._failures == 1:
            log.warning("state cannot be written, and is tried again: %s", error)
        if is_damage(error):
            try:
                self._reopen(damaged=True)
            except ConfigError as unusable:
                log.warning("%s", unusable)

    def _prune(self) -> None:
        try:
            for _ in range(_PRUNE_STEPS):
                if self._closing.is_set() or self._database().prune(self._wall()) < PRUNE_ROWS:
                    return
        except (sqlite3.Error, ConfigError) as error:
            self._failed(error, (), {})

    def _tell(self) -> None:
        """Once a minute, where more was dropped since."""
        now, dropped = monotonic(), self.dropped
        if dropped > self._told and now >= self._tell_at:
            self._told, self._tell_at = dropped, now + TELL_EVERY_S
            log.warning("state has dropped %d records so far: its disk is full or too slow", dropped)


def _row(database: Database, record: GenerationRecord) -> Row:
    created = int(datetime.fromisoformat(record.created).timestamp())
    return Row(record.id, created, record.key, database.packer.pack(record))
