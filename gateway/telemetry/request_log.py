"""The request log: one JSON line a finished request, written by a thread so that a slow disk stops no stream.

A record has no prompt text, so neither has the log.
"""

import logging
import os
import threading
from pathlib import Path
from queue import Empty, SimpleQueue

import orjson

from gateway.core.errors import ConfigError
from gateway.core.record import GenerationRecord, as_json

STDOUT = "stdout"

# Lines gather for this long before a write: one wake-up of the thread serves many requests.
FLUSH_S = 0.1
# A reader of standard output that hangs must not hang the shutdown too.
CLOSE_S = 5.0

log = logging.getLogger("gateway.telemetry")


class RequestLog:
    """A `Listener`. `target` is `stdout` or a file that is appended to, and opened anew when it was rotated away.

    Holds up to `limit` lines that are not written yet; further ones are dropped and counted.
    Raises ConfigError where the file cannot be opened.
    """

    def __init__(self, target: str, *, limit: int = 10_000, flush_s: float = FLUSH_S) -> None:
        self._sink: _Stdout | _File = _Stdout() if target == STDOUT else _File(Path(target))
        self._limit = limit
        self._flush_s = flush_s
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._closing = threading.Event()
        # Two counts, each with one writing thread.
        self._refused = 0
        self._lost = 0
        self._writer = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._writer.start()

    def record(self, record: GenerationRecord) -> None:
        """Queues the line. Never blocks, never raises."""
        if self._closing.is_set() or self._lines.qsize() >= self._limit:
            self._refused += 1
            return
        try:
            line = orjson.dumps(as_json(record), option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:  # orjson's encode errors are TypeErrors
            self._refused += 1
            log.warning("the record of request %s cannot be written as JSON: %s", record.id, error)
            return
        self._lines.put(line)

    @property
    def dropped(self) -> int:
        """Lines that will never be written: the queue was full, or the target failed."""
        return self._refused + self._lost

    def close(self) -> None:
        """Writes what is queued, for at most five seconds, and closes the file."""
        self._closing.set()
        self._lines.put(None)
        self._writer.join(CLOSE_S)

    def _run(self) -> None:
        told = 0
        while (first := self._lines.get()) is not None:
            self._closing.wait(self._flush_s)
            self._write(first + b"".join(self._queued()))
            if self.dropped > told:
                told = self.dropped
                log.warning("the request log has dropped %d lines so far: its target is too slow", told)
        self._sink.close()

    def _queued(self) -> list[bytes]:
        lines: list[bytes] = []
        while True:
            try:
                line = self._lines.get_nowait()
            except Empty:
                return lines
            if line is None:  # the end mark is for the loop above
                self._lines.put(None)
                return lines
            lines.append(line)

    def _write(self, block: bytes) -> None:
        try:
            self._sink.write(block)
        except OSError as error:
            lines = block.count(b"\n")
            self._lost += lines
            log.warning("the request log lost %d lines: %s", lines, error.strerror)


def _write_all(descriptor: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class _Stdout:
    def write(self, block: bytes) -> None:
        _write_all(1, block)

    def close(self) -> None:
        """Standard output is not ours to close."""


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise ConfigError([f"telemetry.request_log: cannot write {path}: {error.strerror}"]) from error

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def write(self, block: bytes) -> None:
        self._follow_rotation()
        _write_all(self._descriptor, block)

    def _follow_rotation(self) -> None:
        ours = os.fstat(self._descriptor)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            there = None
        if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):
            fresh = self._open()
            os.close(self._descriptor)
            self._descriptor = fresh

    def close(self) -> None:
        os.close(self._descriptor)
