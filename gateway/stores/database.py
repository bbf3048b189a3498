"""The database of a state folder: its schema, and every statement that is run on it. Synchronous.

Not safe across threads; as many connections and processes as there are may work on one file.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from gateway.core.ports import Hour
from gateway.stores.packing import Packer, new_dictionary

# Raised with every change of the tables; a database of a higher one is left alone.
SCHEMA_VERSION = 1
# How long a statement waits for another process that writes.
BUSY_S = 2.0
RETENTION_S = 30 * 86_400
MAX_BYTES = 512 * 1024 * 1024
# Rows removed in one transaction: a few milliseconds.
PRUNE_ROWS = 500
_SEAL_BYTES = 4
_WAL_BYTES = 16 * 1024 * 1024

_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE records (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created INTEGER NOT NULL, key TEXT, body BLOB NOT NULL)""",
    "CREATE INDEX records_by_age ON records (created)",
    """CREATE TABLE hours (
        seq INTEGER PRIMARY KEY, hour INTEGER NOT NULL, deployment TEXT NOT NULL, run TEXT NOT NULL,
        payload BLOB NOT NULL, UNIQUE (hour, deployment, run))""",
    "CREATE TABLE learnt (deployment TEXT PRIMARY KEY, at INTEGER NOT NULL, payload BLOB NOT NULL) WITHOUT ROWID",
)
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


# Rows inserted before a pause. SQLite lets go of the interpreter for each row, but too shortly for another thread to
# take it: without a pause the event loop gets it after 5 ms only.
_AT_ONCE = 16
Pause = Callable[[], object]


def _no_pause() -> None:
    """For those who have no event loop beside them."""


class Damaged(Exception):
    """The file is no database, or not the one this module makes."""


class TooNew(Exception):
    """The file was written by a later version."""


def _sealed(payload: bytes) -> bytes:
    """With a checksum: SQLite has none, and a wrong bit in a statistic would be believed."""
    return payload + crc32(payload).to_bytes(_SEAL_BYTES, "big")


def _unsealed(value: object) -> bytes | None:
    """What was sealed, None where it is not what it was."""
    if not isinstance(value, bytes) or _sealed(value[:-_SEAL_BYTES]) != value:
        return None
    return value[:-_SEAL_BYTES]


