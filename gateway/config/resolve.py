"""From a Config to the core's values: providers with credentials, deployments, targets, policies. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway.config.presets import presets
from gateway.config.schema import (
    Config,
    DeploymentSettings,
    ModelSettings,
    PriceSettings,
    ProviderSettings,
    RouteSettings,
    TimeoutSettings,
)
from gateway.core.types import (
    BreakerPolicy,
    Catalog,
    Credential,
    Deployment,
    Price,
    Provider,
    Quirks,
    SagPolicy,
    Target,
    Timeouts,
)


def catalog(config: Config) -> Catalog:
    """Every public name with its deployments. Listed are models, then routes, in the order of the file."""
    providers = {name: _provider(name, settings) for name, settings in config.providers.items()}
    by_model = {
        name: tuple(_deployment(name, entry, providers) for entry in settings.deployments)
        for name, settings in config.models.items()
    }
    targets: dict[str, Target] = {}
    for name, settings in config.models.items():
        targets[name] = _model_target(name, settings, by_model[name], config)
    public = [*config.models, *config.routes]
    for name, route in config.routes.items():
        targets[name] = _route_target(name, route, by_model, config)
    for name, settings in config.models.items():
        targets.update(dict.fromkeys(settings.aliases, targets[name]))
    deployments = {entry.id: entry for entries in by_model.values() for entry in entries}
    return Catalog(MappingProxyType(targets), tuple(public), MappingProxyType(deployments), MappingProxyType(providers))


def open_providers(config: Config) -> tuple[str, ...]:
    """Providers that serve `NAME/<any model>` under the upstream's own model names."""
    return tuple(name for name, settings in config.providers.items() if settings.any_model)


def default_timeouts(config: Config) -> Timeouts:
    """The timeouts of models, and of routes that give none."""
    return _timeouts(TimeoutSettings(), config)


def sag_policy(config: Config) -> SagPolicy:
    """When a deployment counts as sagging."""
    sag = config.defaults.sag
    return SagPolicy(below=sag.below, recover=sag.recover, dwell_s=sag.dwell)


def breaker_policy(config: Config) -> BreakerPolicy:
    """When a deployment is taken out after failures."""
    breaker = config.defaults.breaker
    return BreakerPolicy(
        failures=breaker.failures,
        ratio=breaker.ratio,
        min_requests=breaker.min_requests,
        window_s=breaker.window,
        cooldown_s=breaker.cooldown,
        max_cooldown_s=breaker.max_cooldown,
    )


def _provider(name: str, settings: ProviderSettings) -> Provider:
    return Provider(
        name=name,
        base_url=settings.base_url,
        dialect=settings.dialect,
        credential=_credential(settings),
        headers=tuple(settings.headers.items()),
        connect_s=settings.timeouts.connect,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        max_parallel=settings.max_parallel,
        trusted=settings.trusted,
        failover_on=frozenset(settings.failover_on),
        quirks=presets()[settings.preset].quirks if settings.preset else Quirks(),
    )


def _credential(settings: ProviderSettings) -> Credential:
    if settings.api_key is None:
        return Credential()
    key = settings.api_key.get_secret_value()
    if key == "caller":
        return Credential("caller")
    return Credential("fixed", "authorization", f"Bearer {key}")


def _deployment(model: str, settings: DeploymentSettings, providers: Mapping[str, Provider]) -> Deployment:
    upstream_model = settings.model or model
    return Deployment(
        id=settings.id or f"{settings.provider}/{upstream_model}",
        provider=providers[settings.provider],
        model=model,
        upstream_model=upstream_model,
        weight=settings.weight,
        price=_price(settings.price),
        context=settings.context,
        max_output=settings.max_output,
        features=None if settings.features is None else frozenset(settings.features),
        body=_frozen(settings.body),
    )


def _price(settings: PriceSettings | None) -> Price | None:
    if settings is None:
        return None
    return Price(input=settings.input, cached_input=settings.cached_input, output=settings.output)


def _model_target(name: str, settings: ModelSettings, entries: tuple[Deployment, ...], config: Config) -> Target:
    return Target(
        name=name,
        deployments=entries,
        strategy=config.defaults.strategy,
        timeouts=default_timeouts(config),
        aliases=settings.aliases,
    )


def _route_target(
    name: str, route: RouteSettings, by_model: Mapping[str, tuple[Deployment, ...]], config: Config
) -> Target:
    return Target(
        name=name,
        deployments=tuple(entry for model in route.models for entry in by_model[model]),
        strategy=route.strategy or config.defaults.strategy,
        timeouts=_timeouts(route.timeouts, config),
        route=name,
        description=route.description,
        fallback=route.fallback,
    )


def _timeouts(own: TimeoutSettings, config: Config) -> Timeouts:
    """A route's own timeouts over the defaults over the built-in ones."""
    shared, built_in = config.defaults.timeouts, Timeouts()
    ttft = own.ttft or shared.ttft
    idle = own.idle or shared.idle
    total = own.total or shared.total
    return Timeouts(
        connect_s=own.connect or shared.connect or built_in.connect_s,
        ttft_s=ttft if isinstance(ttft, float) else None,
        idle_s=idle if isinstance(idle, float) else None,
        total_s=None if total == "none" else total if isinstance(total, float) else built_in.total_s,
    )


def _frozen(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({str(name): _plain(item) for name, item in value.items()})


def _plain(value: Any) -> Any:
    """Read-only, and text as plain text: what came from the environment has a type of its own until here."""
    if isinstance(value, Mapping):
        return _frozen(value)
    if isinstance(value, tuple | list):
        return tuple(_plain(item) for item in value)
    return str(value) if isinstance(value, str) else value
