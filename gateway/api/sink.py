"""The way back to one client over ASGI."""

from collections.abc import Sequence
from typing import Protocol

from gateway.api.asgi import Scope, Send
from gateway.api.peer import EXTENSION, Departure
from gateway.core.clock import monotonic


class Flow(Protocol):
    """Whether the client's connection takes any more at the moment."""

    write_paused: bool


class AsgiSink:
    """Implements the `Sink` port. Writes wait while the client does not read: the server holds them back."""

    __slots__ = ("_departure", "_flow", "_send", "started")

    def __init__(self, scope: Scope, send: Send, departure: Departure) -> None:
        self._flow: Flow = scope["extensions"][EXTENSION]["flow"]
        self._departure = departure
        self._send = send
        self.started = False

    @property
    def full(self) -> bool:
        return self._flow.write_paused

    @property
    def left(self) -> bool:
        return self._departure.came

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def write(self, data: bytes) -> float:
        # Only a connection whose buffer is full holds a write back; a busy process is no slow client.
        began = monotonic() if self._flow.write_paused else 0.0
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        return monotonic() - began if began else 0.0

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
