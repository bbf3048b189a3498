"""Mistakes between settings: names that lead nowhere, names given twice, circles, combinations that are refused.

They are looked for in the raw values, so that they are reported together with what is wrong in the schema.
"""

from collections.abc import Iterable, Iterator

from gateway.config import tree
from gateway.config.document import Document
from gateway.config.hosts import host_and_port, is_host, is_loopback
from gateway.config.keys import key_hash
from gateway.config.problems import Path, Problem, meant, shown


def reference_problems(document: Document) -> Iterator[Problem]:
    """Every mistake between settings, with its line."""
    for check in (_deployments, _public_names, _routes, _circles, _tiers, _keys, _callers_key, _exposure, _nothing):
        for path, text in check(document):
            yield Problem(path, text, document.line(path))


Finding = tuple[Path, str]


def _deployments(document: Document) -> Iterator[Finding]:
    """Providers that exist, ids that are unique, premium lanes of something."""
    providers = tree.section(document, "providers")
    nodes = list(tree.deployments(document))
    ids = {node.id: node for node in nodes if node.id}
    seen: dict[str, Path] = {}
    for node in nodes:
        if node.provider is not None and node.provider not in providers:
            says = f"unknown provider {shown(node.provider)}; {meant(node.provider, providers, 'providers')}"
            yield (*node.path, "provider"), says
        if node.id in seen:
            line = document.line(seen[node.id])
            at = (*node.path, "id") if "id" in node.values else node.path
            yield at, f"the deployment id {shown(node.id)} is taken (line {line}); give this one an id of its own"
        elif node.id:
            seen[node.id] = node.path
        premium = tree.text_or_none(node.values.get("premium_of"))
        if premium is not None and (premium not in ids or premium == node.id):
            others = [known for known in ids if known != node.id]
            yield (*node.path, "premium_of"), f"unknown deployment {shown(premium)}; {meant(premium, others, 'ids')}"


def _public_names(document: Document) -> Iterator[Finding]:
    """A name stands for one thing: a model, an alias or a route."""
    taken: dict[str, str] = dict.fromkeys(tree.section(document, "models"), "a model")
    for name in tree.section(document, "routes"):
        if name in taken:
            yield ("routes", name), f"the name is taken by {taken[name]}; every public name stands for one thing"
        taken.setdefault(name, "a route")
    for model, settings in tree.section(document, "models").items():
        for index, alias in tree.texts(tree.mapping(settings).get("aliases")):
            if alias in taken:
                says = f"the name {shown(alias)} is taken by {taken[alias]}; every public name stands for one thing"
                yield ("models", model, "aliases", index), says
            taken.setdefault(alias, "an alias")


def _routes(document: Document) -> Iterator[Finding]:
    """Routes are made of models and fall back to routes."""
    models = tree.section(document, "models")
    routes = tree.section(document, "routes")
    for name, settings in routes.items():
        values = tree.mapping(settings)
        for index, model, twice in _listed(values.get("models")):
            path: Path = ("routes", name, "models", index)
            if model not in models:
                kind = "a route; a route is made of models" if model in routes else f"unknown model {shown(model)}"
                yield path, kind if model in routes else f"{kind}; {meant(model, models, 'models')}"
            elif twice:
                yield path, f"{shown(model)} is listed twice"
        for index, other, twice in _listed(values.get("fallback")):
            path = ("routes", name, "fallback", index)
            if other not in routes:
                says = "is a model; fallback takes routes" if other in models else f"unknown route {shown(other)}"
                yield path, says if other in models else f"{says}; {meant(other, routes, 'routes')}"
            elif twice:
                yield path, f"{shown(other)} is listed twice"


def _listed(value: object) -> Iterator[tuple[int, str, bool]]:
    """The texts of a list, and whether each was there before."""
    seen: set[str] = set()
    for index, item in tree.texts(value):
        yield index, item, item in seen
        seen.add(item)


def _circles(document: Document) -> Iterator[Finding]:
    """Fallbacks that lead back. Each circle is reported once, where it closes."""
    routes = tree.section(document, "routes")
    done: set[str] = set()
    for start in routes:
        trail: list[str] = [start]
        pending = [iter(_fallbacks(routes.get(start)))]
        while pending and start not in done:
            step = next(pending[-1], None)
            if step is None:
                done.add(trail.pop())
                pending.pop()
            elif step[1] in trail:
                circle = [*trail[trail.index(step[1]) :], step[1]]
                path: Path = ("routes", trail[-1], "fallback", step[0])
                yield path, f"falls back in a circle: {' -> '.join(map(shown, circle))}"
            elif step[1] in routes and step[1] not in done:
                trail.append(step[1])
                pending.append(iter(_fallbacks(routes[step[1]])))


