"""Processes that a benchmark starts, and stops again by their own pid, whatever happens in between."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.native_build import BenchmarkError

_STOP_S = 10.0
_POLL_S = 0.02


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def end_tidily() -> None:
    """SIGTERM ends this program as an exception does: what it started is stopped on the way out."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextmanager
def running(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """The pid of a started command. Its output goes to `log`; it is stopped when the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
        )
    try:
        yield process.pid
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to end, then ends it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_until_serving(pid: int, port: int, log: Path, path: str | None, within_s: float = 20.0) -> None:
    """Waits until the port answers: a connection, or 200 for GET `path`. Raises with the log's end when it does not."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if _ended(pid):
            break
        if _serves(port, path):
            return
        time.sleep(_POLL_S)
    shown = log.read_text(errors="replace")[-2000:] if log.exists() else ""
    raise BenchmarkError(f"a server on port {port} did not come up:\n{shown}")


def _ended(pid: int) -> bool:
    """Gone, or a zombie that has yet to be waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _serves(port: int, path: str | None) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.connect()
        if path is None:
            return True
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
