"""The kinds of value a setting can have, each with its own words for what is wrong."""

import re
from collections.abc import Callable, Mapping, Sized
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from gateway.config import hosts, units
from gateway.config.document import plain_scalar
from gateway.config.keys import key_hash
from gateway.config.problems import FromEnvironment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PUBLIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]{0,4096}")
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_PERCENTILE = re.compile(r"p[1-9][0-9]?")
# What the gateway itself writes on every request, or what frames one.
_OWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
    }
)
_STATES = ("redis", "rediss", "redis+cluster", "redis+sentinel")
# Members of a request body that are the caller's or the gateway's to say.
_OWN_MEMBERS = ("messages", "model", "stream")


def _typed(value: object) -> object:
    """A number or truth value that came from the environment as text."""
    return plain_scalar(value) if isinstance(value, FromEnvironment) else value


def _says(check: Callable[[str], bool], text: str) -> AfterValidator:
    """A check of text with one message."""

    def validate(value: str) -> str:
        if not check(value):
            raise ValueError(text)
        return value

    return AfterValidator(validate)


def _of_duration(value: object) -> object:
    return units.duration_s(_typed(value))


def _auto_or_duration(value: object) -> object:
    if value == "auto":
        return value
    try:
        return units.duration_s(_typed(value))
    except ValueError as error:
        raise ValueError(f"must be auto or {str(error).removeprefix('must be ')}") from None


def _none_or_duration(value: object) -> object:
    if value == "none":
        return value
    try:
        return units.duration_s(_typed(value))
    except ValueError as error:
        raise ValueError(f"must be none or {str(error).removeprefix('must be ')}") from None


def _positive(value: Any) -> Any:
    if value == 0:
        raise ValueError("must be more than 0")
    return value


def _as_percentiles(value: object) -> object:
    """A plain value is p50."""
    return value if isinstance(value, dict) else {"p50": value}


def _speed(value: object) -> float:
    value = _typed(value)
    if not units.is_number(value) or not isinstance(value, int | float) or not 0 < value <= 1_000_000:
        raise ValueError("must be tokens per second, more than 0")
    return float(value)


def _header_name(value: str) -> str:
    if not _HEADER_NAME.fullmatch(value):
        raise ValueError("is no name that an HTTP header can have")
    if value.lower() in _OWN_HEADERS:
        raise ValueError("may not be set: the gateway writes this header itself")
    return value


