"""What the surfaces work with, made and joined in `app`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.api.body import ByteBudget
from gateway.api.doors import Doors
from gateway.api.names import Names
from gateway.api.reports import Reports
from gateway.core.record import GenerationRecord
from gateway.core.types import Json, Needs
from gateway.dispatch.dispatcher import Dispatcher


class StreamLimit(Protocol):
    """Requests in flight."""

    @property
    def open(self) -> int: ...

    def acquire(self) -> None:
        """Raises RequestError 503 with Retry-After when the limit is reached."""

    def release(self) -> None: ...


class Records(Protocol):
    """Finished requests by id."""

    def get(self, generation_id: str) -> GenerationRecord | None:
        """One of the latest."""

    async def find(self, generation_id: str) -> Mapping[str, Any] | None:
        """The JSON of one of the latest or of a stored one, its `key` among it. Raises RequestError 503."""


class Readiness:
    """Whether new requests are wanted: from the start of the listener to the start of the drain."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = False


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a surface may use. `max_body` in bytes."""

    names: Names
    doors: Doors
    dispatcher: Dispatcher
    streams: StreamLimit
    bodies: ByteBudget
    records: Records
    reports: Reports
    readiness: Readiness
    needs: Callable[[Json], Needs]
    scrape: Callable[[], Awaitable[Sequence[bytes]]]
    metrics_type: str
    max_body: int
    metrics_apart: bool
