"""Answers to what is no request: bytes for a connection that has not come as far as the application."""

from gateway.api.asgi import new_id
from gateway.dispatch.answers import error_body

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


def refusal(status: int, message: str, code: str) -> bytes:
    """A whole HTTP/1.1 answer with OpenAI's error body, after which the connection is closed."""
    body = error_body(status, message, code=code)
    lines = (
        b"HTTP/1.1 %d %b" % (status, _REASONS[status]),
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"x-request-id: " + new_id().encode(),
        b"connection: close",
    )
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
