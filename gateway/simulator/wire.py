"""The bytes of an answer: heads, JSON bodies, and event frames made from a template per stream."""

import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from types import MappingProxyType

import orjson

from gateway.core.types import Json
from gateway.simulator.answer import Segment
from gateway.simulator.faults import Status

LAST_CHUNK = b"0\r\n\r\n"
_TYPES = MappingProxyType({400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error"})


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Status line and headers. Unknown codes get an empty reason."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def body_head(status: int, content_type: str, length: int, keep_alive: bool, extra: Mapping[str, str]) -> bytes:
    """The head of an answer of known length."""
    return head(
        status,
        [
            ("content-type", content_type),
            ("content-length", str(length)),
            *_connection(keep_alive),
            *extra.items(),
        ],
    )


def stream_head(chunked: bool, keep_alive: bool, extra: Mapping[str, str]) -> bytes:
    """The head of an event stream."""
    framing = [("transfer-encoding", "chunked")] if chunked else []
    fixed = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
    return head(200, [*fixed, *framing, *_connection(keep_alive), *extra.items()])


def _connection(keep_alive: bool) -> list[tuple[str, str]]:
    return [] if keep_alive else [("connection", "close")]


def json_answer(status: int, value: object, keep_alive: bool, extra: Mapping[str, str]) -> bytes:
    """A whole answer with a JSON body."""
    body = orjson.dumps(value)
    return body_head(status, "application/json", len(body), keep_alive, extra) + body


def error_body(status: int, message: str, param: str | None = None, code: str | None = None) -> Json:
    """OpenAI's error shape."""
    kind = "rate_limit_error" if status == 429 else _TYPES.get(status, "server_error" if status >= 500 else "api_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def retry_after(fault: Status) -> dict[str, str]:
    """The header that tells when to come back, in the form the fault wants."""
    if fault.retry_after is None:
        return {}
    if fault.retry_after_form == "ms":
        return {"retry-after-ms": f"{fault.retry_after * 1000:g}"}
    if fault.retry_after_form == "http_date":
        return {"retry-after": formatdate(time.time() + fault.retry_after, usegmt=True)}
    return {"retry-after": f"{fault.retry_after:g}"}


class Frames:
    """Event frames of one stream, as HTTP chunks unless the client speaks HTTP/1.0."""

    __slots__ = ("_after", "_before", "_chunked", "_envelope")

    def __init__(self, response_id: str, model: str, created: int, include_usage: bool, chunked: bool) -> None:
        self._chunked = chunked
        self._envelope = (
            b'"id":"%b","object":"chat.completion.chunk","created":%d,"model":%b,"service_tier":"default"'
            % (
                response_id.encode(),
                created,
                orjson.dumps(model),
            )
        )
        usage = b',"usage":null' if include_usage else b""
        self._before = b'data: {%b,"choices":[{"index":0,"delta":' % self._envelope
        self._after = b"}]%b}\n\n" % usage

    def raw(self, event: bytes) -> bytes:
        """Any bytes, framed."""
        return b"%x\r\n%b\r\n" % (len(event), event) if self._chunked else event

    def delta(self, delta: bytes, finish: str | None = None) -> bytes:
        """One chunk with this delta."""
        reason = b'"%b"' % finish.encode() if finish else b"null"
        return self.raw(b'%b%b,"logprobs":null,"finish_reason":%b%b' % (self._before, delta, reason, self._after))

    def maker(self, segment: Segment) -> Callable[[int, int], bytes]:
        """A fast way to frames of this segment: `make(first, count)`."""
        start = self._before + segment.before
        end = segment.after + b',"logprobs":null,"finish_reason":null' + self._after
        piece, around = segment.piece, len(start) + len(end)

        def chunked(first: int, count: int) -> bytes:
            text = piece(first, count)
            return b"%x\r\n%b%b%b\r\n" % (around + len(text), start, text, end)

        def bare(first: int, count: int) -> bytes:
            return start + piece(first, count) + end

        return chunked if self._chunked else bare

    def usage(self, usage: Json) -> bytes:
        """The pure usage chunk."""
        return self.raw(b'data: {%b,"choices":[],"usage":%b}\n\n' % (self._envelope, orjson.dumps(usage)))

    def error(self, error: Json) -> bytes:
        """An in-band error event."""
        return self.raw(b"data: %b\n\n" % orjson.dumps({"error": error}))

    def padded(self, size: int) -> bytes:
        """An event of at least `size` bytes whose content is empty."""
        filler = b"x" * size
        event = b'data: {%b,"choices":[{"index":0,"delta":{}}],"padding":"%b"}\n\n' % (self._envelope, filler)
        return self.raw(event)

    def broken(self) -> bytes:
        """A frame whose JSON ends in the middle."""
        return self.raw(self._before + b'{"content":"bro\n\n')

    def done(self) -> bytes:
        """The end marker."""
        return self.raw(b"data: [DONE]\n\n")

    def end(self) -> bytes:
        """What ends the HTTP body; nothing where closing the connection does."""
        return LAST_CHUNK if self._chunked else b""
