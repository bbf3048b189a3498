"""A real model behind `gateway serve`: its streams pass, leaving stops it, and our figures are those it gives itself.

The server's clocks (`timings` of the last chunk), as its source defines them:

* `prompt_ms` runs from the moment a slot begins on the request until the first token is sampled. That token is drawn
  from the logits of the prompt's last piece, so it needs no decode step of its own: `prompt_ms` alone is the server's
  time to the first token. Waiting for a slot, reading the request and tokenizing lie before it, so our TTFT is never
  the shorter one.
* `predicted_ms` runs from the first sampled token to the last one, and `predicted_per_second` divides `predicted_n - 1`
  by it: the tokens after the first over the time after the first, which is what `output_tps` states.

Everything here shares the machine's cores with other work, so figures are judged by the median of several requests.
"""

import asyncio
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.live import run
from tests.llm.llama import SLOTS
from tests.llm.served import CHAT, Answer, Served, read, served

pytestmark = pytest.mark.llm

WITHIN = 0.05
TOKENS = 64
RUNS = 5
SENTENCE = "Tell me about the sea and its animals. "

Json = dict[str, Any]


def ask(sentences: int = 40, **fields: Any) -> Json:
    """A prompt that takes long enough to read, never from the cache; an answer that does not end by itself."""
    messages = [{"role": "user", "content": SENTENCE * sentences}]
    return {"messages": messages, "cache_prompt": False, "ignore_eos": True, "seed": 7, "max_tokens": TOKENS, **fields}


async def measured(gw: Served, **fields: Any) -> tuple[Answer, Json]:
    """One stream and its record, with all that holds for each of them."""
    answer = await gw.stream(**ask(stream_options={"include_usage": True}, **fields))
    record = await gw.record(answer.id)
    clock, usage = answer.server_clock, answer.usage
    assert answer.done
    assert usage is not None
    assert (record["outcome"], record["finish_reason"], record["speed"]["quality"]) == ("ok", "length", "ok")
    assert record["speed"]["source"] == "client"
    assert record["tokens"]["source"] == "usage"
    assert record["tokens"]["output"] == clock["predicted_n"] == usage["completion_tokens"] == TOKENS
    assert record["tokens"]["input"] == clock["prompt_n"] == usage["prompt_tokens"]
    assert record["chars"]["content"] == len(answer.text)
    own = {"prompt_ms": "prompt_ms", "completion_ms": "predicted_ms", "tokens_per_s": "predicted_per_second"}
    told = dict(record["server_clock"])
    # The gateway's own comparison stands beside what the server said.
    ratio, late_ms = told.pop("decode_ratio"), told.pop("ttft_difference_ms")
    assert told == pytest.approx({name: clock[theirs] for name, theirs in own.items()}, abs=0.06)
    assert ratio == pytest.approx(record["speed"]["output_tps"] / clock["predicted_per_second"], abs=0.01)
    assert late_ms == pytest.approx(record["timing"]["ttft_ms"] - clock["prompt_ms"], abs=0.2)
    assert record["timing"]["ttft_ms"] >= clock["prompt_ms"] - 0.1
    return answer, record


def ratios(records: list[Json]) -> tuple[float, float]:
    """Our figure by the server's, the median: TTFT and tokens a second."""
    first = median(r["timing"]["ttft_ms"] / r["server_clock"]["prompt_ms"] for r in records)
    speed = median(r["speed"]["output_tps"] / r["server_clock"]["tokens_per_s"] for r in records)
    return first, speed


def table(title: str, records: list[Json]) -> str:
    """Ours beside the server's, for the one who ran it."""
    lines = [title, "  TTFT ms: ours  server   ratio    tok/s: ours  server   ratio"]
    for r in records:
        first, own_first = r["timing"]["ttft_ms"], r["server_clock"]["prompt_ms"]
        speed, own = r["speed"]["output_tps"], r["server_clock"]["tokens_per_s"]
        lines.append(
            f"{first:15.1f} {own_first:7.1f} {first / own_first:7.3f} {speed:14.1f} {own:7.1f} {speed / own:7.3f}"
        )
    return "\n".join([*lines, "median ratios: {:.3f} {:.3f}".format(*ratios(records))])


