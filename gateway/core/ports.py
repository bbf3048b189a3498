"""The seams: what each part may ask of another, as Protocols. Features meet here, never by importing each other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.core.reading import Reading, WireError
from gateway.core.record import GenerationRecord, Measurement
from gateway.core.speed import WINDOWS, SpeedReport, WindowReport
from gateway.core.types import Call, Deployment, Health, Json, Plan, Progress, Provider, Quirks, SpeedEvidence, Timeouts


class Listener(Protocol):
    """Hears of every finished request. Must not block and must not raise."""

    def record(self, record: GenerationRecord) -> None: ...


class Sink(Protocol):
    """The way back to one client. `start` is called at most once; writes wait while the client does not read."""

    @property
    def started(self) -> bool: ...

    @property
    def full(self) -> bool:
        """The client takes nothing at the moment: a write would wait."""

    @property
    def left(self) -> bool:
        """The client is gone."""

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None: ...

    async def write(self, data: bytes) -> float:
        """Returns the seconds it was held back because the client did not read."""

    async def end(self) -> None: ...


class Exchange(Protocol):
    """One request to an upstream and its answer. Closing is synchronous, idempotent and safe in every phase.

    Moments are monotonic seconds: `sent` the last byte of the request, `headers_at` the response head.
    `pool_wait_s` and `connect_s` (None on a reused connection; includes TLS) lie before `sent`.
    """

    pool_wait_s: float
    connect_s: float | None

    @property
    def sent(self) -> float: ...

    @property
    def headers_at(self) -> float | None: ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]: ...

    async def head(self, until: float) -> bool:
        """Waits for the response head; False when the moment `until` passed first. Raises as `read` does."""

    async def read(self, until: float) -> tuple[bytes, float] | None:
        """The next bytes and the moment they left the socket; b"" at the end of the body; None when `until` passed.

        Raises AttemptError (`cut`, `malformed`) when the connection fails.
        """

    def release(self) -> None:
        """The answer was read to its end (or its terminal marker): the connection may serve another."""

    def close(self) -> None:
        """Abandon the answer and close the socket now. After `release` it does nothing."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """One request to send. `path` goes below the provider's base URL."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "POST"


class Engine(Protocol):
    """The only owner of upstream sockets."""

    async def open(self, provider: Provider, request: Outbound, timeouts: Timeouts) -> Exchange:
        """Takes or dials a connection and writes the request; does not wait for the answer.

        Raises AttemptError: `connect`, `tls`, `timeout_connect`, `overloaded` (no connection free in time), `cut`.
        """

    async def close(self) -> None: ...


ReadEvent = Callable[[bytes | None, bytes], Reading]


class WireReader(Protocol):
    """A wire format as it is read, in pure functions. `framing`: how its stream is cut: `sse`, `ndjson`, `aws`."""

    name: str
    framing: str

    def read_event(self, name: bytes | None, payload: bytes) -> Reading:
        """One event: its name and data (bare JSON lines come as data too). Never raises."""

    def reader(self, quirks: Quirks) -> ReadEvent:
        """What reads the events of one stream: `read_event` itself, or one that remembers what this stream needs."""

    def read_body(self, payload: bytes) -> Reading:
        """A whole, non-streamed answer with status 200. Never raises; `bad` where it is no JSON object."""

    def read_error(self, status: int, payload: bytes, failover_on: frozenset[int]) -> WireError:
        """What an error answer (status >= 400) means. Never raises."""


class Dialect(WireReader, Protocol):
    """A wire format that requests are sent in as well."""

    def request(self, call: Call, deployment: Deployment) -> tuple[str, Json, tuple[str, ...]]:
        """The path below the base URL, the body to send, and the names of parameters that were dropped."""


class StreamMeter(Protocol):
    """Measures one attempt. Moments are monotonic seconds taken at the read from the socket."""

    def headers(self, at: float, sent: float | None = None) -> None:
        """The response head arrived at `at`; `sent` is the final moment of the request's last byte."""

    def observe(self, reading: Reading, at: float) -> None: ...

    def whole(self, reading: Reading, at: float) -> None:
        """An answer that was not streamed."""

    def comment(self) -> None: ...

    def waits(self, at: float) -> None:
        """The client takes nothing at the moment; `blocked` follows, with how long it lasted."""

    def blocked(self, seconds: float) -> None: ...

    def progress(self, now: float) -> Progress:
        """How far the stream is, while it runs. Changes nothing."""

    def finish(self, outcome: str, at: float) -> Measurement: ...


class RunningStreams(Protocol):
    """Looks at streams while they run. Every `began` is followed by one `ended`, before the request is recorded."""

    def began(self, deployment_id: str, meter: StreamMeter) -> None: ...

    def ended(self, deployment_id: str, meter: StreamMeter) -> None: ...


class Planner(Protocol):
    """Puts deployments in an order, without I/O."""

    def plan(self, call: Call, now: float) -> Plan: ...


class HealthBook(Protocol):
    """What is known of each deployment's health. All calls are synchronous and local."""

    def health(self, deployment: Deployment, now: float) -> Health: ...

    def admit(self, deployment: Deployment, now: float) -> None:
        """An attempt begins (claims the half-open trial where there is one)."""

    def failed(
        self, deployment: Deployment, code: str, request_id: str, retry_after_s: float | None, now: float
    ) -> None: ...

    def succeeded(self, deployment: Deployment, now: float) -> None: ...

    def released(self, deployment: Deployment, now: float) -> None:
        """The attempt ended with no verdict (the client left, or the caller's own mistake)."""


Clock = Callable[[], float]


class SpeedEvidenceSource(Protocol):
    """The statistics sag is judged on."""

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence: ...

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        """While frozen the baseline learns nothing: a sag must not become the new normal."""


class SpeedReports(Protocol):
    """The statistics as people and APIs read them."""

    def report(self, deployment_id: str, now: float, windows: Mapping[str, float] = WINDOWS) -> SpeedReport:
        """Everything, with these windows (seconds by name). An empty report for a deployment never heard of.

        A long window costs a merge of many slots: who needs but one asks for one.
        """

    def window(self, deployment_id: str, seconds: float, now: float) -> WindowReport:
        """The last so many seconds (to one slot)."""


@dataclass(frozen=True, slots=True)
class Hour:
    """The statistics of one deployment in one hour. `hour` counts from the Unix epoch; `payload` is the book's own."""

    deployment_id: str
    hour: int
    payload: bytes


class Remembered(Protocol):
    """Statistics that are to outlive the process. `wall_offset_s` is wall-clock seconds less monotonic seconds."""

    def changed_hours(self, wall_offset_s: float, now: float) -> Iterable[Hour]:
        """The hours that changed since this was last asked, each whole: a later one replaces an earlier one.

        Hours that were restored are not among them. Made as they are taken, so that other things may happen between.
        """

    def learnt(self, wall_offset_s: float, now: float) -> Mapping[str, bytes]:
        """What was learnt of each deployment: baseline, TTFT line, characters per token."""

    def restore(self, hours: Iterable[Hour], learnt: Mapping[str, bytes], wall_offset_s: float, now: float) -> None:
        """Takes up what an earlier process left. Hours of one deployment may come several times: they add up.

        What cannot be read is left out, never raised.
        """
