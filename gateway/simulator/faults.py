"""What can go wrong with an answer: one frozen value per kind of fault, and the table of kinds.

`after_tokens` is exact: chunks are shortened so that the fault strikes right after that token. Several faults may
strike one answer; of two that exclude each other the one listed first wins.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from gateway.simulator.units import Amount, Count, HttpStatus, Positive, Rate, Seconds, Share, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Strikes `share` of the requests, each fault drawn on its own."""

    share: Share = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Midway(Fault):
    """A fault with a place in the stream."""

    after_tokens: Count = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Fault):
    """An HTTP error with OpenAI's body. `retry_after` in seconds, told in the given form (`ms`: `retry-after-ms`)."""

    code: HttpStatus = 503
    retry_after: Amount | None = None
    retry_after_form: Literal["seconds", "http_date", "ms"] = "seconds"
    delay: Seconds = 0.0
    message: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Html502(Fault):
    """A proxy's error page: 502 with HTML."""

    delay: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonError200(Fault):
    """Status 200 with a JSON error body, also where a stream was asked for."""

    delay: Seconds = 0.0
    message: str = "The engine is overloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(Fault):
    """TCP RST. With `after_tokens` in mid-stream, whatever `when` says."""

    when: Literal["before_headers", "after_headers"] = "before_headers"
    after_tokens: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence(Fault):
    """Nothing more is sent and the connection stays open."""

    when: Literal["before_headers", "after_headers"] = "before_headers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Midway):
    """FIN in mid-stream: no finish reason, no usage, no `[DONE]`. `terminated`: the chunked body is ended properly."""

    terminated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall(Midway):
    """A pause. None: for ever."""

    seconds: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowAfter(Midway):
    """The rest crawls at `tps`."""

    tps: Rate = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed(Midway):
    """One extra frame whose JSON is cut off; the stream goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidUtf8(Midway):
    """One extra content frame with bytes that are no UTF-8; the stream goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HugeEvent(Midway):
    """One extra event of at least `size` bytes (padding in a field no client reads); the stream goes on."""

    size: Size = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(Midway):
    """An error inside the stream, then the end without `[DONE]`."""

    message: str = "The server had an error while processing your request"
    type: str = "server_error"
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorThenDone(ErrorEvent):
    """An error inside the stream, then `[DONE]` as if all were well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty(Fault):
    """Role chunk, then at once the end with zero usage. `finish` false: no finish reason either."""

    finish: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDone(Fault):
    """The stream is complete but ends without `[DONE]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comments(Fault):
    """Comment lines while no token comes; `for_ever`: no token ever comes."""

    every: Seconds = 1.0
    for_ever: bool = False
    text: str = "processing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered(Fault):
    """Something in between holds the whole answer back and releases it in one write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Fault):
    """Every write is torn at arbitrary bytes into `pieces`, `every` seconds apart."""

    pieces: Positive = 3
    every: Seconds = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class NoUsage(Fault):
    """No usage, asked for or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAlways(Fault):
    """The usage chunk comes unasked."""


FAULTS: MappingProxyType[str, type[Fault]] = MappingProxyType(
    {
        "status": Status,
        "html_502": Html502,
        "json_error_200": JsonError200,
        "reset": Reset,
        "silence": Silence,
        "cut": Cut,
        "stall": Stall,
        "slow_after": SlowAfter,
        "malformed": Malformed,
        "invalid_utf8": InvalidUtf8,
        "huge_event": HugeEvent,
        "error_event": ErrorEvent,
        "error_then_done": ErrorThenDone,
        "empty": Empty,
        "no_done": NoDone,
        "comments": Comments,
        "buffered": Buffered,
        "split": Split,
        "no_usage": NoUsage,
        "usage_always": UsageAlways,
    }
)
_KINDS = MappingProxyType({made: kind for kind, made in FAULTS.items()})


def kind_of(fault: Fault) -> str:
    """The word a script uses for this fault."""
    return _KINDS[type(fault)]
