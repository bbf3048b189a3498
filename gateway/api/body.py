"""A request's body: read within its limits, parsed as JSON with an error that helps."""

import asyncio
import json
from typing import Protocol

import orjson

from gateway.api.asgi import Request
from gateway.core.errors import RequestError
from gateway.core.types import Json

# A client that uploads more slowly than this is given up.
UPLOAD_S = 120.0


class ClientLeft(Exception):
    """The client went before its request was complete: there is nothing to answer and nobody to tell."""


class ByteBudget(Protocol):
    """Bytes of bodies that are kept, all requests together."""

    def acquire(self, size: int) -> None:
        """Raises RequestError 503 when there is no room."""

    def release(self, size: int) -> None: ...


class HeldBody:
    """A body and its share of the budget; `release` gives the share back."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.data = bytearray()
        self._held = 0

    def grow(self, piece: bytes) -> None:
        self._budget.acquire(len(piece))
        self._held += len(piece)
        self.data += piece

    def release(self) -> None:
        self._budget.release(self._held)
        self._held = 0


async def read_body(request: Request, held: HeldBody, limit: int) -> None:
    """Fills `held`. Raises RequestError: 413 over `limit`, 408 when it takes too long, 503 over the budget."""
    declared = request.header(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(UPLOAD_S):
            await _receive(request, held, limit)
    except TimeoutError:
        raise RequestError(408, "the request body took too long to arrive", code="timeout") from None


async def _receive(request: Request, held: HeldBody, limit: int) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece = message.get("body", b"")
        if len(held.data) + len(piece) > limit:
            raise _too_large(limit)
        held.grow(piece)
        if not message.get("more_body"):
            return


def _too_large(limit: int) -> RequestError:
    return RequestError(
        413, f"the request body is over {limit} bytes; server.max_body sets this limit", code="body_too_large"
    )


def parse_object(data: bytes | bytearray) -> Json:
    """The body as a JSON object. Raises RequestError 400 saying what is wrong and where."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        value = _parse_leniently(bytes(data), error)
    if not isinstance(value, dict):
        raise RequestError(400, "the request body must be a JSON object", code="invalid_json")
    return value


def _parse_leniently(data: bytes, error: orjson.JSONDecodeError) -> object:
    """Half of an emoji (a lone surrogate escape) is what JavaScript clients send when they cut a string; it is kept."""
    if b"\\ud" in data.lower():
        try:
            return json.loads(data, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            pass
    raise RequestError(400, f"the request body is no valid JSON: {error}", code="invalid_json") from None


def _refuse_constant(name: str) -> object:
    raise ValueError(name)
