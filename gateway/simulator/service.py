"""What a simulated provider answers to each request: chat, models, health, control, and the errors."""

import time
from collections.abc import Callable
from dataclasses import replace
from random import Random

from gateway.core.errors import RequestError
from gateway.core.types import Json
from gateway.simulator import faults
from gateway.simulator.answer import compose
from gateway.simulator.chat import Chat, read_chat, read_json
from gateway.simulator.connection import Reply, Request
from gateway.simulator.faults import Fault, kind_of
from gateway.simulator.pace import Pace, first_token_after
from gateway.simulator.script import Script
from gateway.simulator.streamed import streamed
from gateway.simulator.timeline import Ending, Job, Timeline, at_once, buffered, reset, silent, split
from gateway.simulator.truth import RequestSeen, Stats, StreamTruth
from gateway.simulator.whole import whole
from gateway.simulator.wire import Frames, body_head, error_body, json_answer, retry_after

_KEPT_BODY_BYTES = 262_144
_KEPT_HEADER_CHARS = 1000
_HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"


class Service:
    """Turns requests into replies. `live` gives the script as it is at this moment."""

    def __init__(self, live: Callable[[], Script], stats: Stats, control: Callable[[Request], Reply]) -> None:
        self._live = live
        self._stats = stats
        self._control = control

    def reply(self, request: Request) -> Reply:
        """Never raises; a refusal is a reply too."""
        path = request.target.partition("?")[0]
        if path == "/sim":
            return self._control(request)
        self._stats.requests += 1
        number = self._stats.requests
        try:
            return self._routed(request, path, number)
        except RequestError as error:
            body = error_body(error.status, error.message, error.param, error.code)
            return Reply(at_once(json_answer(error.status, body, request.keep_alive, {}), _ending(request)))

    def _routed(self, request: Request, path: str, number: int) -> Reply:
        if path == "/v1/chat/completions":
            return self._chat(request, path, number)
        self._see(request, path, number, None)
        if path not in {"/healthz", "/v1/models"} and not path.startswith("/v1/models/"):
            raise RequestError(404, f"Unknown request URL: {request.method} {path}", code="unknown_url")
        _allow(request, "GET", "HEAD")
        found: object = {"status": "ok"} if path == "/healthz" else self._models(request, path)
        answer = json_answer(200, found, request.keep_alive, {})
        if request.method == "HEAD":
            answer = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        return Reply(at_once(answer, _ending(request)))

    def _models(self, request: Request, path: str) -> object:
        script = self._live()
        _authorize(request, script)
        owner = {"object": "model", "created": 0, "owned_by": script.name}
        listed: list[Json] = [{"id": model} | owner for model in script.models or (script.name,)]
        if path == "/v1/models":
            return {"object": "list", "data": listed}
        wanted = path.removeprefix("/v1/models/")
        for model in listed:
            if model["id"] == wanted:
                return model
        raise _unknown_model(wanted)

    def _chat(self, request: Request, path: str, number: int) -> Reply:
        body: Json | None = None
        try:
            _allow(request, "POST")
            _authorize(request, self._live())
            body = read_json(request.body)
            chat = read_chat(body)
        finally:
            self._see(request, path, number, body)
        script = self._live()
        if script.models and chat.model not in script.models:
            raise _unknown_model(chat.model)
        job = self._job(request, chat, number)
        truth = StreamTruth(
            number=number,
            model=chat.model,
            stream=chat.stream,
            faults=tuple(kind_of(fault) for fault in job.faults),
            request_read=request.at,
            output_tokens=job.answer.output,
            prompt_tokens=chat.prompt_tokens,
        )
        self._stats.began(truth)
        return Reply(_timeline(job), truth)

    def _job(self, request: Request, chat: Chat, number: int) -> Job:
        live = _changed(self._live, chat) if chat.changes else self._live
        script = live()
        rng = Random(script.seed * 1_000_003 + number)
        response_id = f"chatcmpl-{script.name}-{number}"
        created = int(time.time())
        return Job(
            chat=chat,
            script=script,
            faults=tuple(fault for fault in script.faults if rng.random() < fault.share),
            answer=compose(chat, script, f"call_{response_id}", rng.randrange(1000)),
            frames=Frames(response_id, chat.model, created, chat.include_usage, request.chunked),
            pace=Pace(live, lambda: self._stats.streams_open, rng),
            rng=rng,
            ttft=first_token_after(script.ttft, chat.prompt_tokens, rng),
            keep_alive=request.keep_alive and request.chunked,
            chunked=request.chunked,
            response_id=response_id,
            created=created,
        )

    def _see(self, request: Request, path: str, number: int, body: Json | None) -> None:
        headers = tuple((name, value[:_KEPT_HEADER_CHARS]) for name, value in request.headers)
        size = len(request.body)
        kept = body if size <= _KEPT_BODY_BYTES else None
        self._stats.request(RequestSeen(number, request.at, request.method, path, headers, size, kept))


def _timeline(job: Job) -> Timeline:
    steps = _refusal(job) or (streamed(job) if job.chat.stream else whole(job))
    if job.struck(faults.Buffered) is not None and job.chat.stream:
        steps = buffered(steps)
    torn = job.struck(faults.Split)
    return steps if torn is None else split(steps, torn.pieces, torn.every, job.rng)


def _refusal(job: Job) -> Timeline | None:
    """The first fault that strikes before any header of a good answer."""
    for fault in job.faults:
        found = _refused(job, fault)
        if found is not None:
            return found
    return None


def _refused(job: Job, fault: Fault) -> Timeline | None:
    ending = Ending.DONE if job.keep_alive else Ending.CLOSE
    match fault:
        case faults.Silence(when="before_headers"):
            return silent()
        case faults.Reset(when="before_headers", after_tokens=None):
            return reset()
        case faults.Status():
            body = error_body(fault.code, fault.message or f"Simulated status {fault.code}", code=fault.error_code)
            extra = {**job.script.headers, **retry_after(fault)}
            return at_once(json_answer(fault.code, body, job.keep_alive, extra), ending, fault.delay)
        case faults.JsonError200():
            body = error_body(503, fault.message)
            return at_once(json_answer(200, body, job.keep_alive, job.script.headers), ending, fault.delay)
        case faults.Html502():
            head = body_head(502, "text/html", len(_HTML), job.keep_alive, job.script.headers)
            return at_once(head + _HTML, ending, fault.delay)
    return None


def _changed(live: Callable[[], Script], chat: Chat) -> Callable[[], Script]:
    """The live script with the request's own changes on top, made anew only when the live one changed."""
    base = live()
    changed = replace(base, **chat.changes)

    def current() -> Script:
        nonlocal base, changed
        if live() is not base:
            base = live()
            changed = replace(base, **chat.changes)
        return changed

    return current


def _ending(request: Request) -> Ending:
    return Ending.DONE if request.keep_alive else Ending.CLOSE


def _allow(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise RequestError(405, f"{request.method} is not allowed here", code="method_not_allowed")


def _authorize(request: Request, script: Script) -> None:
    if script.api_key is None:
        return
    sent = next((value for name, value in request.headers if name.lower() == "authorization"), "")
    if sent != f"Bearer {script.api_key}":
        raise RequestError(401, "Incorrect API key provided", code="invalid_api_key")


def _unknown_model(model: str) -> RequestError:
    return RequestError(404, f"The model {model!r} does not exist", param="model", code="model_not_found")