def _header_value(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text; put it in quotes")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("holds a line break or a character that cannot stand in a header")
    return str(value)


def _told_apart(value: Mapping[str, str]) -> Mapping[str, str]:
    if len({name.lower() for name in value}) != len(value):
        raise ValueError("names a header twice (header names know no case)")
    return value


def _hedge_after(value: object) -> object:
    if isinstance(value, str) and _PERCENTILE.fullmatch(value):
        return value
    try:
        return units.duration_s(_typed(value))
    except ValueError as error:
        raise ValueError(f"must be a percentile such as p95, or {str(error).removeprefix('must be ')}") from None


def _endpoint(value: str) -> str:
    hosts.split_url(value)
    return value


def _credential(value: object) -> object:
    """A key that can be sent; surrounding white space is no part of it."""
    if not isinstance(value, str):
        raise ValueError("must be a key: ${VAR}, file:/path, caller or none")
    key = value.strip()
    if not key or len(key) > 8192 or not _HEADER_VALUE.fullmatch(key[:4096]) or not _HEADER_VALUE.fullmatch(key[4096:]):
        raise ValueError("is empty, or holds a line break or character that cannot stand in a header")
    return SecretStr(str(key))


def _proxy(value: str) -> str:
    if value.lower().startswith("socks"):
        raise ValueError("SOCKS proxies are not supported; use an http:// proxy")
    parts = hosts.split_url(value, ("http",))
    if parts.path not in ("", "/"):
        raise ValueError("must have no path: http://host:port")
    return value.rstrip("/")


def _state(value: str) -> str:
    scheme, separator, _ = value.partition("://")
    if value == "memory" or (separator and scheme in _STATES):
        return value
    raise ValueError("must be memory or a URL: redis://host:6379/0 (also rediss, redis+cluster, redis+sentinel)")


def _metrics_listen(value: str) -> str:
    hosts.host_and_port(value)
    return value


def _body(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("must be a mapping of request fields")
    for name in _OWN_MEMBERS:
        if name in value:
            raise ValueError(f"may not set {name}, which is the request's own")
    return value


def _not_empty(value: Sized) -> Sized:
    """Asked only where every item is right: pydantic's own minimum counts an item that is wrong as absent."""
    if not value:
        raise ValueError("must not be empty")
    return value


def _folder(value: str) -> str:
    if not value or not value.isprintable() or len(value) > 4096:
        raise ValueError("must be the path of a folder, or off")
    if value.lower() in ("none", "no", "false", "memory"):
        raise ValueError(f"must be the path of a folder, or off (./{value} is a folder of that name)")
    if value.startswith("~") and value[1:2] not in ("", "/"):
        raise ValueError("must be the path of a folder, or off: another user's home (~name) is not looked up")
    return value


def _is_upstream_model(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip() and 0 < len(value) <= 200


def _empty_for_null(value: object) -> object:
    return {} if value is None else value


Flag = Annotated[bool, BeforeValidator(_typed)]
Integer = Annotated[int, BeforeValidator(_typed)]
Count = Annotated[int, BeforeValidator(_typed), Field(ge=1, le=10**9)]
Port = Annotated[int, BeforeValidator(_typed), Field(ge=0, le=65535)]
Money = Annotated[float, BeforeValidator(_typed), Field(ge=0, le=1e9)]
Rate = Annotated[float, BeforeValidator(_typed), Field(gt=0, le=1e6)]

Duration = Annotated[float, BeforeValidator(_of_duration)]
PositiveDuration = Annotated[float, BeforeValidator(_of_duration), AfterValidator(_positive)]
AutoDuration = Annotated[float | Literal["auto"], BeforeValidator(_auto_or_duration), AfterValidator(_positive)]
TotalDuration = Annotated[float | Literal["none"], BeforeValidator(_none_or_duration), AfterValidator(_positive)]
Size = Annotated[int, BeforeValidator(lambda value: units.size_bytes(_typed(value)))]
Share = Annotated[float, BeforeValidator(lambda value: units.share(_typed(value)))]
PositiveShare = Annotated[float, BeforeValidator(lambda value: units.share(_typed(value))), AfterValidator(_positive)]
Percentile = Annotated[
    str,
    _says(lambda value: bool(_PERCENTILE.fullmatch(value)), "is no percentile; allowed: p1 to p99, such as p50, p90"),
]
Speed = Annotated[float, BeforeValidator(_speed)]
Speeds = Annotated[Mapping[Percentile, Speed], BeforeValidator(_as_percentiles), AfterValidator(_not_empty)]
Latencies = Annotated[
    Mapping[Percentile, PositiveDuration], BeforeValidator(_as_percentiles), AfterValidator(_not_empty)
]
HedgeAfter = Annotated[float | str, BeforeValidator(_hedge_after)]
ClockTime = Annotated[str, _says(lambda value: bool(_CLOCK.fullmatch(value)), "must be a time of day: 03:00")]

Name = Annotated[
    str,
    _says(lambda value: bool(_NAME.fullmatch(value)), "a name has 1 to 64 letters, digits, dots, dashes, underscores"),
]
PublicName = Annotated[
    str,
    _says(lambda value: bool(_PUBLIC_NAME.fullmatch(value)), "a name has 1 to 128 letters, digits and . _ - : / @ +"),
]
# A deployment's id is made of it, and that stands in response headers.
UpstreamModel = Annotated[
    str, _says(_is_upstream_model, "must be a model's name: up to 200 printable ASCII characters")
]
FilePathText = Annotated[
    str, _says(lambda value: bool(value) and value.isprintable() and len(value) <= 4096, "must be the path of a file")
]
FolderText = Annotated[str, AfterValidator(_folder)]
Host = Annotated[str, _says(hosts.is_host, "must be an IP address or host name (without port or scheme)")]
BaseUrl = Annotated[str, AfterValidator(hosts.base_url)]
Origin = Annotated[str, AfterValidator(hosts.origin)]
Proxy = Annotated[str, AfterValidator(_proxy)]
State = Annotated[str, AfterValidator(_state)]
MetricsListen = Annotated[str, AfterValidator(_metrics_listen)]
Credential = Annotated[SecretStr, BeforeValidator(_credential)]
KeyHash = Annotated[str, BeforeValidator(key_hash)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, BeforeValidator(_header_value)]
Headers = Annotated[Mapping[HeaderName, HeaderValue], AfterValidator(_told_apart)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Body = Annotated[Mapping[str, Any], BeforeValidator(_body)]
Status = Annotated[int, BeforeValidator(_typed), Field(ge=400, le=599)]
NullIsEmpty = BeforeValidator(_empty_for_null)
NotEmpty = AfterValidator(_not_empty)
