"""The client's connection: who leaves is noticed at once, and a head has a bound."""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.api.asgi import Receive, Scope
from gateway.api.refusals import refusal

MAX_HEAD = 64 * 1024
# A connection that sends no complete head in this time is closed: idle sockets must not use the descriptors up.
HEAD_S = 30.0
# Requests sent ahead of the answers before them; with more than these the connection is not read until one is answered.
MAX_AHEAD = 8
# A client that takes not one byte of its answer in this time is given up.
STALL_S = 120.0
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
    """uvicorn's HTTP protocol that reports a lost client without a task that waits for it, bounds the head (its size,
    and how long it takes), gives up a client that stopped reading, and declines offers to speak another protocol.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.peer = Peer()
        self._head_bytes = 0
        self._stalled: asyncio.TimerHandle | None = None
        self._head_due: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._head_arrived()
        self._flows()
        self.peer.leave()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_S, self.transport.abort)
        self.scope["extensions"] = {EXTENSION: {"peer": self.peer, "flow": self.flow}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._head_arrived()
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            self._read_on()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self._read_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._flows()

    def _read_on(self) -> None:
        """uvicorn stops reading at a large body or a request sent ahead; unread, a socket does not tell who left."""
        if len(self.pipeline) <= MAX_AHEAD:
            self.flow.resume_reading()

    def _decline(self, rest: bytes) -> None:
        """Serves the request as if it had not offered another protocol (RFC 9110, section 7.8).

        Java's HTTP client offers HTTP/2 with every request. The parser takes what follows for that protocol's bytes,
        so another one is given the head without the offer.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("Invalid HTTP request received.")
            return
        lines = [b"%b %b HTTP/1.1" % (method, self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _watch_stall(self) -> None:
        self._flows()
        self._stalled = self.loop.call_later(STALL_S, self._on_stall, self.transport.get_write_buffer_size())

    def _on_stall(self, waiting: int) -> None:
        if self.transport.get_write_buffer_size() < waiting:
            self._watch_stall()
        else:
            self.transport.abort()

    def _flows(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > MAX_HEAD:
            answer = refusal(431, f"the head of the request is over {MAX_HEAD} bytes", "head_too_large")
        else:
            answer = refusal(400, "this is no valid HTTP/1.1 request", "invalid_http")
        self.transport.write(answer)
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
