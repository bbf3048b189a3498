"""The table of framings: how a dialect's bytes are cut into events."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from gateway.upstream.eventstream import EventStreamFramer
from gateway.upstream.ndjson import LineFramer
from gateway.upstream.sse import Event, Framer


class Framing(Protocol):
    """Cuts a byte stream into events, with bounded memory."""

    @property
    def inside_event(self) -> int:
        """Bytes of the running event that were passed on already; 0 between events."""

    def feed(self, data: bytes) -> list[Event]: ...

    def flush(self) -> list[Event]: ...


FRAMERS: Mapping[str, Callable[[], Framing]] = MappingProxyType(
    {"sse": Framer, "ndjson": LineFramer, "aws": EventStreamFramer}
)
