"""The control endpoint `/sim`: what a simulated provider does and has seen, and changing it while it runs."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import parse_qs

from gateway.core.clock import monotonic
from gateway.core.errors import ConfigError, RequestError
from gateway.core.types import Json
from gateway.simulator.chat import read_json
from gateway.simulator.connection import Reply, Request
from gateway.simulator.parse import read_live, show
from gateway.simulator.script import Script
from gateway.simulator.timeline import Ending, at_once
from gateway.simulator.truth import Stats, StreamTruth
from gateway.simulator.wire import error_body, json_answer

_SHOWN = 10
_COUNTERS = (
    "requests",
    "streams_open",
    "streams_peak",
    "aborted",
    "tokens_sent",
    "connections_open",
    "connections_total",
)


class Control:
    """Answers GET and POST of `/sim`. Not counted, never delayed, needs no key."""

    def __init__(self, script: Callable[[], Script], stats: Stats, change: Callable[[Mapping[str, Any]], None]) -> None:
        self._script = script
        self._stats = stats
        self._change = change

    def reply(self, request: Request) -> Reply:
        """Never raises."""
        try:
            script = self._script()
            if request.method == "POST":
                script = replace(script, **self._posted(read_json(request.body)))
            elif request.method != "GET":
                raise RequestError(405, f"{request.method} is not allowed here", code="method_not_allowed")
            status, body = 200, self._view(script, _last(request))
        except RequestError as error:
            status, body = error.status, error_body(error.status, error.message, error.param, error.code)
        ending = Ending.DONE if request.keep_alive else Ending.CLOSE
        return Reply(at_once(json_answer(status, body, request.keep_alive, {}), ending))

    def _posted(self, body: Json) -> dict[str, Any]:
        """Carries out what is asked; the changes to the script take effect in the next turn of the event loop."""
        clear = body.pop("reset", False)
        try:
            changes = read_live(body)
        except ConfigError as error:
            raise RequestError(400, "; ".join(error.problems), code="invalid_sim") from None
        if changes.get("outage"):
            raise RequestError(
                400, "outage: would lock this endpoint out too; give a schedule with for", code="invalid_sim"
            )
        if clear not in (True, False):
            raise RequestError(400, f"reset: {clear!r} is not true or false", code="invalid_sim")
        if clear:
            self._stats.reset()
        if changes:
            self._change(changes)
        return changes

    def _view(self, script: Script, last: int) -> Json:
        stats = self._stats
        return {
            "now": monotonic(),
            "script": show(script),
            "counters": {name: getattr(stats, name) for name in _COUNTERS},
            "last_requests": [asdict(seen) for seen in list(stats.seen)[-last:]],
            "last_streams": [_stream_view(stream) for stream in list(stats.streams)[-last:]],
        }


def _stream_view(stream: StreamTruth) -> Json:
    view = {name: getattr(stream, name) for name in StreamTruth.__slots__}
    return view | {name: list(view[name]) for name in ("due", "sent", "counts")}


def _last(request: Request) -> int:
    text = parse_qs(request.target.partition("?")[2]).get("last", [str(_SHOWN)])[0]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise RequestError(400, "last must be a whole number from 1 to 1000", param="last")
    return int(text)
