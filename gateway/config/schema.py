"""The sections of the configuration: frozen, strict, with their defaults. Durations in seconds, sizes in bytes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from gateway.config.fields import (
    AutoDuration,
    BaseUrl,
    Body,
    ClockTime,
    Count,
    Credential,
    Duration,
    Endpoint,
    FilePathText,
    Flag,
    FolderText,
    Headers,
    HedgeAfter,
    Host,
    Integer,
    KeyHash,
    Latencies,
    MetricsListen,
    Money,
    Name,
    NotEmpty,
    NullIsEmpty,
    Origin,
    Port,
    PositiveDuration,
    PositiveShare,
    Proxy,
    PublicName,
    Rate,
    Share,
    Size,
    Speeds,
    State,
    Status,
    TotalDuration,
    UpstreamModel,
)

Strategy = Literal["cheapest", "fastest", "lowest_ttft", "balanced", "order", "weighted"]
Feature = Literal["tools", "vision", "reasoning", "json_schema"]
# What `state_dir` says where nothing is to outlive the process.
STATE_OFF = "off"
DialectName = Literal["openai", "anthropic", "gemini", "bedrock", "azure"]


class Section(BaseModel):
    """A mapping of settings. A setting given as null is not given."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}


class Server(Section):
    """Where and how much the gateway serves."""

    host: Host = "127.0.0.1"
    port: Port = 8080
    allow_open: Flag = False
    hosts: tuple[Host, ...] = ()
    cors_origins: tuple[Origin, ...] = ()
    metrics_listen: MetricsListen | None = None
    max_body: Size = 32 * 10**6
    max_inflight_bytes: Size = Field(default=10**9, validate_default=True)
    max_streams: Count = 2000
    drain_timeout: Duration = 300.0
    keepalive_after: PositiveDuration = 10.0

    @field_validator("max_inflight_bytes")
    @classmethod
    def _holds_one_body(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("max_body", 0):
            raise ValueError("must be at least max_body: one body has to fit")
        return value


class Budget(Section):
    """An amount of US dollars per period."""

    usd: Money
    per: Literal["day", "week", "month"]


class AuthKey(Section):
    """One caller. `key` is the SHA-256 of the key in hex; `models` None: every name."""

    name: Name
    key: KeyHash = Field(repr=False)
    models: Annotated[tuple[PublicName, ...], NotEmpty] | None = None
    rpm: Count | None = None
    tpm: Count | None = None
    max_parallel: Count | None = None
    budget: Budget | None = None


class Auth(Section):
    """Who may call. `admin_keys` are SHA-256 in hex."""

    keys: tuple[AuthKey, ...] = ()
    admin_keys: tuple[KeyHash, ...] = Field(default=(), repr=False)


class ProviderTimeouts(Section):
    """Timeouts that belong to the provider, whatever the route."""

    connect: PositiveDuration | None = None


class ProviderSettings(Section):
    """An account at an API. What a preset knows is filled in already; `preset` is its name.

    `api_key` None: no credential is sent. `any_model`: NAME/<model> is served as upstream model <model>.
    """

    preset: Name | None = None
    base_url: BaseUrl
    dialect: DialectName = "openai"
    api_key: Credential | None = None
    any_model: Flag = False
    headers: Headers = Field(default={}, repr=False)
    max_parallel: Count | None = None
    ca_file: FilePathText | None = None
    timeouts: ProviderTimeouts = ProviderTimeouts()
    proxy: Proxy | None = Field(default=None, repr=False)
    trusted: Flag = False
    failover_on: tuple[Status, ...] = ()
    rpm: Count | None = None
    tpm: Count | None = None


class Tier(Section):
    """A promise about measured speed: tokens per second and seconds, by percentile."""

    min_tps: Speeds | None = None
    max_ttft: Latencies | None = None

    @model_validator(mode="after")
    def _promises_something(self) -> Self:
        if self.min_tps is None and self.max_ttft is None:
            raise ValueError("must promise min_tps, max_ttft or both")
        return self


class PriceSettings(Section):
    """US dollars per million tokens; None is not known."""

    input: Money | None = None
    cached_input: Money | None = None
    output: Money | None = None


class DeploymentSettings(Section):
    """One upstream model at one provider. `id` None: provider/model. `model` None: the public model's name."""

    id: PublicName | None = None
    provider: Name
    model: UpstreamModel | None = None
    tier: Name | None = None
    price: PriceSettings | None = None
    context: Count | None = None
    max_output: Count | None = None
    features: tuple[Feature, ...] | None = None
    weight: Rate = 1.0
    body: Body = Field(default={}, repr=False)
    premium_of: PublicName | None = None


class ModelSettings(Section):
    """A public name with one or more deployments of the same weights."""

    aliases: tuple[PublicName, ...] = ()
    deployments: Annotated[tuple[DeploymentSettings, ...], NotEmpty]


class TimeoutSettings(Section):
    """Seconds; None: as in the defaults."""

    connect: PositiveDuration | None = None
    ttft: AutoDuration | None = None
    idle: AutoDuration | None = None
    total: TotalDuration | None = None


class Guard(Section):
    """What to do with a running stream that becomes slow."""

    min_tps: Rate
    after: PositiveDuration = 3.0
    action: Literal["mark", "continue", "error"] = "mark"


class Hedge(Section):
    """When a second attempt is started beside a silent first one."""

    after: HedgeAfter = "p95"
    budget: Share = 0.05


class MaxPrice(Section):
    """US dollars per million tokens that may be paid."""

    input: Money | None = None
    output: Money | None = None


class Policy(Section):
    """What a route may say, and `defaults` for all of them."""

    tier: Name | None = None
    timeouts: TimeoutSettings = TimeoutSettings()
    guard: Guard | None = None
    hedge: Hedge | None = None
    max_price: MaxPrice | None = None


class RouteSettings(Policy):
    """A public name that stands for a policy over models. `strategy` None: the default one."""

    description: str | None = Field(default=None, max_length=500)
    models: Annotated[tuple[PublicName, ...], NotEmpty]
    strategy: Strategy | None = None
    fallback: tuple[PublicName, ...] = ()


class Sag(Section):
    """When a deployment counts as sagging: shares of its own baseline."""

    below: PositiveShare = 0.80
    recover: PositiveShare = Field(default=0.85, validate_default=True)
    dwell: Duration = 30.0

    @field_validator("recover")
    @classmethod
    def _not_under_below(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("below", 0.0):
            raise ValueError("must not be under sag.below, or it would flap")
        return value


class Breaker(Section):
    """When a deployment is taken out after failures, and for how long."""

    failures: Count = 5
    ratio: PositiveShare = 0.5
    min_requests: Count = 10
    window: PositiveDuration = 60.0
    cooldown: PositiveDuration = 10.0
    max_cooldown: PositiveDuration = Field(default=300.0, validate_default=True)

    @field_validator("max_cooldown")
    @classmethod
    def _not_under_cooldown(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("cooldown", 0.0):
            raise ValueError("must not be under breaker.cooldown")
        return value


class Probes(Section):
    """Synthetic requests to deployments that have no traffic."""

    every: PositiveDuration
    at: ClockTime | None = None
    budget: Budget | None = None


class Defaults(Policy):
    """What holds where a route or model says nothing."""

    strategy: Strategy = "order"
    window: PositiveDuration = 300.0
    min_samples: Count = 5
    sag: Sag = Sag()
    breaker: Breaker = Breaker()
    explore: Share = 0.0
    probes: Probes | None = None


class Telemetry(Section):
    """What is told, and to whom. `request_log`: stdout, off, or the path of a file."""

    compat: Literal["genai"] | None = None
    otlp_endpoint: Endpoint | None = Field(default=None, repr=False)
    capture_content: Flag = False
    request_log: FilePathText = "stdout"


class Config(Section):
    """The whole configuration. `state_dir` None: the user's own state folder."""

    version: Integer
    server: Server = Server()
    auth: Auth = Auth()
    state: State = Field(default="memory", repr=False)
    state_dir: FolderText | None = None
    providers: Mapping[Name, Annotated[ProviderSettings, NullIsEmpty]] = {}
    tiers: Mapping[Name, Annotated[Tier, NullIsEmpty]] = {}
    models: Mapping[PublicName, Annotated[ModelSettings, NullIsEmpty]] = {}
    routes: Mapping[PublicName, Annotated[RouteSettings, NullIsEmpty]] = {}
    defaults: Defaults = Defaults()
    telemetry: Telemetry = Telemetry()

    @field_validator("version")
    @classmethod
    def _is_one(cls, value: int) -> int:
        if value != 1:
            raise ValueError("must be 1")
        return value
