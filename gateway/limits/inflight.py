"""What may be under way at once: streams, and bytes of request bodies kept for a fallback."""

from gateway.core.errors import RequestError

RETRY_AFTER_S = 1.0


class Streams:
    """Counts requests in flight; one over the limit is refused at once, not queued."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = 0

    @property
    def open(self) -> int:
        """How many are under way."""
        return self._open

    def acquire(self) -> None:
        """One more. Raises RequestError 503 at the limit; then nothing is to be released."""
        if self._open >= self._limit:
            raise RequestError(
                503,
                f"the gateway serves as many requests as it may at once ({self._limit})",
                code="overloaded",
                retry_after_s=RETRY_AFTER_S,
            )
        self._open += 1

    def release(self) -> None:
        """One less. ValueError where none is open: a count that goes wrong silently would lift the limit."""
        if self._open < 1:
            raise ValueError("more requests released than acquired")
        self._open -= 1


class InflightBytes:
    """Counts the bytes of bodies that are held, all requests together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._held

    def acquire(self, size: int) -> None:
        """`size` bytes more. Raises RequestError 503 where they do not fit; then nothing is to be released."""
        if self._held + size > self._limit:
            raise RequestError(
                503,
                "the request bodies in flight fill the memory set aside for them",
                code="overloaded",
                retry_after_s=RETRY_AFTER_S,
            )
        self._held += size

    def release(self, size: int) -> None:
        """`size` bytes less. ValueError where fewer are held."""
        if size > self._held:
            raise ValueError("more bytes released than acquired")
        self._held -= size
