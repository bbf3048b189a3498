"""Warnings: settings without effect, and settings that work but should be looked at."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gateway.config import tree
from gateway.config.document import Document
from gateway.config.hosts import host_and_port, is_loopback, is_near
from gateway.config.problems import FromEnvironment, Path, Problem
from gateway.config.schema import Config, Policy, RouteSettings

# These always move on to the next deployment, so that naming them changes nothing.
_ALREADY_MOVE_ON = frozenset({401, 402, 403, 404, 408, 429, *range(500, 600)})


def warnings_of(config: Config, document: Document) -> Iterator[Problem]:
    """What a valid configuration should still be told."""
    for check in (_unused_providers, _idle_settings, _timeouts, _plain_http, _open_metrics):
        for path, text in check(config):
            yield Problem(path, text, document.line(path))
    for path, text in _literal_secrets(document):
        yield Problem(path, text, document.line(path))


Finding = tuple[Path, str]


def _unused_providers(config: Config) -> Iterator[Finding]:
    used = {deployment.provider for model in config.models.values() for deployment in model.deployments}
    for name, provider in config.providers.items():
        if name not in used and not provider.any_model:
            yield ("providers", name), "has no effect: no deployment uses this provider"


def _idle_settings(config: Config) -> Iterator[Finding]:
    """Settings that nothing looks at, the others being as they are."""
    strategies = {config.defaults.strategy, *(route.strategy for route in config.routes.values())}
    for model, settings in config.models.items():
        for index, deployment in enumerate(settings.deployments):
            if deployment.weight != 1.0 and "weighted" not in strategies:
                yield ("models", model, "deployments", index, "weight"), "has no effect: no strategy here is weighted"
    for name, provider in config.providers.items():
        for index, status in enumerate(provider.failover_on):
            if status in _ALREADY_MOVE_ON:
                path: Path = ("providers", name, "failover_on", index)
                yield path, f"has no effect: {status} moves on to the next deployment anyway"
    if config.server.host in ("0.0.0.0", "::") and not config.server.hosts:
        says = "only loopback names and this machine's own addresses are answered: list further names in server.hosts"
        yield ("server", "host"), says
    if config.auth.admin_keys and not config.auth.keys:
        yield ("auth", "admin_keys"), "has no effect: without auth.keys everybody may call and see every record"
    if config.server.allow_open and (config.auth.keys or is_loopback(config.server.host)):
        yield ("server", "allow_open"), "has no effect: the gateway is not open to a network"


def _timeouts(config: Config) -> Iterator[Finding]:
    """Deadlines that a shorter one always cuts off."""
    yield from _late(("defaults", "timeouts"), config.defaults, config.defaults)
    for name, route in config.routes.items():
        yield from _late(("routes", name, "timeouts"), route, config.defaults)


def _late(path: Path, policy: RouteSettings | Policy, defaults: Policy) -> Iterator[Finding]:
    total = policy.timeouts.total or defaults.timeouts.total or 1800.0
    for name in ("ttft", "idle"):
        value = getattr(policy.timeouts, name)
        if isinstance(value, float) and isinstance(total, float) and value >= total:
            yield (*path, name), "has no effect: timeouts.total ends the request before"


def _plain_http(config: Config) -> Iterator[Finding]:
    for name, provider in config.providers.items():
        parts = urlsplit(provider.base_url)
        if parts.scheme == "http" and provider.api_key is not None and not is_near(parts.hostname or ""):
            says = "sends the key unencrypted over http:// to a host that is not on a private network; use https://"
            yield ("providers", name, "base_url"), says


def _open_metrics(config: Config) -> Iterator[Finding]:
    listen = config.server.metrics_listen
    if listen is not None and not is_loopback(host_and_port(listen)[0]):
        says = "can be reached from a network and asks for no key: whoever can connect reads what is used and how much"
        yield ("server", "metrics_listen"), says


def _literal_secrets(document: Document) -> Iterator[Finding]:
    """Secrets that stand in the file itself."""
    auth = tree.section(document, "auth")
    for index, values in enumerate(tree.sequence(auth.get("keys"))):
        if _literal_key(tree.mapping(values).get("key")):
            yield ("auth", "keys", index, "key"), _HASH_IT
    for index, key in enumerate(tree.sequence(auth.get("admin_keys"))):
        if _literal_key(key):
            yield ("auth", "admin_keys", index), _HASH_IT
    for name, values in tree.section(document, "providers").items():
        key = tree.mapping(values).get("api_key")
        if isinstance(key, str) and not isinstance(key, FromEnvironment) and key not in ("caller", "none"):
            yield ("providers", name, "api_key"), "is a secret in the file itself; write ${VAR} or file:/path instead"


_HASH_IT = "is a key in the file itself; write the sha256:… that `gateway keys hash` prints instead"


def _literal_key(key: object) -> bool:
    return isinstance(key, str) and not isinstance(key, FromEnvironment) and not key.strip().startswith("sha256:")
