"""Who may come in: Host and Origin checks, media type, keys."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gateway.api.asgi import Request
from gateway.core.errors import RequestError
from gateway.core.types import Caller

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Keys(Protocol):
    """Knows the configured keys."""

    def identify(self, presented: str | None) -> Caller | None:
        """The caller a key belongs to; None where it belongs to nobody."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What a request must bring. `hosts` in lower case without port; `*` lets every name in."""

    hosts: frozenset[str]
    origins: frozenset[str]
    keys: Keys

    def check_host(self, request: Request) -> None:
        """Against DNS rebinding: a page that points its own name at this address has that name as Host."""
        host = host_name(request.header(b"host"))
        if host is None:
            raise RequestError(400, "the request has no Host header", code="host_not_allowed")
        server = request.scope.get("server")
        if host in self.hosts or "*" in self.hosts or (server and host == str(server[0]).lower()):
            return
        raise RequestError(
            403, f"Host {host[:100]!r} is not answered here; server.hosts lists further names", code="host_not_allowed"
        )

    def check_origin(self, request: Request) -> str | None:
        """The Origin to answer with CORS headers; None where the request comes from no page or from our own."""
        origin = request.header(b"origin")
        if origin is None:
            if request.header(b"sec-fetch-site") in ("cross-site", "same-site"):
                raise _foreign("a web page")
            return None
        origin = origin.rstrip("/").lower()
        if origin in self.origins or "*" in self.origins:
            return origin
        if origin.partition("://")[2] == (request.header(b"host") or "").lower():
            return None
        raise _foreign(f"Origin {origin[:100]!r}")

    def caller(self, request: Request) -> Caller:
        """Who calls. Raises RequestError 401."""
        caller = self.keys.identify(presented_key(request))
        if caller is None:
            raise RequestError(
                401,
                "no valid key; send one as `Authorization: Bearer KEY` or `x-api-key: KEY`",
                code="invalid_api_key",
            )
        return caller


def _foreign(what: str) -> RequestError:
    return RequestError(
        403, f"{what} may not use this gateway; server.cors_origins lists those that may", code="origin_not_allowed"
    )


def presented_key(request: Request) -> str | None:
    """The key of a request: Bearer, `x-api-key`, or the password of HTTP Basic (which a browser can send)."""
    scheme, _, value = (request.header(b"authorization") or "").partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer" and value:
        return value
    if scheme.lower() == "basic":
        return _basic_password(value)
    return request.header(b"x-api-key") or None


def _basic_password(value: str) -> str | None:
    try:
        plain = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return plain.partition(":")[2] or None


def host_name(header: str | None) -> str | None:
    """The name in a Host header, lower case, without port and brackets."""
    if not header:
        return None
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name


def allowed_hosts(bound: str, further: Iterable[str]) -> frozenset[str]:
    """Loopback names, the bound address and what the configuration lists."""
    return LOOPBACK | {bound.lower()} | {host_name(name) or name.lower() for name in further}


def check_json(request: Request) -> None:
    """A form of a web page cannot send this media type without asking first. Raises RequestError 415."""
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "POST wants `Content-Type: application/json`", code="unsupported_media_type")
