"""GET /v1/speed: every deployment's measured speed, the JSON behind the board."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import orjson

from gateway.api import speed_shape
from gateway.api.asgi import JSON_HEADERS, Request, respond
from gateway.api.pieces import Pace, Piece, Wanted
from gateway.api.reports import Reports
from gateway.api.services import Services
from gateway.core.clock import iso_utc, monotonic, utc_now
from gateway.core.errors import RequestError
from gateway.core.speed import WINDOWS
from gateway.core.types import Caller, Deployment

# Names a refusal lists at most.
_NAMED = 10
_HOUR = {"1h": WINDOWS["1h"]}


async def speed(services: Services, request: Request, caller: Caller) -> None:
    """The deployments the caller's names can reach; `model`, `provider`, `deployment` and `window` narrow it down.

    Each may be given several times. Raises RequestError: 404 for what is not there, 400 for another window.
    """
    windows = _windows(request)
    shown = _filtered(services, request, caller)
    reports = services.reports
    key = ("speed", windows, tuple(entry.id for entry in shown))
    body = await reports.answers.get(key, lambda: _answer(reports, shown, windows))
    await respond(request, 200, body, JSON_HEADERS)


async def _answer(reports: Reports, shown: Sequence[Deployment], windows: Sequence[str]) -> bytes:
    wanted = (part for deployment in shown for part in _parts(reports, deployment, windows))
    pieces = await reports.pieces.collect(wanted)
    entries = await _entries(reports, shown, pieces, windows)
    oldest = min((piece.made for piece in pieces), default=monotonic())
    generated = iso_utc(utc_now() - timedelta(seconds=monotonic() - oldest))
    start = orjson.dumps({"generated": generated})[:-1]
    return start + b',"deployments":[' + b",".join(entries) + b"]}"


def _parts(reports: Reports, deployment: Deployment, windows: Sequence[str]) -> list[Wanted]:
    """What of one deployment costs something: what was learnt of it (the load in the last hour), then the windows."""
    speeds, name = reports.speeds, deployment.id
    learnt: Wanted = ((name, "learnt"), lambda now: speed_shape.learnt(speeds.report(name, now, _HOUR)))
    return [learnt, *(((name, window), partial(_window, reports, name, window)) for window in windows)]


def _window(reports: Reports, deployment_id: str, name: str, now: float) -> speed_shape.Shown:
    return speed_shape.window(reports.speeds.window(deployment_id, WINDOWS[name], now))


async def _entries(
    reports: Reports, shown: Sequence[Deployment], pieces: Sequence[Piece], windows: Sequence[str]
) -> list[bytes]:
    """One JSON object a deployment: its state of this moment, joined with its pieces."""
    entries: list[bytes] = []
    rest = iter(pieces)
    pace = Pace()
    for deployment in shown:
        learnt = next(rest).text
        by_name = b",".join(b'"%b":%b' % (name.encode(), next(rest).text) for name in windows)
        present = orjson.dumps(_present(reports, deployment))
        entries.append(present[:-1] + b"," + learnt[1:-1] + b',"windows":{' + by_name + b"}}")
        await pace.rest()
    return entries


def _present(reports: Reports, deployment: Deployment) -> speed_shape.Shown:
    now = monotonic()
    health = reports.health.health(deployment, now)
    until = None
    # A cooldown that is over remains the state until somebody tries; its end is no news.
    if health.until is not None and health.until > now:
        until = iso_utc(utc_now() + timedelta(seconds=health.until - now))
    return speed_shape.present(deployment, health, until, reports.in_flight(deployment.id))


def _windows(request: Request) -> tuple[str, ...]:
    asked = request.queries("window")
    for name in asked:
        if name not in WINDOWS:
            message = f"there is no window {name[:100]!r}; allowed: {', '.join(WINDOWS)}"
            raise RequestError(400, message, code="invalid_value", param="window")
    return tuple(name for name in WINDOWS if not asked or name in asked)


def _filtered(services: Services, request: Request, caller: Caller) -> list[Deployment]:
    visible = services.names.reachable(caller)
    models, providers, ids = (request.queries(name) for name in ("model", "provider", "deployment"))
    _check(providers, {entry.provider.name: None for entry in visible.values()}, "provider")
    _check(ids, visible, "deployment")
    targets = [services.names.look_up(name, caller) for name in models]
    by_model = {entry.id for target in targets for entry in target.deployments}
    return [
        entry
        for entry in visible.values()
        if (not models or entry.id in by_model)
        and (not providers or entry.provider.name in providers)
        and (not ids or entry.id in ids)
    ]


def _check(asked: Iterable[str], known: Mapping[str, object], what: str) -> None:
    """Refuses a name that is not there, naming some that are."""
    for name in asked:
        if name not in known:
            some = ", ".join(list(known)[:_NAMED]) or "none"
            raise RequestError(404, f"there is no {what} {name[:100]!r}; known: {some}", code="not_found", param=what)
