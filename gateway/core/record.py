"""The generation record: one frozen value per request that every metric, log line and API answer is made from.

Times in milliseconds; None is "not known", never 0. Field names are those of the JSON, which is part of the interface.
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """The committed attempt, from the last byte of its request. `overhead_ms`: time of ours that waited for nobody."""

    overhead_ms: float | None = None
    pool_wait_ms: float | None = None
    connect_ms: float | None = None
    headers_ms: float | None = None
    first_event_ms: float | None = None
    ttft_ms: float | None = None
    ttfa_ms: float | None = None
    last_token_ms: float | None = None
    duration_ms: float | None = None
    max_gap_ms: float | None = None
    stalls: int = 0
    client_blocked_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Tokens:
    """Output includes reasoning. `source`: `usage` (the provider said so) or `estimate`; None before any output."""

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Chars:
    """Code points by kind."""

    content: int = 0
    reasoning: int = 0
    tool: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
    """Rates of the committed attempt and how far they can be trusted (metering: quality, weight, marks)."""

    output_tps: float | None = None
    answer_tps: float | None = None
    chars_per_s: float | None = None
    tpot_ms: float | None = None
    estimated_tps: float | None = None
    source: str | None = None
    quality: str | None = None
    weight: float | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamEvents:
    """Events seen: token-bearing, comments, undecodable."""

    tokens: int = 0
    comments: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the meter says of one attempt's answer."""

    timing: Timing = Timing()
    tokens: Tokens = Tokens()
    chars: Chars = Chars()
    speed: Speed = Speed()
    stream_events: StreamEvents = StreamEvents()
    gaps_s: tuple[float, ...] = ()
    finish_reason: str | None = None
    terminated: bool = False
    served_model: str | None = None
    served_tier: str | None = None
    server_clock: dict[str, float] | None = None
    splice: bool = False


@dataclass(frozen=True, slots=True)
class ClientView:
    """What the client waited, all attempts included."""

    ttft_ms: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One try at one deployment. `start_ms` counts from the request's arrival, the others from the attempt's t0."""

    deployment: str
    provider: str
    model: str
    kind: str
    outcome: str
    status: int | None = None
    error: str | None = None
    start_ms: float | None = None
    headers_ms: float | None = None
    ttft_ms: float | None = None
    duration_ms: float | None = None
    pool_wait_ms: float | None = None
    connect_ms: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """One request, from arrival to end. See the interface's section 4 for every field."""

    id: str
    created: str
    surface: str
    stream: bool
    requested_model: str
    outcome: str
    client_request_id: str | None = None
    key: str | None = None
    task: str | None = None
    session: str | None = None
    route: str | None = None
    model: str | None = None
    deployment: str | None = None
    provider: str | None = None
    upstream_model: str | None = None
    served_model: str | None = None
    served_tier: str | None = None
    tier: str | None = None
    measured_tier: str | None = None
    promise: str | None = None
    reason: str | None = None
    error: str | None = None
    finish_reason: str | None = None
    terminated: bool = False
    client: ClientView = ClientView()
    timing: Timing = Timing()
    tokens: Tokens = Tokens()
    chars: Chars = Chars()
    speed: Speed = Speed()
    server_clock: dict[str, float] | None = None
    stream_events: StreamEvents = StreamEvents()
    dropped_params: tuple[str, ...] = ()
    splice: bool = False
    cost_usd: float | None = None
    cost_wasted_usd: float | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    feedback: dict[str, Any] | None = None
    # Gaps between token-bearing reads, seconds: feeds the gap histogram, not part of the JSON.
    gaps_s: tuple[float, ...] = ()
    # Attempts under way at its deployment when the committed one began, itself included: for the load bins.
    in_flight: int | None = None


_HIDDEN = frozenset({"gaps_s", "in_flight"})


def as_json(value: Any) -> Any:
    """The record as JSON values: milliseconds at 0.1, rates at 0.1, dollars at 1e-9."""
    kind: type = type(value)
    columns = _columns(kind)
    if columns is None:
        return _plain(value)
    shown: dict[str, Any] = {}
    for name, digits in columns:
        item = getattr(value, name)
        of = type(item)
        if of is float:
            shown[name] = round(item, digits)
        elif item is None or of is str or of is int or of is bool:
            shown[name] = item
        else:
            shown[name] = as_json(item)
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {
            name: round(item, _clock_digits(name)) if isinstance(item, float) else item for name, item in value.items()
        }
    return value


@cache
def _columns(kind: type) -> tuple[tuple[str, int], ...] | None:
    """Field names and digits of one of the classes above, None for any other type: asked once a type."""
    if not is_dataclass(kind):
        return None
    return tuple((entry.name, _digits(entry.name)) for entry in fields(kind) if entry.name not in _HIDDEN)


def _clock_digits(name: str) -> int:
    return 4 if name.endswith("_ratio") else 1


def _digits(name: str) -> int:
    if name.endswith("_usd"):
        return 9
    return 4 if name == "weight" else 1
