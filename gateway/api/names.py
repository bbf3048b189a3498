"""From the name a caller asks for to what it stands for."""

from collections.abc import Iterable, Mapping

from gateway.core.errors import RequestError
from gateway.core.types import Caller, Catalog, Deployment, Provider, Target, Timeouts

MAX_NAME = 256
# Names minted by callers (`provider/anything`) are told apart up to this number.
MAX_OPEN_NAMES = 1000


class Names:
    """The public names. `open_providers` take any model as `provider/model`."""

    def __init__(self, catalog: Catalog, open_providers: Iterable[str], timeouts: Timeouts) -> None:
        self._catalog = catalog
        self._open: Mapping[str, Provider] = {name: catalog.providers[name] for name in open_providers}
        self._timeouts = timeouts
        self._made: dict[str, Target] = {}
        self._shared: dict[str, Target] = {}

    @property
    def public(self) -> tuple[str, ...]:
        """What is listed, in the order of the configuration."""
        return self._catalog.public

    def target(self, name: str, caller: Caller) -> Target:
        """What a request asks for. Raises RequestError 404 `model_not_found`, 403 where the key may not use it."""
        target = self.look_up(name, caller)
        if name not in self._catalog.targets:
            (self._made if target.name == name else self._shared)[target.name] = target
        return target

    def look_up(self, name: str, caller: Caller) -> Target:
        """What `name` stands for, without a request for it. Raises RequestError as `target` does."""
        target = self._catalog.targets.get(name) or self._made_up(name)
        if target is None:
            raise self._unknown(name, caller)
        if not may_use(caller, target):
            raise RequestError(403, f"this key may not use the model {name!r}", code="model_not_allowed", param="model")
        return target

    def reachable(self, caller: Caller) -> Mapping[str, Deployment]:
        """By id, the deployments that the caller's requests may come to, fallbacks included; of those that open
        providers have on demand, the ones that were asked for."""
        targets = self._catalog.targets
        if caller.models is None:
            found = dict(self._catalog.deployments)
        else:
            named = [target for target in targets.values() if may_use(caller, target)]
            found = {entry.id: entry for target in _with_fallbacks(named, targets) for entry in target.deployments}
        for target in (*self._made.values(), *self._shared.values()):
            if may_use(caller, target):
                found |= {entry.id: entry for entry in target.deployments}
        return found

    def described(self, name: str) -> Target:
        """A public name's target."""
        return self._catalog.targets[name]

    def _made_up(self, name: str) -> Target | None:
        provider_name, slash, model = name.partition("/")
        provider = self._open.get(provider_name)
        # A name stands in logs, headers and records: what cannot be shown is no name.
        if not slash or not model or provider is None or len(name) > MAX_NAME or not name.isprintable():
            return None
        if name in self._made:
            return self._made[name]
        # Past the limit names share one identity: they still work, and no statistic grows without bound.
        identity = name if len(self._made) < MAX_OPEN_NAMES else f"{provider_name}/*"
        deployment = Deployment(id=identity, provider=provider, model=identity, upstream_model=model)
        return Target(identity, (deployment,), "order", self._timeouts)

    def _unknown(self, name: str, caller: Caller) -> RequestError:
        known = [public for public in self.public if may_use(caller, self._catalog.targets[public])][:10]
        known += [f"{provider}/…" for provider in self._open][: 10 - len(known)]
        shown = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"
        message = f"the model {shown!r} does not exist; known: {', '.join(known) or 'none'}"
        return RequestError(404, message, code="model_not_found", param="model")


def may_use(caller: Caller, target: Target) -> bool:
    """An allow-list names what may be asked for; an alias counts as its model."""
    if caller.models is None:
        return True
    return not caller.models.isdisjoint((target.name, *target.aliases))


def _with_fallbacks(targets: Iterable[Target], known: Mapping[str, Target]) -> Iterable[Target]:
    """The targets, then their fallbacks and theirs, each once."""
    found = {target.name: target for target in targets}
    waiting = list(found.values())
    while waiting:
        for name in waiting.pop().fallback:
            if name not in found:
                found[name] = known[name]
                waiting.append(known[name])
    return found.values()
