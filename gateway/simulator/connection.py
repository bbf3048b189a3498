"""One connection: HTTP/1.1 requests in, timelines out. No task per connection, no task per stream."""

import asyncio
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import httptools

from gateway.core.clock import monotonic
from gateway.simulator.playback import Playback
from gateway.simulator.timeline import Ending, Timeline, at_once
from gateway.simulator.truth import Stats, StreamTruth
from gateway.simulator.wire import error_body, json_answer

MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 33_554_432
_MAX_PIPELINED = 16
_LINGER_S = 2.0
# SO_LINGER on with zero seconds: closing sends RST.
_LINGER_ZERO = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read to its end at the monotonic moment `at`."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    keep_alive: bool
    chunked: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """How a request is answered; `truth` for chat answers."""

    timeline: Timeline
    truth: StreamTruth | None = None


class Host(Protocol):
    """What a connection needs of its provider."""

    stats: Stats

    def reply(self, request: Request) -> Reply: ...

    def joined(self, connection: "Connection") -> None: ...

    def left(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Speaks HTTP/1.1 with keep-alive; pipelined requests are answered in turn."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._transport: asyncio.Transport | None = None
        self._playback: Playback | None = None
        self._waiting: deque[Request] = deque()
        self._parser = httptools.HttpRequestParser(self)
        self._refused = False
        self._lingering: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True
        self._begin()

    def _begin(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._host.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop("aborted")
        if self._lingering is not None:
            self._lingering.cancel()
        self._transport = None
        self._host.left(self)

    def eof_received(self) -> bool:
        # A client that closes its half has left: nobody reads the rest.
        self._drop("aborted")
        return False

    def pause_writing(self) -> None:
        if self._playback is not None:
            self._playback.hold()

    def resume_writing(self) -> None:
        if self._playback is not None:
            self._playback.resume()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "Protocol upgrades are not supported")
        except httptools.HttpParserError as error:
            self._refuse(400, f"The request is not valid HTTP: {error}")
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, f"The request head is larger than {MAX_HEAD_BYTES} bytes")
        if len(self._waiting) > _MAX_PIPELINED:
            self.kill()

    # What the parser tells

    def on_message_begin(self) -> None:
        self._begin()
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        expects = any(name.lower() == "expect" and "100-continue" in value.lower() for name, value in self._headers)
        if expects and self._transport is not None and self._playback is None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) <= MAX_BODY_BYTES:
            self._body += body
        else:
            self._refuse(413, f"The body is larger than {MAX_BODY_BYTES} bytes")

    def on_message_complete(self) -> None:
        self._in_head = True
        if self._refused:
            return
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            target=self._target.decode("latin-1"),
            headers=tuple(self._headers),
            body=bytes(self._body),
            at=monotonic(),
            keep_alive=self._parser.should_keep_alive(),
            chunked=self._parser.get_http_version() == "1.1",
        )
        self._begin()
        self._waiting.append(request)
        # Not at once: of requests that arrive together, none is to be stamped after the others were answered.
        asyncio.get_running_loop().call_soon(self._serve_next)

    # Answering

    def kill(self) -> None:
        """Resets the connection at once."""
        self._drop("killed")
        if self._transport is not None:
            _reset(self._transport)

    def fall(self) -> None:
        """As when the server's process dies: an answer in progress is reset, an idle connection closed."""
        if self._playback is not None:
            self.kill()
        elif self._transport is not None:
            self._transport.close()

    def _serve_next(self) -> None:
        """Answers the request that waits longest, unless an answer is in progress: its end leads here again."""
        if self._playback is not None:
            return
        if self._waiting and self._transport is not None and not self._transport.is_closing():
            request = self._waiting.popleft()
            self._play(self._host.reply(request), request.at)

    def _play(self, reply: Reply, at: float) -> None:
        assert self._transport is not None
        ended: Callable[[Ending], None] = self._answered
        # The schedule counts from the moment the request was read, also where it waited behind another.
        self._playback = Playback(self._transport, reply.timeline, reply.truth, self._host.stats, at, ended)
        self._playback.start()

    def _answered(self, ending: Ending) -> None:
        self._playback = None
        if self._transport is None:
            return
        if ending is Ending.RESET:
            _reset(self._transport)
        elif self._refused:
            # The rest of the request is read and dropped: closing now would reset the answer away.
            self._transport.write_eof()
            self._lingering = asyncio.get_running_loop().call_later(_LINGER_S, self._transport.abort)
        elif ending is Ending.CLOSE:
            self._transport.close()
        else:
            self._serve_next()

    def _refuse(self, status: int, message: str) -> None:
        if self._refused:
            return
        self._refused = True
        busy = self._playback is not None or bool(self._waiting)
        self._waiting.clear()
        if busy or self._transport is None:
            self.kill()
            return
        answer = json_answer(status, error_body(status, message), keep_alive=False, extra={})
        self._play(Reply(at_once(answer, Ending.CLOSE)), monotonic())

    def _drop(self, ending: str) -> None:
        self._waiting.clear()
        if self._playback is not None:
            self._playback.stop(ending)
            self._playback = None


def _reset(transport: asyncio.Transport) -> None:
    known = transport.get_extra_info("socket")
    if known is not None and known.fileno() >= 0:
        # Through a second descriptor: not every event loop lets its own socket be changed.
        with socket.socket(fileno=os.dup(known.fileno())) as twin:
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
    transport.abort()
