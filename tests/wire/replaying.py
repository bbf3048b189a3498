"""An upstream that replays bytes at given moments over a raw socket, and tells when it wrote each piece of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from gateway.core.clock import monotonic

LAST_CHUNK = b"0\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@dataclass(frozen=True, slots=True)
class Reel:
    """One answer: body bytes as they go over the wire, each piece after a wait in seconds.

    `chunked`: the pieces are chunks already (see `chunk`), else the body ends with its connection.
    `stays`: the connection is left open, as after a complete chunked answer. `gate` is awaited before each piece, with
    its number.
    """

    pieces: tuple[tuple[float, bytes], ...]
    chunked: bool = True
    stays: bool = True
    gate: Callable[[int], Awaitable[None]] | None = None


@dataclass(slots=True)
class Played:
    """When it was asked, and for each piece the moments before its write and after the gateway has read it."""

    asked: float = 0.0
    written: list[tuple[float, float]] = field(default_factory=list)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Replayer:
    """Serves each reel at a path of its own, once; `played` says what was done."""

    def __init__(self, reels: Mapping[str, Reel]) -> None:
        self.reels = reels
        self.played: dict[str, Played] = {}
        self.port = 0

    def base_url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Conversation(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()


class _Conversation(asyncio.Protocol):
    def __init__(self, replayer: Replayer) -> None:
        self._replayer = replayer
        self._request = b""
        self._playing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._playing is not None:
            self._playing.cancel()

    def data_received(self, data: bytes) -> None:
        self._request += data
        head, found, body = self._request.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not found or len(body) < int(fields[b"content-length"]):
            return
        name = head.split(b" ", 2)[1].decode().split("/")[1]
        self._request = b""
        self._playing = asyncio.create_task(self._play(name))

    async def _play(self, name: str) -> None:
        reel, played = self._replayer.reels[name], Played()
        self._replayer.played[name] = played
        await _others_turn()
        played.asked = monotonic()
        framing = b"transfer-encoding: chunked\r\n\r\n" if reel.chunked else b"connection: close\r\n\r\n"
        self._transport.write(_HEAD + framing)
        for number, (wait_s, data) in enumerate(reel.pieces):
            if reel.gate is not None:
                await reel.gate(number)
            await asyncio.sleep(wait_s)
            await self._write(data, played)
        if not reel.stays:
            self._transport.close()

    async def _write(self, data: bytes, played: Played) -> None:
        """Two pieces never meet in one read: the loop is left to the gateway before the next one."""
        before = monotonic()
        self._transport.write(data)
        await _others_turn()
        played.written.append((before, monotonic()))


async def _others_turn() -> None:
    """Enough turns of the loop for bytes to be sent in one and read in the next."""
    for _ in range(3):
        await asyncio.sleep(0)
