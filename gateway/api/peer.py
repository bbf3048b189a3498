"""The client's connection: who leaves is noticed at once, and a head has a bound."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.api.asgi import Receive, Scope

MAX_HEAD = 64 * 1024
# A connection that sends no complete head in this time is closed: idle sockets must not use the descriptors up.
HEAD_S = 30.0
EXTENSION = "gateway.peer"


class Peer:
    """Tells one listener when the client's connection is gone."""

    __slots__ = ("_callback", "gone")

    def __init__(self) -> None:
        self._callback: Callable[[], object] | None = None
        self.gone = False

    def watch(self, callback: Callable[[], object] | None) -> None:
        """Calls `callback` once when the client leaves (at once if it has left); None ends the watch."""
        self._callback = callback
        if self.gone and callback is not None:
            callback()

    def leave(self) -> None:
        """The connection is gone."""
        self.gone = True
        if self._callback is not None:
            self._callback()


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol that reports a lost client without a task that waits for it, and bounds the head:
    its size, and how long it takes.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.peer = Peer()
        self._head_bytes = 0

        self._head_due: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._head_arrived()
        self.peer.leave()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_S, self.transport.abort)
        self.scope["extensions"] = {EXTENSION: {"peer": self.peer}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._head_arrived()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes <= MAX_HEAD:
            super().send_400_response(msg)
            return
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        self.transport.close()

    def _head_arrived(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD:
            # The parser stops at an error of its callback, so the request is never begun.
            raise ValueError("the head is too large")


class Departure:
    """Cancels the request's task when its client leaves. `came` tells that from any other cancellation.

    With PeerProtocol no further task is needed; on another ASGI server one waits for `http.disconnect`.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._peer: Peer | None = scope.get("extensions", {}).get(EXTENSION, {}).get("peer")
        self._receive = receive
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self.came = False

    def __enter__(self) -> "Departure":
        if self._peer is not None:
            self._peer.watch(self._cancel)
        else:
            self._watcher = asyncio.create_task(self._wait())
        return self

    def __exit__(self, *_: object) -> None:
        if self._peer is not None:
            self._peer.watch(None)
        if self._watcher is not None:
            self._watcher.cancel()

    def _cancel(self) -> None:
        self.came = True
        if self._task is not None:
            self._task.cancel()

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._cancel()