def show(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Figures are this target's answer, so they are printed though the tests pass."""
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")


def test_ttft_and_speed_are_within_five_percent_of_the_servers_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with served(tmp_path) as gw:
            records = [(await measured(gw, seed=seed))[1] for seed in range(RUNS)]
            show(capsys, table("one stream at a time", records))
            first, speed = ratios(records)
            assert first == pytest.approx(1, rel=WITHIN)
            assert speed == pytest.approx(1, rel=WITHIN)
            # The same from the server's counters, which know nothing of single requests.
            assert await gw.llama.counter("prompt_tokens_total") == sum(r["tokens"]["input"] for r in records)
            assert await gw.llama.counter("tokens_predicted_total") == sum(r["tokens"]["output"] for r in records)
            waited_s = sum(r["timing"]["ttft_ms"] for r in records) / 1000
            assert waited_s == pytest.approx(await gw.llama.counter("prompt_seconds_total"), rel=WITHIN)
            # What the gateway itself exports of the difference says the same.
            compared = median(r["server_clock"]["decode_ratio"] for r in records)
            assert compared == pytest.approx(1, rel=WITHIN)
            decoded_s = sum((TOKENS - 1) / r["speed"]["output_tps"] for r in records)
            assert decoded_s == pytest.approx(await gw.llama.counter("tokens_predicted_seconds_total"), rel=WITHIN)

    run(main())


def test_speed_holds_for_streams_at_once_with_some_waiting_for_a_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with served(tmp_path) as gw:
            streams = [measured(gw, sentences=10, seed=seed) for seed in range(2 * SLOTS)]
            records = [record for _, record in await asyncio.gather(*streams)]
            show(capsys, table(f"{len(records)} streams on {SLOTS} slots (waiting is part of TTFT)", records))
            assert ratios(records)[1] == pytest.approx(1, rel=WITHIN)
            # Those who waited for a slot waited for the decoding of those before them.
            queued = sorted(records, key=lambda r: float(r["timing"]["ttft_ms"]))[SLOTS:]
            assert all(r["timing"]["ttft_ms"] > 1.5 * r["server_clock"]["prompt_ms"] for r in queued)

    run(main())


def test_the_text_is_the_servers_and_usage_is_shown_only_to_who_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as gw:
            body = ask(sentences=3, temperature=0)
            through = await gw.stream(**body)
            direct = await read(gw.llama.direct, body)
            assert through.done
            assert through.text == direct.text
            assert through.usage is None
            assert all(event["choices"] for event in through.events)
            assert len(through.events) == len(direct.events)
            record = await gw.record(through.id)
            assert record["tokens"]["source"] == "usage"
            assert record["tokens"]["output"] == TOKENS
            assert record["served_model"] == through.events[0]["model"]
            asked = await gw.stream(**body, stream_options={"include_usage": True})
            assert asked.usage is not None
            assert asked.usage["completion_tokens"] == TOKENS

    run(main())


def test_an_answer_in_one_piece_has_usage_and_no_first_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as gw:
            answer = await gw.client.post(CHAT, json={"model": "m", **ask(sentences=1, max_tokens=16)})
            assert answer.json()["usage"]["completion_tokens"] == 16
            record = await gw.record(answer.headers["x-request-id"])
            assert record["outcome"] == "ok"
            assert record["tokens"]["output"] == 16
            assert record["timing"]["ttft_ms"] is None

    run(main())


async def idle_after(gw: Served, within_s: float) -> float:
    """Seconds until neither `/slots` nor `/metrics` know of work; fails after `within_s`."""
    begun = time.monotonic()
    async with asyncio.timeout(within_s):
        while await gw.llama.busy() or await gw.llama.counter("requests_processing"):
            await asyncio.sleep(0.02)
    return time.monotonic() - begun


def test_a_client_that_leaves_in_mid_stream_stops_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with served(tmp_path) as gw:
            body = {"model": "m", "stream": True, **ask(sentences=2, max_tokens=1500)}
            async with gw.client.stream("POST", CHAT, json=body) as answer:
                lines = answer.aiter_lines()
                for _ in range(10):
                    await anext(lines)
                assert await gw.llama.busy() == 1
            took_s = await idle_after(gw, within_s=1.0)
            show(capsys, f"left in mid-stream: the server was idle after {took_s * 1000:.0f} ms")
            record = await gw.record(answer.headers["x-request-id"])
            assert record["outcome"] == "cancelled"
            assert record["speed"]["output_tps"] is None
            assert record["tokens"]["source"] == "estimate"
            assert await gw.llama.counter("tokens_predicted_total") < 1500 / 2

    run(main())


def test_a_client_that_leaves_before_the_first_token_is_noticed_by_the_model_at_its_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # This server reads a prompt to its end whoever waits, and sees at its first write that nobody does any more.
    async def main() -> None:
        async with served(tmp_path) as gw:
            asking = asyncio.create_task(gw.stream(**ask(max_tokens=1500)))
            while not await gw.llama.busy():
                await asyncio.sleep(0.02)
            asking.cancel()
            record = await gw.last_logged(within_s=1.0)
            assert record["outcome"] == "cancelled"
            assert record["timing"]["ttft_ms"] is None
            took_s = await idle_after(gw, within_s=60.0)
            made = await gw.llama.counter("tokens_predicted_total")
            show(capsys, f"left before the first token: idle after {took_s:.1f} s and {made:.0f} tokens")
            assert made < 20

    run(main())
