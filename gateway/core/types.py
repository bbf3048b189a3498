"""What is routed to and with what: providers, deployments, targets, calls. Frozen values without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# A JSON object as it came over the wire; the one place where Any is right.
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Credential:
    """How a provider is signed: the header and its whole value. The value is never in a repr or a log.

    kind `caller`: the caller's own key is passed on as Bearer; `none`: no header is sent.
    """

    kind: Literal["none", "fixed", "caller"] = "none"
    header: str = "authorization"
    value: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Quirks:
    """What a vendor does differently on the OpenAI dialect; data from its preset.

    `include_usage`: takes `stream_options.include_usage`. `refuses`: parameters removed before sending.
    `renames`: parameters sent under another name. `developer_role`: takes the role `developer`.
    """

    include_usage: bool = True
    refuses: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    developer_role: bool = True


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. None for `ttft` and `idle` is `auto`; None for `total` is no limit."""

    connect_s: float = 5.0
    tls_s: float = 5.0
    pool_s: float = 10.0
    ttft_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = 1800.0


@dataclass(frozen=True, slots=True)
class Provider:
    """An account at an API. `base_url` has no trailing slash. `max_parallel` None: as many as the server takes."""

    name: str
    base_url: str
    dialect: str = "openai"
    credential: Credential = Credential()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    connect_s: float | None = None
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    max_parallel: int | None = None
    trusted: bool = False
    failover_on: frozenset[int] = frozenset()
    quirks: Quirks = field(default_factory=Quirks)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. None: not known (never 0)."""

    input: float | None = None
    cached_input: float | None = None
    output: float | None = None


def asked_tier(body: Mapping[str, Any]) -> str | None:
    """The speed tier a request body asks a provider for: `service_tier`, or Anthropic's `speed`."""
    for name in ("service_tier", "speed"):
        value = body.get(name)
        if isinstance(value, str):
            return value
    return None


@dataclass(frozen=True, slots=True)
class Deployment:
    """One upstream model at one provider: the unit that is routed to, metered and cooled down.

    `features` None: everything. `body` is merged into every request sent to it.
    """

    id: str
    provider: Provider
    model: str
    upstream_model: str
    weight: float = 1.0
    price: Price | None = None
    context: int | None = None
    max_output: int | None = None
    features: frozenset[str] | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A public name a caller may ask for: a model or a route, resolved to deployments.

    `route` is the route's name, None where the name is a model's. `fallback` names further targets.
    """

    name: str
    deployments: tuple[Deployment, ...]
    strategy: str
    timeouts: Timeouts
    route: str | None = None
    description: str | None = None
    fallback: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request needs of a deployment, read from its body once. Tokens are estimates."""

    prompt_tokens: int = 0
    max_tokens: int | None = None
    tools: bool = False
    vision: bool = False
    json_schema: bool = False
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `name` None: no keys are configured (loopback). `models` None: all."""

    name: str | None = None
    models: frozenset[str] | None = None
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client, parsed and checked. `body` is the client's JSON and is never changed in place.

    `meter`: the stream is to end with the record as a comment.
    """

    id: str
    surface: str
    path: str
    body: Json
    stream: bool
    target: Target
    caller: Caller
    needs: Needs
    started: float
    received: float
    size: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    caller_key: str | None = field(default=None, repr=False)
    meter: bool = False
    client_request_id: str | None = None
    task: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One entry of a plan. `reason` says why it stands where it stands; `kind` is `primary` or `fallback`."""

    deployment: Deployment
    target: Target
    reason: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A deployment that a filter took out of the plan, and why."""

    deployment: Deployment
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered candidates for one call; empty only where policy or capability left none."""

    candidates: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """A deployment's state as the planner and the tables see it. `until`: monotonic seconds, None where open-ended."""

    state: Literal["ok", "unmeasured", "sagging", "probing", "cooling", "disabled"]
    reason: str | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A decayed weighted mean with its standard error and effective sample count."""

    mean: float
    error: float
    count: float


@dataclass(frozen=True, slots=True)
class SpeedEvidence:
    """What sag is judged on. `speed` and `baseline` are of ln(output tok/s); `ttft` is of ln(TTFT / its prediction).

    None: nothing there yet. `interim`: ln tok/s of the streams that are still running, also in `speed`.
    """

    speed: Estimate | None = None
    baseline: Estimate | None = None
    ttft: Estimate | None = None
    interim: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A running stream so far. Seconds count from the attempt's t0.

    `first_token_s` None: no token yet, so `elapsed_s` is a lower bound of its TTFT. `tps` is estimated from characters,
    over the time since the first token; None while that says nothing, as where the client kept us waiting.
    `tokens` is how many of them are estimated to have come. `resting`: hidden thinking or a tool call that is held back
    may be under way, so that silence says nothing of speed. `prompt_tokens` is an estimate.
    """

    elapsed_s: float
    first_token_s: float | None = None
    tokens: float = 0.0
    tps: float | None = None
    resting: bool = False
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SpeedView:
    """Quantiles over the speed window, for tables. None under one sample."""

    samples: int = 0
    output_tps_p50: float | None = None
    ttft_ms_p50: float | None = None
    ttft_ms_p95: float | None = None


@dataclass(frozen=True, slots=True)
class SagPolicy:
    """Shares of the own baseline; seconds."""

    below: float = 0.80
    recover: float = 0.85
    dwell_s: float = 30.0


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Consecutive failures, or a failure ratio over a window with a minimum count; seconds."""

    failures: int = 5
    ratio: float = 0.5
    min_requests: int = 10
    window_s: float = 60.0
    cooldown_s: float = 10.0
    max_cooldown_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every public name. `targets` also has the aliases; `public` the names that are listed, in order."""

    targets: Mapping[str, Target]
    public: tuple[str, ...]
    deployments: Mapping[str, Deployment]
    providers: Mapping[str, Provider]
