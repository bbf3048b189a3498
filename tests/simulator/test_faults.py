"""Each fault, seen from outside: told apart by status, tokens, finish, usage, end marker and ending."""

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any

import orjson
import pytest

from gateway.simulator import Script, SimulatedProvider
from gateway.simulator.faults import FAULTS
from tests.simulator.seen import Seen, ask

FAST = Script(ttft=0.0, tps=1e6, output_tokens=12)
AFTER = {"after_tokens": 5}


def seen_with(fault: object, script: Script = FAST, *, silent: bool = False, **fields: Any) -> Seen:
    async def main() -> Seen:
        async with SimulatedProvider(script) as sim:
            return await ask(sim, silent, sim={"fault": fault}, **fields)

    return asyncio.run(main())


# fault -> status, tokens, finish reason, usage seen, [DONE] seen, ending
STREAMED: dict[str, tuple[dict[str, Any], tuple[int | None, int, str | None, bool, bool, str]]] = {
    "status": ({"kind": "status", "code": 429}, (429, 0, None, False, False, "complete")),
    "html_502": ({"kind": "html_502"}, (502, 0, None, False, False, "complete")),
    "json_error_200": ({"kind": "json_error_200"}, (200, 0, None, False, False, "complete")),
    "reset before headers": ({"kind": "reset"}, (None, 0, None, False, False, "reset")),
    "reset after headers": ({"kind": "reset", "when": "after_headers"}, (200, 0, None, False, False, "reset")),
    "reset in the stream": ({"kind": "reset", **AFTER}, (200, 5, None, False, False, "reset")),
    "silence before headers": ({"kind": "silence"}, (None, 0, None, False, False, "silent")),
    "silence after headers": ({"kind": "silence", "when": "after_headers"}, (200, 0, None, False, False, "silent")),
    "cut": ({"kind": "cut", **AFTER}, (200, 5, None, False, False, "fin")),
    "cut with the body ended": ({"kind": "cut", "terminated": True, **AFTER}, (200, 5, None, False, False, "complete")),
    "stall for ever": ({"kind": "stall", **AFTER}, (200, 5, None, False, False, "silent")),
    "stall for a while": ({"kind": "stall", "seconds": "20ms", **AFTER}, (200, 12, "stop", True, True, "complete")),
    "slow_after": ({"kind": "slow_after", "tps": 0.01, **AFTER}, (200, 5, None, False, False, "silent")),
    "malformed": ({"kind": "malformed", **AFTER}, (200, 12, "stop", True, True, "complete")),
    "invalid_utf8": ({"kind": "invalid_utf8", **AFTER}, (200, 12, "stop", True, True, "complete")),
    "huge_event": ({"kind": "huge_event", "size": "300KB", **AFTER}, (200, 12, "stop", True, True, "complete")),
    "error_event": ({"kind": "error_event", **AFTER}, (200, 5, None, False, False, "complete")),
    "error_then_done": ({"kind": "error_then_done", **AFTER}, (200, 5, None, False, True, "complete")),
    "empty": ({"kind": "empty"}, (200, 0, "stop", True, True, "complete")),
    "empty without finish": ({"kind": "empty", "finish": False}, (200, 0, None, True, True, "complete")),
    "no_done": ({"kind": "no_done"}, (200, 12, "stop", True, False, "complete")),
    "comments": ({"kind": "comments"}, (200, 12, "stop", True, True, "complete")),
    "comments for ever": ({"kind": "comments", "for_ever": True}, (200, 0, None, False, False, "silent")),
    "buffered": ({"kind": "buffered"}, (200, 12, "stop", True, True, "complete")),
    "split": ({"kind": "split"}, (200, 12, "stop", True, True, "complete")),
    "no_usage": ({"kind": "no_usage"}, (200, 12, "stop", False, True, "complete")),
    "usage_always": ({"kind": "usage_always"}, (200, 12, "stop", True, True, "complete")),
}


@pytest.mark.parametrize("case", STREAMED)
def test_a_fault_of_a_stream_is_seen_as_it_is_described(case: str) -> None:
    fault, expected = STREAMED[case]
    seen = seen_with(fault, silent=expected[-1] == "silent")
    assert (seen.status, seen.tokens, seen.finish, seen.usage is not None, seen.done, seen.ending) == expected


def test_every_kind_of_fault_is_in_the_table() -> None:
    assert {fault["kind"] for fault, _ in STREAMED.values()} == set(FAULTS)


@pytest.mark.parametrize(
    ("form", "name"), [("seconds", "retry-after"), ("ms", "retry-after-ms"), ("http_date", "retry-after")]
)
def test_retry_after_is_told_in_three_forms(form: str, name: str) -> None:
    seen = seen_with({"kind": "status", "code": 429, "retry_after": 90, "retry_after_form": form})
    value = seen.headers[name]
    if form == "http_date":
        assert parsedate_to_datetime(value).tzinfo is not None
    else:
        assert value == {"seconds": "90", "ms": "90000"}[form]


def test_an_error_answer_has_openais_shape() -> None:
    seen = seen_with({"kind": "status", "code": 401, "error_code": "invalid_api_key", "message": "no"})
    assert seen.json["error"] == {
        "message": "no",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }


def test_json_error_200_is_json_and_html_502_is_html() -> None:
    assert seen_with("json_error_200").json["error"]["type"] == "server_error"
    page = seen_with("html_502")
    assert page.headers["content-type"] == "text/html"
    assert page.body.startswith(b"<html>")


