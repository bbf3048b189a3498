"""A server process that a test starts, waits for and ends."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

START_S = 60.0
STOP_S = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def running(command: Sequence[str | Path], ready: str, output: Path) -> AsyncIterator[None]:
    """Runs while the block lasts; entered when `ready` answers 200. What the process says goes to `output`."""
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        await _wait_until_ready(ready, process, output)
        yield
    finally:
        await _end(process)


async def _wait_until_ready(ready: str, process: asyncio.subprocess.Process, output: Path) -> None:
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(START_S):
        while True:
            if process.returncode is not None:
                raise AssertionError(f"ended with {process.returncode} before it was ready\n{_tail(output)}")
            try:
                if (await client.get(ready)).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


def _tail(output: Path) -> str:
    return output.read_text(encoding="utf-8", errors="replace")[-800:]


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()
