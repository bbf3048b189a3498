"""A simulated provider over real sockets: answers, errors, limits, truth, and going away."""

import asyncio
from itertools import pairwise
from typing import Any

import httpx
import orjson
import pytest

from gateway.core.errors import ConfigError
from gateway.simulator import Reasoning, Script, SimulatedProvider, Window
from gateway.simulator.faults import Comments, Silence, Stall
from tests.simulator.seen import Seen, ask, chat, exchange, written

FAST = Script(name="hare", ttft=0.0, tps=1e6, output_tokens=12)
PATH = "/v1/chat/completions"


def answered(script: Script = FAST, **fields: Any) -> Seen:
    async def main() -> Seen:
        async with SimulatedProvider(script) as sim:
            return await ask(sim, **fields)

    return asyncio.run(main())


def replied(request: bytes, script: Script = FAST) -> Seen:
    async def main() -> Seen:
        async with SimulatedProvider(script) as sim:
            return await exchange(sim, request)

    return asyncio.run(main())


def test_a_stream_has_role_tokens_finish_usage_and_end_marker_in_this_order() -> None:
    seen = answered(max_tokens=3)
    deltas = [chunk["choices"][0]["delta"] for chunk in seen.chunks if chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert [len(delta["content"]) for delta in deltas[1:4]] == [5, 5, 5]
    assert deltas[4] == {}
    assert seen.chunks[-1]["choices"] == []
    assert seen.usage is not None
    assert seen.usage["completion_tokens"] == 3
    assert seen.done


def test_usage_comes_only_when_asked_and_is_null_on_other_chunks() -> None:
    asked, unasked = answered(), answered(stream_options=None)
    assert all(chunk["usage"] is None for chunk in asked.chunks[:-1])
    assert all("usage" not in chunk for chunk in unasked.chunks)


@pytest.mark.parametrize(("limit", "tokens", "finish"), [(3, 3, "length"), (12, 12, "stop"), (500, 12, "stop")])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_requests_limit_is_exact(name: str, limit: int, tokens: int, finish: str) -> None:
    seen = answered(**{name: limit})
    assert (seen.tokens, seen.finish) == (tokens, finish)


def test_prompt_tokens_are_a_quarter_of_the_characters() -> None:
    messages = [
        {"role": "system", "content": "x" * 10},
        {"role": "user", "content": [{"type": "text", "text": "y" * 7}]},
    ]
    seen = answered(Script(ttft=0, tps=1e6, cached_share=0.5), messages=messages)
    assert seen.usage is not None
    assert seen.usage["prompt_tokens"] == 5
    assert seen.usage["prompt_tokens_details"] == {"cached_tokens": 2}


def test_several_tokens_share_a_chunk() -> None:
    seen = answered(Script(ttft=0, tps=1e6, tokens_per_chunk=5, output_tokens=12))
    assert [len(chunk["choices"][0]["delta"].get("content", "")) for chunk in seen.chunks[1:4]] == [25, 25, 10]


def test_wide_text_has_five_code_points_a_token_too() -> None:
    seen = answered(Script(ttft=0, tps=1e6, text="wide", output_tokens=30))
    assert len(seen.text()) == 150
    assert not seen.text().isascii()


def test_reasoning_is_streamed_before_the_answer_and_billed() -> None:
    seen = answered(Script(ttft=0, tps=1e6, output_tokens=4, reasoning=Reasoning(tokens=3)))
    assert (len(seen.text("reasoning_content")), len(seen.text())) == (15, 20)
    assert seen.usage is not None
    assert seen.usage["completion_tokens"] == 7
    assert seen.usage["completion_tokens_details"] == {"reasoning_tokens": 3}


def test_hidden_reasoning_is_billed_but_not_shown() -> None:
    seen = answered(Script(ttft=0, tps=1e6, output_tokens=4, reasoning=Reasoning(tokens=3, streamed=False)))
    assert (seen.text("reasoning_content"), seen.tokens) == ("", 4)
    assert seen.usage is not None
    assert seen.usage["completion_tokens"] == 7


def test_a_limit_within_the_reasoning_leaves_no_answer() -> None:
    seen = answered(Script(ttft=0, tps=1e6, reasoning=Reasoning(tokens=9)), max_tokens=4)
    assert (len(seen.text("reasoning_content")), seen.text(), seen.finish) == (20, "", "length")


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_forced_tool_is_called_name_first_then_arguments_in_pieces(choice: object) -> None:
    seen = answered(tools=[WEATHER], tool_choice=choice)
    calls = [chunk["choices"][0]["delta"]["tool_calls"][0] for chunk in seen.chunks[1:-2]]
    assert calls[0]["function"] == {"name": "weather", "arguments": ""}
    arguments = orjson.loads("".join(call["function"]["arguments"] for call in calls))
    assert (set(arguments), arguments["days"]) == ({"city", "days"}, 1)
    assert len(calls) > 3
    assert seen.finish == "tool_calls"
    assert seen.usage is not None
    assert seen.usage["completion_tokens"] == len(calls)


def test_tools_are_not_called_unless_forced_but_the_script_may_want_it() -> None:
    assert answered(tools=[WEATHER]).finish == "stop"
    assert answered(sim={"tool": True}).finish == "tool_calls"


def test_an_answer_that_is_not_streamed_is_whole() -> None:
    body = answered(stream=False, stream_options=None).json
    assert body["object"] == "chat.completion"
    assert len(body["choices"][0]["message"]["content"]) == 60
    assert body["usage"]["completion_tokens"] == 12


REFUSED: dict[str, tuple[bytes, int, str | None]] = {
    "unknown path": (written("/v1/other", b""), 404, "unknown_url"),
    "get on chat": (written(PATH, b"", "GET"), 405, "method_not_allowed"),
    "post on models": (written("/v1/models", b""), 405, "method_not_allowed"),
    "bad json": (written(PATH, b"{"), 400, "invalid_json"),
    "a list": (written(PATH, b"[]"), 400, "invalid_json"),
    "no model": (written(PATH, chat(model=None)), 400, None),
    "no messages": (written(PATH, chat(messages=[])), 400, None),
    "bad limit": (written(PATH, chat(max_tokens=0)), 400, None),
    "unknown tool": (written(PATH, chat(tools=[WEATHER], tool_choice={"function": {"name": "x"}})), 400, None),
    "bad sim": (written(PATH, chat(sim={"tsp": 1})), 400, "invalid_sim"),
    "unknown model": (written(PATH, chat(model="gone")), 404, "model_not_found"),
    "no http": (b"hello\r\n\r\n", 400, None),
    "large head": (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431, None),
    "large body": (written(PATH, b"x" * 33_600_000), 413, None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_openais_shape(case: str) -> None:
    request, status, code = REFUSED[case]
    seen = replied(request, Script(ttft=0, models=("m",)))
    assert (seen.status, seen.json["error"]["code"]) == (status, code)
    assert set(seen.json["error"]) == {"message", "type", "param", "code"}


def test_a_wrong_sim_names_the_mistake() -> None:
    seen = replied(written(PATH, chat(sim={"tsp": 1, "fault": "cutt"})))
    assert "sim.tsp: is not known here; did you mean tps?" in seen.json["error"]["message"]
    assert "did you mean cut?" in seen.json["error"]["message"]


def test_a_key_is_demanded_where_the_script_has_one() -> None:
    script = Script(ttft=0, tps=1e6, api_key="sk-right")
    right = written(PATH, chat(), headers="Authorization: Bearer sk-right\r\n")
    assert replied(written(PATH, chat()), script).status == 401
    assert replied(right, script).status == 200


def test_models_and_health_are_answered() -> None:
    script = Script(models=("a", "b"))
    listed = replied(written("/v1/models", b"", "GET"), script).json["data"]
    assert [model["id"] for model in listed] == ["a", "b"]
    assert replied(written("/v1/models/b", b"", "GET"), script).json["id"] == "b"
    assert replied(written("/v1/models/c", b"", "GET"), script).status == 404
    assert replied(written("/healthz", b"", "GET"), script).json == {"status": "ok"}


def test_headers_of_the_script_are_sent() -> None:
    seen = answered(Script(ttft=0, tps=1e6, headers={"x-ratelimit-remaining-requests": "7"}))
    assert seen.headers["x-ratelimit-remaining-requests"] == "7"


def test_pipelined_requests_on_one_connection_are_answered_in_turn() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim:
            reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
            writer.write(
                written(PATH, chat(stream=True)) * 3 + written("/healthz", b"", "GET", headers="Connection: close\r\n")
            )
            raw = await reader.read(-1)
            writer.close()
            assert raw.count(b"data: [DONE]") == 3
            assert raw.endswith(b'{"status":"ok"}')
            assert sim.stats.connections_total == 1

    asyncio.run(main())


def test_http_1_0_gets_no_chunks_and_the_end_of_the_connection() -> None:
    seen = replied(written(PATH, chat(stream=True), version="1.0"))
    assert "transfer-encoding" not in seen.headers
    assert seen.body.endswith(b"data: [DONE]\n\n")
    assert seen.raw.endswith(b"data: [DONE]\n\n")


def test_a_client_that_expects_100_continue_gets_it() -> None:
    seen = replied(written(PATH, chat(stream=True), headers="Expect: 100-continue\r\n"))
    assert seen.raw.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "fault", [Silence(), Silence(when="after_headers"), Stall(), Comments(for_ever=True, every=0.001)]
)
def test_a_client_that_leaves_is_noticed_in_every_phase(fault: Any) -> None:
    async def main() -> None:
        async with SimulatedProvider(Script(ttft=0, tps=1e6, faults=(fault,))) as sim:
            _, writer = await asyncio.open_connection("127.0.0.1", sim.port)
            writer.write(written(PATH, chat(stream=True)))
            await sim.until(lambda stats: stats.streams_open == 1)
            writer.close()
            await sim.until(lambda stats: stats.aborted == 1 and stats.streams_open == 0)
            truth = sim.stats.streams[-1]
            assert (truth.ending, truth.ended is not None) == ("aborted", True)

    asyncio.run(main())


def test_a_client_that_reads_late_gets_everything() -> None:
    async def main() -> None:
        script = Script(ttft=0, tps=1e9, tokens_per_chunk=1000, output_tokens=2_000_000)
        async with SimulatedProvider(script) as sim:
            reader, writer = await asyncio.open_connection("127.0.0.1", sim.port, limit=1024)
            writer.write(written(PATH, chat(stream=True), headers="Connection: close\r\n"))
            await sim.until(lambda stats: stats.tokens_sent > 0)
            received = await reader.read(-1)
            writer.close()
            assert received.count(b'"content":"') == 1 + 2000
            assert sim.stats.streams[-1].tokens == 2_000_000

    asyncio.run(main())


def test_stopping_aborts_everything_at_once_and_the_port_comes_back() -> None:
    async def main() -> None:
        sim = SimulatedProvider(Script(ttft=3600))
        await sim.start()
        port = sim.port
        asking = asyncio.create_task(exchange(sim, written(PATH, chat(stream=True))))
        await sim.until(lambda stats: stats.streams_open == 1)
        await sim.stop()
        assert (await asking).ending == "reset"
        assert sim.stats.streams[-1].ending == "killed"
        with pytest.raises(ConnectionRefusedError):
            await ask(sim)
        sim.set(FAST)
        await sim.start()
        assert sim.port == port
        assert (await ask(sim)).done
        await sim.stop()

    asyncio.run(main())


def test_an_outage_refuses_or_resets_and_ends() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim:
            assert (await ask(sim)).done
            sim.change(outage="refuse")
            with pytest.raises(ConnectionRefusedError):
                await ask(sim)
            sim.change(outage="reset")
            assert (await ask_when_open(sim)).ending == "reset"
            sim.change(outage=None)
            assert (await ask(sim)).done

    asyncio.run(main())


async def ask_when_open(sim: SimulatedProvider) -> Seen:
    """The port opens again in the next turn of the event loop."""
    for _ in range(100):
        try:
            return await ask(sim)
        except ConnectionRefusedError:
            await asyncio.sleep(0)
    raise AssertionError("the port stays closed")


def test_an_outage_resets_streams_in_flight() -> None:
    async def main() -> None:
        async with SimulatedProvider(Script(ttft=3600, head_at=0.0)) as sim:
            asking = asyncio.create_task(ask(sim))
            await sim.until(lambda stats: stats.streams_open == 1)
            sim.change(outage="refuse")
            assert (await asking).ending == "reset"

    asyncio.run(main())


def test_a_schedule_runs_by_itself() -> None:
    async def main() -> None:
        outage = Window(at=0.0, for_=0.05, set_={"outage": "refuse"})
        async with SimulatedProvider(Script(ttft=0, tps=1e6, schedule=(outage,))) as sim:
            with pytest.raises(ConnectionRefusedError):
                await ask(sim)
            async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=4)) as client:
                assert (await client.get(f"{sim.root_url}/healthz")).status_code == 200

    asyncio.run(main())


