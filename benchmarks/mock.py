"""The mock upstream: a native process whose pace is set by fields of each request's body."""

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.native_build import BenchmarkError
from benchmarks.processes import stop


@dataclass(frozen=True, slots=True)
class Counters:
    """What the mock upstream has seen. The connection that asks is among `connections`."""

    connections: int
    open_streams: int
    streams: int
    finished: int
    aborted: int
    chunks: int
    requests: int


@dataclass(frozen=True, slots=True)
class MockUpstream:
    """A mock upstream that listens on loopback."""

    port: int
    pid: int

    def counters(self) -> Counters:
        """Its counters now."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/")
            return Counters(**json.loads(connection.getresponse().read()))
        finally:
            connection.close()


@contextmanager
def mock_upstream(program: Path) -> Iterator[MockUpstream]:
    """A mock upstream on a port of the kernel's choice, stopped when the block ends."""
    process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        if process.stdout is None:
            raise BenchmarkError("the mock upstream has no output")
        first = process.stdout.readline()
        if not first:
            raise BenchmarkError("the mock upstream did not start")
        yield MockUpstream(port=json.loads(first)["port"], pid=process.pid)
    finally:
        stop(process)
        if process.stdout is not None:
            process.stdout.close()