def test_a_malformed_frame_is_the_only_one_that_does_not_parse() -> None:
    seen = seen_with({"kind": "malformed", **AFTER})
    broken = [frame for frame in seen.frames if frame != b"data: [DONE]" and not parses(frame)]
    assert len(broken) == 1
    assert seen.frames.index(broken[0]) == 6  # the role chunk and five tokens stand before it


def parses(frame: bytes) -> bool:
    try:
        orjson.loads(frame.removeprefix(b"data: "))
    except orjson.JSONDecodeError:
        return False
    return True


def test_invalid_utf8_is_on_the_wire() -> None:
    seen = seen_with({"kind": "invalid_utf8", **AFTER})
    with pytest.raises(UnicodeDecodeError):
        seen.body.decode()


def test_a_huge_event_is_at_least_as_large_as_asked() -> None:
    assert max(map(len, seen_with({"kind": "huge_event", "size": "300KB", **AFTER}).frames)) >= 300_000


def test_an_error_event_is_openais_and_ends_the_connection() -> None:
    seen = seen_with({"kind": "error_event", "message": "boom", "type": "overloaded", "code": "x", **AFTER})
    assert seen.chunks[-1] == {"error": {"message": "boom", "type": "overloaded", "param": None, "code": "x"}}


def test_comments_come_before_the_first_token_only() -> None:
    script = Script(ttft=0.05, head_at=0.0, tps=1e6, output_tokens=3)
    seen = seen_with({"kind": "comments", "every": 0.01, "text": "queued"}, script)
    kinds = [frame == b": queued" for frame in seen.frames]
    assert kinds == [False, *[True] * 5, *[False] * (len(kinds) - 6)]


def test_a_buffered_stream_has_one_truth_write_with_all_tokens() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim:
            await ask(sim, sim={"fault": "buffered"})
            assert list(sim.stats.streams[-1].counts) == [12]

    asyncio.run(main())


def test_usage_always_and_no_usage_overrule_the_request() -> None:
    assert seen_with("usage_always", stream_options={"include_usage": False}).usage is not None
    assert seen_with({"kind": "no_done"}, stream_options={"include_usage": False}).usage is None
    assert seen_with("no_usage").usage is None


def test_an_empty_answer_bills_nothing() -> None:
    assert seen_with("empty").usage == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_several_faults_strike_one_stream() -> None:
    seen = seen_with([{"kind": "malformed", "after_tokens": 2}, {"kind": "cut", "after_tokens": 4}])
    assert (seen.tokens, seen.ending) == (4, "fin")
    assert b'"bro' in seen.body


def test_a_place_beyond_the_end_strikes_before_the_finish() -> None:
    seen = seen_with({"kind": "cut", "after_tokens": 500})
    assert (seen.tokens, seen.finish, seen.ending) == (12, None, "fin")


def test_shares_strike_about_that_share_and_the_same_requests_each_time() -> None:
    async def struck() -> list[bool]:
        script = Script(ttft=0, tps=1e6, output_tokens=1, seed=7, faults=(FAULTS["no_done"](share=0.3),))
        async with SimulatedProvider(script) as sim:
            for _ in range(100):
                await ask(sim)
            return [bool(stream.faults) for stream in sim.stats.streams]

    first = asyncio.run(struck())
    assert first == asyncio.run(struck())
    assert 15 <= sum(first) <= 45


# fault -> status, ending, body is whole JSON
WHOLE: dict[str, tuple[object, tuple[int | None, str, bool]]] = {
    "none": ([], (200, "complete", True)),
    "status": ({"kind": "status", "code": 500}, (500, "complete", True)),
    "reset before headers": ("reset", (None, "reset", False)),
    "reset after headers": ({"kind": "reset", "when": "after_headers"}, (200, "reset", False)),
    "reset in the body": ({"kind": "reset", "after_tokens": 1}, (200, "reset", False)),
    "silence before headers": ("silence", (None, "silent", False)),
    "silence after headers": ({"kind": "silence", "when": "after_headers"}, (200, "silent", False)),
    "cut": ("cut", (200, "fin", False)),
    "stall for ever": ("stall", (200, "silent", False)),
    "stall for a while": ({"kind": "stall", "seconds": 0.01}, (200, "complete", True)),
    "slow_after": ({"kind": "slow_after", "tps": 0.01}, (None, "silent", False)),
    "malformed": ("malformed", (200, "complete", False)),
    "invalid_utf8": ("invalid_utf8", (200, "complete", False)),
    "huge_event": ({"kind": "huge_event", "size": "200KB"}, (200, "complete", True)),
    "error_event": ("error_event", (500, "complete", True)),
    "split": ("split", (200, "complete", True)),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_fault_of_an_answer_that_is_not_streamed(case: str) -> None:
    fault, expected = WHOLE[case]
    seen = seen_with(fault, silent=expected[1] == "silent", stream=False)
    assert (seen.status, seen.ending, parses(seen.body)) == expected


def test_whole_answers_can_be_empty_or_without_usage() -> None:
    empty = seen_with("empty", stream=False).json
    assert (empty["choices"][0]["message"]["content"], empty["usage"]["completion_tokens"]) == ("", 0)
    assert "usage" not in seen_with("no_usage", stream=False).json
