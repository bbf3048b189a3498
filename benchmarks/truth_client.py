"""A client that only reads: so many streams at once, and odd ones that leave early or read a kilobyte a second."""

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.native_build import BenchmarkError

_END = b"0\r\n\r\n"
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: the gateway's id of it, and the prompt's length, by which the provider knows it."""

    id: str
    prompt_tokens: int


def request_bytes(model: str, prompt_tokens: int, **fields: Any) -> bytes:
    """A streamed chat completion whose prompt has exactly so many tokens to the simulated provider."""
    messages = [{"role": "user", "content": "x" * (prompt_tokens * _CHARS_PER_TOKEN)}]
    body = json.dumps({"model": model, "stream": True, "messages": messages, **fields}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Reader(asyncio.Protocol):
    """A kept connection that takes one answer at a time and looks at nothing but its head and its end."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._in_head = True
        self._tail = b""
        self._answer: asyncio.Future[str] | None = None
        self._id = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BenchmarkError("the gateway closed a connection within an answer"))

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head += data
            head, found, data = bytes(self._head).partition(b"\r\n\r\n")
            if not found:
                return
            self._in_head = False
            self._id = _generation_id(head)
        self._tail = (self._tail + data)[-len(_END) :]
        if self._tail == _END and self._answer is not None and not self._answer.done():
            self._answer.set_result(self._id)

    async def ask(self, request: bytes) -> str:
        """The generation's id, when the answer has ended."""
        assert self._transport is not None
        self._head.clear()
        self._in_head, self._tail = True, b""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _generation_id(head: bytes) -> str:
    lines = head.decode("latin-1").split("\r\n")
    if lines[0].split()[1] != "200":
        raise BenchmarkError(f"the gateway answered {lines[0]}")
    return next(line.partition(":")[2].strip() for line in lines if line.lower().startswith("x-request-id:"))


async def streams(
    port: int, model: str, counts: tuple[int, int], spread_s: float, done: Callable[[], None]
) -> list[Sent]:
    """`counts`: how many at once, how many in all. The first ones begin spread over so many seconds."""
    at_once, total = counts
    numbers = iter(range(1, total + 1))
    sent: list[Sent] = []

    async def worker(place: int) -> None:
        await asyncio.sleep(spread_s * place / at_once)
        _, reader = await asyncio.get_running_loop().create_connection(Reader, "127.0.0.1", port)
        try:
            for number in numbers:
                sent.append(Sent(await reader.ask(request_bytes(model, number)), number))
                done()
        finally:
            reader.close()

    async with asyncio.TaskGroup() as group:
        for place in range(at_once):
            group.create_task(worker(place))
    return sent


async def one(port: int, model: str, prompt_tokens: int, **fields: Any) -> Sent:
    """A single stream, read to its end."""
    _, reader = await asyncio.get_running_loop().create_connection(Reader, "127.0.0.1", port)
    try:
        return Sent(await reader.ask(request_bytes(model, prompt_tokens, **fields)), prompt_tokens)
    finally:
        reader.close()


async def leaving(port: int, request: bytes, events: int) -> str:
    """The id of a stream whose client leaves after so many events."""
    loop = asyncio.get_running_loop()
    with _connected(port) as connection:
        await loop.sock_sendall(connection, request)
        seen = b""
        while seen.count(b"data: ") < events:
            seen += await loop.sock_recv(connection, 4096)
    return _generation_id(seen.partition(b"\r\n\r\n")[0])


async def slowly(port: int, request: bytes, slow_s: float) -> str:
    """The id of a stream whose client takes 1 KB/s for so many seconds, and then all there is."""
    loop = asyncio.get_running_loop()
    with _connected(port) as connection:
        await loop.sock_sendall(connection, request)
        seen, began = b"", loop.time()
        while loop.time() - began < slow_s:
            seen += await loop.sock_recv(connection, 256)
            await asyncio.sleep(0.25)
        while not seen.endswith(_END):
            more = await loop.sock_recv(connection, 65_536)
            if not more:
                raise BenchmarkError("the gateway gave the slow client up")
            seen += more
    return _generation_id(seen.partition(b"\r\n\r\n")[0])


def _connected(port: int) -> socket.socket:
    """Buffers so small that a slow reader is felt at the other end: for large segments a kernel holds megabytes."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
    connection.connect(("127.0.0.1", port))
    connection.setblocking(False)
    return connection
