"""Every error of the gateway.

GatewayError
├── ConfigError        start-up: the configuration cannot be used
├── RequestError       the caller's request cannot be served; answered with an OpenAI error body
└── AttemptError       one try at one deployment failed; may move on to the next

An `AttemptError.code` is the low-cardinality word of the generation record (`timeout_ttft`, `rate_limited`, …).
`AttemptError.detail` is ours and safe to show. Text an upstream wrote is kept only in `wire`, and is shown only where
the caller made the mistake and needs it (bad_request, context_length, content_filter).
"""

from dataclasses import dataclass
from types import MappingProxyType

from gateway.core.reading import WireError


class GatewayError(Exception):
    """Root of the tree."""


class ConfigError(GatewayError):
    """The configuration cannot be used. `problems` has one line for each mistake."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class RequestError(GatewayError):
    """The request is refused before any attempt."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class FailureKind:
    """What an attempt's failure code means for the request and for the deployment.

    `status` is what the client gets when nothing else succeeded. `moves_on`: the next deployment may be tried.
    `charges`: counts against the deployment's health. `transient`: one quick retry at the same place makes sense.
    """

    status: int
    moves_on: bool
    charges: bool
    transient: bool
    says: str


# The one table of failure codes. The caller's own mistakes neither move on nor charge.
FAILURES: MappingProxyType[str, FailureKind] = MappingProxyType(
    {
        "connect": FailureKind(502, True, True, True, "could not be reached"),
        "tls": FailureKind(502, True, True, False, "failed the TLS handshake"),
        "timeout_connect": FailureKind(504, True, True, False, "did not accept a connection in time"),
        "timeout_ttft": FailureKind(504, True, True, False, "sent no token in time"),
        "timeout_idle": FailureKind(504, True, True, False, "went silent in mid-stream"),
        "timeout_total": FailureKind(504, True, True, False, "did not finish in time"),
        "rate_limited": FailureKind(429, True, True, False, "is rate limited"),
        "overloaded": FailureKind(503, True, True, True, "is overloaded"),
        "server_error": FailureKind(502, True, True, True, "answered with a server error"),
        "auth": FailureKind(502, True, True, False, "refused the gateway's credential"),
        "quota": FailureKind(502, True, True, False, "reports that the account's credit or quota is used up"),
        "not_found": FailureKind(502, True, True, False, "does not know the model or path it is configured with"),
        "context_length": FailureKind(400, True, False, False, "says the prompt does not fit its context window"),
        "content_filter": FailureKind(400, False, False, False, "refused the content"),
        "bad_request": FailureKind(400, False, False, False, "refused the request"),
        "malformed": FailureKind(502, True, True, False, "sent an answer that cannot be read"),
        "cut": FailureKind(502, True, True, True, "closed the connection before the answer was complete"),
        "empty": FailureKind(502, True, True, True, "sent an empty answer"),
        "slow": FailureKind(504, True, True, False, "streams too slowly"),
        "internal": FailureKind(500, False, False, False, "hit a fault inside the gateway"),
    }
)


class AttemptError(GatewayError):
    """One attempt failed.

    `status` is the upstream's HTTP status where one arrived. `wire` is what it said, shown only
    where the caller made the mistake. `ours`: the cause lies in this gateway (its own pool), not in the provider.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        wire: WireError | None = None,
        ours: bool = False,
    ) -> None:
        super().__init__(detail or FAILURES[code].says)
        self.code = code
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s
        self.wire = wire
        self.ours = ours

    @property
    def charges(self) -> bool:
        """Whether it counts against the deployment's health."""
        return self.kind.charges and not self.ours

    @property
    def kind(self) -> FailureKind:
        """The row of FAILURES this error belongs to."""
        return FAILURES[self.code]
