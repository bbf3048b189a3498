"""What an error of an OpenAI-style vendor means: its many shapes, mapped to the failure codes of core.errors."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from gateway.core.reading import WireError
from gateway.core.types import Json
from gateway.providers.values import encodable

LONGEST_MESSAGE = 2000
# Searching a huge text for patterns costs time and finds nothing that its head does not say.
_SEARCHED = 4000
_LARGEST_BODY = 1 << 20


def _table(**words: str) -> Mapping[str, str]:
    return MappingProxyType({word: code for code, line in words.items() for word in line.split()})


# Exact `code` or `type` words of vendors, lower case. Strings of four digits are Z.ai's business codes.
_WORDS = _table(
    context_length="context_length_exceeded exceed_context_size_error model_context_window_exceeded "
    "context_window_exceeded string_too_long_for_context 1261",
    content_filter="content_filter content_policy_violation responsibleaipolicyviolation data_inspection_failed "
    "datainspectionfailed sensitive moderation guardrail_intervened 1301",
    quota="insufficient_quota insufficient_balance exceeded_current_quota_error billing_hard_limit_reached "
    "billing_not_active billing_error insufficient_credits payment_required arrearage 1113",
    auth="invalid_api_key authentication_error invalid_authentication_error incorrect_api_key_error "
    "permission_denied permission_error unauthorized unauthenticated accessdenied invalidapikey",
    rate_limited="rate_limit_exceeded rate_limit_error rate_limit_reached_error too_many_requests throttling "
    "throttling.ratequota throttlingexception limitrequests resource_exhausted 1302 1303 1304",
    overloaded="overloaded overloaded_error engine_overloaded_error server_overloaded capacity_exceeded "
    "service_unavailable unavailable over_capacity insufficient_system_resource modelnotreadyexception 1305",
    not_found="model_not_found not_found_error notfounderror modelnotfound 1211",
    server_error="server_error internal_error internal_server_error internalservererror api_error timeout "
    "network_error provider_error internalerror timeout_error gateway_timeout_error deadline_exceeded",
)
# Words that only say "your request": looked at after the message, since many vendors send them for everything.
_VAGUE_WORDS = _table(
    bad_request="invalid_request_error badrequesterror bad_request invalid_argument invalidparameter request_too_large"
)
# MiniMax's `base_resp.status_code`.
_MINIMAX = MappingProxyType(
    {
        1002: "rate_limited", 1039: "rate_limited", 2056: "quota", 1004: "auth", 2049: "auth", 1008: "quota",
        1026: "content_filter", 1027: "content_filter", 2013: "bad_request", 1041: "rate_limited",
    }
)  # fmt: skip
_STATUSES = MappingProxyType(
    {401: "auth", 403: "auth", 402: "quota", 404: "not_found", 408: "server_error", 424: "server_error",
     425: "server_error", 429: "rate_limited", 498: "overloaded", 503: "overloaded", 529: "overloaded"}
)  # fmt: skip
_PATTERNS = tuple(
    (code, re.compile("|".join(patterns), re.IGNORECASE))
    for code, patterns in (
        (
            "context_length",
            (
                r"context[ _](length|window|size|overflow|limit)",
                r"maximum (context|prompt|input) length",
                r"reduce the length",
                r"(prompt|input|request|conversation) (is |are )?too (long|large)",
                r"too many (input |prompt )?tokens",
                r"range of input length",
                r"exceeds? (the )?(max(imum)? )?(input |prompt )?(length|tokens?)( limit)? of",
                r"tokens when context",
            ),
        ),
        (
            "content_filter",
            (
                r"content (management )?policy",
                r"content[ _]filter",
                r"safety system",
                r"moderation",
                r"inappropriate content",
                r"flagged (by|as|for)",
                r"input was flagged",
            ),
        ),
        (
            "auth",
            (r"(invalid|incorrect|missing)[^.]{0,20}api[ _-]?key", r"api[ _-]?key[^.]{0,20}(invalid|not valid)"),
        ),
        (
            "quota",
            (r"insufficient (balance|credits?|funds|quota)", r"(used|out of|exhausted)[^.]{0,30} credits", r"overdue"),
        ),
    )
)


def error_of_status(status: int, payload: bytes, failover_on: frozenset[int]) -> WireError:
    """Of an answer with status >= 400, whatever its body is: JSON of any shape, HTML, text, nothing."""
    body = _load(payload)
    found = _describe(body) if body is not None else WireError("server_error", _plain_text(payload))
    if status in failover_on:
        found.code = "server_error"
    else:
        found.code = _code_of_status(status, _by_word(body, _WORDS), _searched(body, found.message))
    return found


def error_in_stream(body: Any) -> WireError:
    """Of an error object inside a 200 answer."""
    found = _describe(body)
    code = _status_of(found.wire_code) or _status_of(_field(body, "status_code", "http_status_code", "status"))
    text = _searched(body, found.message)
    found.code = _by_word(body, _WORDS) or (
        _code_of_status(code, None, text) if code else _by_text(text) or _by_word(body, _VAGUE_WORDS) or "server_error"
    )
    return found


def base_resp_error(body: Json) -> WireError:
    """MiniMax: `{"status_code": 1002, "status_msg": "…"}`."""
    number = body.get("status_code")
    code = _MINIMAX.get(number, "server_error") if isinstance(number, int) else "server_error"
    wire_code = number if isinstance(number, int | str) else None
    return WireError(code, _message(body.get("status_msg")), wire_code=wire_code)


def finish_error(finish: str) -> WireError | None:
    """Finish reasons that are an upstream failure dressed as an end."""
    if finish == "insufficient_system_resource":
        return WireError("overloaded", wire_code=finish)
    if finish in {"error", "network_error"}:
        return WireError("server_error", wire_code=finish)
    return None


def _code_of_status(status: int, word: str | None, text: str) -> str:
    if status == 429:
        return word if word in {"quota", "overloaded"} else "rate_limited"
    if status == 403:
        return word if word in {"quota", "content_filter"} else _by_text(text, "content_filter", "quota") or "auth"
    known = _STATUSES.get(status)
    if known is not None:
        return known
    if status >= 500:
        return "server_error"
    if word is not None and word != "server_error" and not (status == 413 and word == "rate_limited"):
        return word
    return _by_text(text) or "bad_request"


def _by_text(text: str, *only: str) -> str | None:
    for code, pattern in _PATTERNS:
        if (not only or code in only) and pattern.search(text):
            return code
    return None


def _by_word(body: Any, table: Mapping[str, str]) -> str | None:
    """The code word speaks before the type word."""
    for name in ("code", "type", "status"):
        found = _word(_field(body, name), table)
        if found is not None:
            return found
    return _word(_inner(body), table)


def _word(value: Any, table: Mapping[str, str]) -> str | None:
    return table.get(value.lower()) if isinstance(value, str) and len(value) < 64 else None


def _status_of(value: Any) -> int | None:
    """An HTTP status written as a number or a string of digits."""
    if isinstance(value, str) and len(value) == 3 and value.isdecimal():
        value = int(value)
    return value if type(value) is int and 400 <= value < 600 else None


def _describe(body: Any) -> WireError:
    """Message, parameter and code from wherever this vendor puts them; the failure code is decided by the caller."""
    inner = _inner(body)
    if isinstance(inner, str):
        return WireError("server_error", _message(inner))
    if not isinstance(inner, dict):
        return WireError("server_error")
    wire_code = next(
        (inner[name] for name in ("code", "type", "status_code", "status") if _is_code(inner.get(name))),
        None,
    )
    if isinstance(wire_code, str):
        wire_code = encodable(wire_code)
    message, where = _message_and_place(inner)
    param = inner["param"] if isinstance(inner.get("param"), str) else where
    return WireError("server_error", message, None if param is None else encodable(param), wire_code)


def _is_code(value: Any) -> bool:
    return (isinstance(value, str) and 0 < len(value) < 200) or type(value) is int


def _inner(body: Any) -> Any:
    """The object that describes the error: below `error`, the first of a list, or the body itself."""
    for _ in range(4):
        if isinstance(body, list) and body:
            body = body[0]
        elif isinstance(body, dict) and isinstance(body.get("error"), dict | list | str) and body["error"]:
            body = body["error"]
        elif isinstance(body, dict) and isinstance(body.get("errors"), list) and body["errors"]:
            body = body["errors"]
        else:
            break
    return body


def _message_and_place(inner: Json) -> tuple[str | None, str | None]:
    for name in ("message", "detail", "msg", "error_description"):
        value = inner.get(name)
        if isinstance(value, dict):
            value = value.get("detail") or value.get("message")
        if isinstance(value, list):
            value, place = _validation(value)
            if value:
                return _message(value), place
        if isinstance(value, str) and value:
            return _message(value), None
    return None, None


def _validation(problems: list[Any]) -> tuple[str | None, str | None]:
    """pydantic's list of problems: `[{"loc": ["body", "seed"], "msg": "…"}]` as `body.seed: …`."""
    lines = []
    place = None
    for problem in problems[:10]:
        if not isinstance(problem, dict) or not isinstance(problem.get("msg"), str):
            continue
        loc = problem.get("loc")
        path = [str(part) for part in loc if isinstance(part, str | int)] if isinstance(loc, list) else []
        if path and place is None:
            place = path[-1][:200]
        lines.append(f"{'.'.join(path)}: {problem['msg']}" if path else problem["msg"])
    return ("; ".join(lines) or None), place


def _searched(body: Any, message: str | None) -> str:
    """The text patterns are searched in: the message, and the raw words of a vendor behind a relay."""
    inner = _inner(body)
    metadata = inner.get("metadata") if isinstance(inner, dict) else None
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    beside = body.get("message") if isinstance(body, dict) else None
    parts = [part[:_SEARCHED] for part in (message, raw, beside) if isinstance(part, str)]
    return " ".join(parts)


def _field(body: Any, *names: str) -> Any:
    """A field of the error object, else of the body around it."""
    for holder in (_inner(body), body):
        if isinstance(holder, dict):
            for name in names:
                if _is_code(holder.get(name)):
                    return holder[name]
    return None


def _message(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return encodable(value.strip()[:LONGEST_MESSAGE]) or None


def _load(payload: bytes) -> Any:
    if len(payload) > _LARGEST_BODY:
        return None
    try:
        return orjson.loads(payload)
    except ValueError:
        return None


def _plain_text(payload: bytes) -> str | None:
    """A body that is no JSON: its text, unless it is a web page, which says nothing to a caller."""
    text = payload[: LONGEST_MESSAGE * 4].decode("utf-8", "replace").strip()
    return None if text.startswith("<") else _message(text)