def test_a_new_speed_reaches_running_streams() -> None:
    async def main() -> None:
        async with SimulatedProvider(Script(ttft=0, tps=200, output_tokens=1000)) as sim:
            asking = asyncio.create_task(ask(sim))
            await sim.until(lambda stats: stats.tokens_sent >= 3)
            sim.change(tps=1e6)
            assert (await asking).tokens == 1000
            due = sim.stats.streams[-1].due
            gaps = [round(after - before, 6) for before, after in pairwise(due)]
            assert gaps[0] == 0.005
            assert gaps[-1] == 0.000001

    asyncio.run(main())


def test_the_truth_is_the_schedule_kept_without_drift() -> None:
    async def main() -> None:
        script = Script(ttft=0.02, tps=1000, tokens_per_chunk=4, output_tokens=64)
        async with SimulatedProvider(script) as sim:
            await ask(sim)
            truth = sim.stats.streams[-1]
            planned = [truth.request_read + 0.02 + place * 0.004 for place in range(16)]
            assert list(truth.due) == pytest.approx(planned, abs=1e-9)
            assert all(sent >= due - 0.0006 for due, sent in zip(truth.due, truth.sent, strict=True))
            assert (truth.first_token, truth.last_token) == (truth.sent[0], truth.sent[-1])
            assert sum(truth.counts) == truth.tokens == truth.output_tokens == 64

    asyncio.run(main())


def test_requests_are_kept_as_they_came() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim:
            await exchange(sim, written(PATH, chat(extra={"a": 1}), headers="X-Mark: yes\r\n"))
            seen = sim.stats.seen[-1]
            assert (seen.header("x-mark"), seen.path, seen.method) == ("yes", PATH, "POST")
            assert seen.body is not None
            assert seen.body["extra"] == {"a": 1}

    asyncio.run(main())


def test_a_script_made_in_code_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="tps: 0 is not a number"):
        SimulatedProvider(Script(tps=0))
