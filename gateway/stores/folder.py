"""The state folder: made, locked while a database is opened, and a damaged database put aside.

The folder is 0700 where the gateway makes it; the files in it are 0600.
"""

import contextlib
import fcntl
import logging
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.core.clock import monotonic
from gateway.core.errors import ConfigError
from gateway.stores.database import Damaged, Database, TooNew, is_damage

LOCK_S = 5.0
_LOOK_S = 0.02
_NAME = re.compile(r"state-(\d{1,9})\.db(\.damaged)?")
_SIDE_FILES = ("", "-wal", "-shm")

log = logging.getLogger("gateway.stores")


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that can be written, and which file it was when it was opened."""

    database: Database
    file: Path
    number: int
    inode: int

    @property
    def in_place(self) -> bool:
        """False where the file was removed or put aside meanwhile: what is written to it is lost."""
        try:
            return os.stat(self.file).st_ino == self.inode
        except OSError:
            return False


def open_state(folder: Path, earlier: Opened | None = None, *, damaged: bool = False) -> Opened:
    """The folder's database, made where there is none; a damaged one is put aside and a new one begun.

    `earlier` is the one this process had before, closed by now; `damaged`: it turned out to be. Raises ConfigError
    where the folder cannot be used.
    """
    try:
        _make(folder)
        with _locked(folder):
            if earlier is not None and damaged and earlier.in_place:
                _put_aside(earlier.file, "found while it was in use")
            return _open(folder, 0 if earlier is None else earlier.number)
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    except (sqlite3.Error, Damaged, TooNew) as error:
        raise _unusable(folder, str(error)) from error


def _unusable(folder: Path, why: str) -> ConfigError:
    return ConfigError([f"state_dir: cannot keep state in {folder}: {why}"])


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise OSError(error.errno, "it is no folder") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time makes a database here, or puts one aside."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / "lock", flags, 0o600)
    try:
        until = monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if monotonic() >= until:
                    raise OSError(error.errno, "another process holds its lock") from error
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _open(folder: Path, known: int) -> Opened:
    """With the lock held. A second damaged one in a row is given up on: the disk does not keep what it is given."""
    for last in (False, True):
        number = _number(folder, known)
        file = folder / f"state-{number}.db"
        _make_file(file)
        try:
            return Opened(Database(file, writes=True), file, number, os.stat(file).st_ino)
        except (Damaged, sqlite3.Error) as error:
            if last or not is_damage(error):
                raise
            _put_aside(file, str(error))
    raise AssertionError


def _number(folder: Path, known: int) -> int:
    """The highest number in use, else a new one, over `known` too. Numbers are used once.

    SQLite removes the log of a database by its name when the last process closes it. A process that still has a
    damaged or deleted database open must not remove the log of the one that took its place.
    """
    highest, in_use = known, False
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match and int(match[1]) >= highest:
            highest, in_use = int(match[1]), match[2] is None
    return highest if in_use else highest + 1


def _make_file(file: Path) -> None:
    """Never opens a file that is there: closing it again would take SQLite's locks of this process away."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        mode = os.lstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(0, f"{file.name} is no regular file") from None
        if stat.S_IMODE(mode) != 0o600:
            os.chmod(file, 0o600)


def _put_aside(file: Path, why: str) -> None:
    """Renames it; of those that were put aside only the latest stays."""
    for earlier in file.parent.glob("state-*.db.damaged*"):
        earlier.unlink(missing_ok=True)
    aside = f"{file.name}.damaged"
    for ending in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{file}{ending}", file.parent / f"{aside}{ending}")
    log.error("the state database %s is damaged (%s): put aside as %s, a new one is begun", file, why, aside)