def _fallbacks(settings: object) -> list[tuple[int, str]]:
    return list(tree.texts(tree.mapping(settings).get("fallback")))


def _tiers(document: Document) -> Iterator[Finding]:
    """Every tier that is asked for is defined."""
    tiers = tree.section(document, "tiers")
    places: list[tuple[Path, object]] = [(("defaults", "tier"), tree.section(document, "defaults").get("tier"))]
    for name, settings in tree.section(document, "routes").items():
        places.append((("routes", name, "tier"), tree.mapping(settings).get("tier")))
    places += [((*node.path, "tier"), node.values.get("tier")) for node in tree.deployments(document)]
    for path, tier in places:
        if isinstance(tier, str) and tier not in tiers:
            yield path, f"unknown tier {shown(tier)}; {meant(tier, tiers, 'tiers')}"


def _keys(document: Document) -> Iterator[Finding]:
    """Keys have names and values of their own, and may use what exists."""
    auth = tree.section(document, "auth")
    known = _public(document)
    takes_any = tree.open_providers(document)
    entries = list(enumerate(tree.sequence(auth.get("keys"))))
    admins = enumerate(tree.sequence(auth.get("admin_keys")))
    names: set[str] = set()
    for index, given in entries:
        values = tree.mapping(given)
        path: Path = ("auth", "keys", index)
        name = tree.text_or_none(values.get("name"))
        if name in names:
            yield (*path, "name"), f"the key name {shown(name)} is taken; records tell keys apart by it"
        if name:
            names.add(name)
        for position, model in tree.texts(values.get("models")):
            if model not in known and model.partition("/")[0] not in takes_any:
                says = f"unknown model or route {shown(model)}; {meant(model, known, 'names')}"
                yield (*path, "models", position), says
    yield from _same_key((("auth", "keys", index, "key"), tree.mapping(values).get("key")) for index, values in entries)
    yield from _same_key((("auth", "admin_keys", index), key) for index, key in admins)


def _same_key(keys: Iterable[tuple[Path, object]]) -> Iterator[Finding]:
    seen: set[str] = set()
    for path, key in keys:
        try:
            digest = key_hash(key)
        except ValueError:
            continue
        if digest in seen:
            yield path, "is the same key as one before it; callers could not be told apart"
        seen.add(digest)


def _public(document: Document) -> list[str]:
    """Every name a caller may ask for, as far as the file names them."""
    models = tree.section(document, "models")
    aliases = [alias for values in models.values() for _, alias in tree.texts(tree.mapping(values).get("aliases"))]
    return [*models, *tree.section(document, "routes"), *aliases]


def _callers_key(document: Document) -> Iterator[Finding]:
    """With keys of our own the caller's credential is ours, and nothing to pass on."""
    if not tree.sequence(tree.section(document, "auth").get("keys")):
        return
    for name, values in tree.section(document, "providers").items():
        if tree.mapping(values).get("api_key") == "caller":
            says = "caller cannot stand beside auth.keys: callers then present the gateway's key, not the provider's"
            yield ("providers", name, "api_key"), says


def _exposure(document: Document) -> Iterator[Finding]:
    """An open gateway on a network spends its owner's money for anybody."""
    server = tree.section(document, "server")
    host = server.get("host", "127.0.0.1")
    has_keys = bool(tree.sequence(tree.section(document, "auth").get("keys")))
    allowed = server.get("allow_open") in (True, "true")
    if isinstance(host, str) and is_host(host) and exposed(host, has_keys=has_keys, allow_open=allowed):
        yield ("server", "host"), EXPOSED
    listen = server.get("metrics_listen")
    port = server.get("port", 8080)
    try:
        same = isinstance(listen, str) and host_and_port(listen) == (host, port)
    except ValueError:
        return
    if same:
        yield ("server", "metrics_listen"), "must differ from server.host and server.port"


EXPOSED = (
    "is not a loopback address and auth.keys is empty: anybody who reaches it could spend your keys; "
    "add auth.keys, or server.allow_open: true where something in front checks callers"
)


def exposed(host: str, *, has_keys: bool, allow_open: bool) -> bool:
    """Whether serving on `host` is refused. Also asked for a host given on the command line."""
    return not (is_loopback(host) or has_keys or allow_open)


def _nothing(document: Document) -> Iterator[Finding]:
    """A gateway that can serve no name is a mistake."""
    if not tree.section(document, "models") and not tree.open_providers(document):
        yield ("models",), "nothing could be served: add models, or any_model: true to a provider"