def is_damage(error: Exception) -> bool:
    """Whether the file itself is broken, and no retry will help."""
    # Extended codes have the plain one in their low byte.
    return isinstance(error, Damaged) or (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _CORRUPT


# Deployment, seconds since the epoch, payload.
Learnt = tuple[str, int, bytes]


@dataclass(frozen=True, slots=True)
class Row:
    """A packed record. `created` in seconds since the epoch."""

    id: str
    created: int
    key: str | None
    body: bytes


class Database:
    """One connection. Raises Damaged, TooNew, sqlite3.Error."""

    def __init__(self, file: Path, *, writes: bool) -> None:
        """`writes`: makes the tables where the file is empty, and finds out whether it can be written."""
        mode = "rw" if writes else "ro"
        self._connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self.packer = Packer(self._prepare(writes))
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, writes: bool) -> bytes:
        """The dictionary that the rows are packed with."""
        if writes:
            self._connection.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing that was committed; a machine that loses power, the last seconds.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        version = self._number("PRAGMA user_version")
        if version > SCHEMA_VERSION:
            raise TooNew(f"it was written by a later version (schema {version}, this one knows {SCHEMA_VERSION})")
        if version == 0 and writes:
            self._make_tables()
        elif writes:
            self._try_to_write()
        return self._dictionary()

    def _make_tables(self) -> None:
        if self._number("SELECT count(*) FROM sqlite_master"):
            raise Damaged("it holds tables, but not the gateway's")
        with self._transaction():
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute("INSERT INTO meta VALUES ('dictionary', ?)", (new_dictionary(),))
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _try_to_write(self) -> None:
        """A file without write permission opens all the same, and would refuse the first batch only."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        else:
            self._connection.execute("ROLLBACK")

    def _dictionary(self) -> bytes:
        try:
            found = self._connection.execute("SELECT value FROM meta WHERE name = 'dictionary'").fetchone()
            for table in ("records", "hours", "learnt"):
                self._connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            raise Damaged(str(error)) from error
        if found is None or not isinstance(found[0], bytes):
            raise Damaged("its dictionary is missing")
        return found[0]

    def _number(self, query: str) -> int:
        number: int = self._connection.execute(query).fetchone()[0]
        return number

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk has rolled back by itself already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def write(
        self, rows: Iterable[Row], hours: Iterable[Hour], learnt: Iterable[Learnt], run: str, pause: Pause = _no_pause
    ) -> None:
        """All of it or nothing. A row replaces an earlier one of the same name. `pause` is called every few rows."""
        with self._transaction():
            self._insert(
                "INSERT OR REPLACE INTO records (id, created, key, body) VALUES (?, ?, ?, ?)",
                ((row.id, row.created, row.key, _sealed(row.body)) for row in rows),
                pause,
            )
            self._insert(
                "INSERT INTO hours (hour, deployment, run, payload) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET payload = excluded.payload",
                ((entry.hour, entry.deployment_id, run, _sealed(entry.payload)) for entry in hours),
                pause,
            )
            self._insert(
                "INSERT OR REPLACE INTO learnt VALUES (?, ?, ?)",
                ((name, at, _sealed(payload)) for name, at, payload in learnt),
                pause,
            )

    def _insert(self, statement: str, values: Iterable[tuple[object, ...]], pause: Pause) -> None:
        rest = iter(values)
        while few := tuple(islice(rest, _AT_ONCE)):
            self._connection.executemany(statement, few)
            pause()

    def record(self, generation_id: str) -> Any:
        """The JSON of one record, None where there is none (that can be read)."""
        try:
            found = self._connection.execute("SELECT body FROM records WHERE id = ?", (generation_id,)).fetchone()
            body = None if found is None else _unsealed(found[0])
            return None if body is None else self.packer.unpack(body)
        except ValueError:  # an id that is no text, a row that is no record
            return None

    def hours(self, first: int, last: int) -> Iterator[Hour]:
        """The hours from `first` to `last`, of every run. Damaged rows are left out."""
        rows = self._connection.execute(
            "SELECT deployment, hour, payload FROM hours WHERE hour BETWEEN ? AND ?", (first, last)
        )
        for deployment, hour, sealed in rows:
            payload = _unsealed(sealed)
            if payload is not None and isinstance(deployment, str) and isinstance(hour, int):
                yield Hour(deployment, hour, payload)

    def learnt(self) -> dict[str, bytes]:
        """The latest of each deployment. Damaged rows are left out."""
        rows = self._connection.execute("SELECT deployment, payload FROM learnt")
        read = ((name, _unsealed(sealed)) for name, sealed in rows)
        return {name: payload for name, payload in read if payload is not None and isinstance(name, str)}

    def prune(self, now_s: float, max_bytes: int = MAX_BYTES) -> int:
        """Removes some rows that are too old or too many; the number of them. Fewer than PRUNE_ROWS: all is done."""
        before_s = int(now_s) - RETENTION_S
        with self._transaction():
            removed = self._delete("records", "created < ? ORDER BY created", before_s)
            removed = max(removed, self._delete("hours", "hour < ? ORDER BY hour", before_s // 3600))
            self._connection.execute("DELETE FROM learnt WHERE at < ?", (before_s,))
            if removed < PRUNE_ROWS and self.used_bytes > max_bytes:
                removed = self._delete("records", "1 ORDER BY seq")
        return removed

    def _delete(self, table: str, which: str, *values: int) -> int:
        statement = f"DELETE FROM {table} WHERE seq IN (SELECT seq FROM {table} WHERE {which} LIMIT {PRUNE_ROWS})"
        return self._connection.execute(statement, values).rowcount

    @property
    def used_bytes(self) -> int:
        """Pages with content. The file keeps the pages of removed rows, and fills them first."""
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def close(self) -> None:
        self._connection.close()
