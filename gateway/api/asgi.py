"""The few words of ASGI that the surfaces share: types, a request, a plain response."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson

from gateway.core.errors import RequestError
from gateway.dispatch.answers import Headers, error_body

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# What is said of this moment is not to be kept.
JSON_HEADERS: Headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are lower case; of a repeated header `header` gives the first."""

    scope: Scope
    receive: Receive
    send: Send
    id: str

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def headers(self) -> Iterable[tuple[bytes, bytes]]:
        found: Iterable[tuple[bytes, bytes]] = self.scope["headers"]
        return found

    def header(self, name: bytes) -> str | None:
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return None

    def query(self, name: str) -> str | None:
        """The first value of a query parameter; an empty one counts as none."""
        return next(iter(self.queries(name)), None)

    def queries(self, name: str) -> list[str]:
        """All values of a query parameter that are not empty."""
        return parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get(name, [])

    @property
    def raw_path(self) -> bytes:
        """The path as it was sent, so that a `%2F` is no slash."""
        raw: bytes = self.scope.get("raw_path") or self.path.encode()
        return raw


def new_id() -> str:
    """A generation id: 128 random bits, so that nobody guesses another's."""
    return f"gen-{uuid.uuid4().hex}"


async def respond(request: Request, status: int, body: bytes, headers: Headers) -> None:
    """A whole answer in one go."""
    head = [(b"content-length", str(len(body)).encode()), (b"x-request-id", request.id.encode()), *headers]
    await request.send({"type": "http.response.start", "status": status, "headers": head})
    await request.send({"type": "http.response.body", "body": body})


async def respond_in_pieces(request: Request, status: int, pieces: Sequence[bytes], headers: Headers) -> None:
    """A large answer whose pieces go out one by one: copying megabytes in one go keeps every stream waiting."""
    length = str(sum(map(len, pieces))).encode()
    head = [(b"content-length", length), (b"x-request-id", request.id.encode()), *headers]
    await request.send({"type": "http.response.start", "status": status, "headers": head})
    for piece in pieces:
        await request.send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    await request.send({"type": "http.response.body", "body": b""})


async def respond_json(request: Request, status: int, value: Any) -> None:
    """A JSON answer; floats as they are, no caching."""
    await respond(request, status, orjson.dumps(value), JSON_HEADERS)


async def respond_error(request: Request, error: RequestError) -> None:
    """The error in OpenAI's form."""
    headers: Headers = [(b"content-type", b"application/json")]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer, Basic realm="gateway"'))
    body = error_body(error.status, error.message, code=error.code, param=error.param)
    await respond(request, error.status, body, headers)
