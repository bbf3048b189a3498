"""`gateway bench` as a process of its own."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.simulator import SimulatedProvider
from gateway.simulator.faults import Buffered, Cut, Stall
from tests.live import fast, run

# Long enough that a late wake-up of a busy machine does not take the rate away.
STEADY = fast(tps=200, output_tokens=40)
MAIN = "import sys; from gateway.cli import main; sys.exit(main())"


async def started(*words: str, env: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    around = {**os.environ, "COLUMNS": "120", **(env or {})}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, "bench", *words, stdout=pipe, stderr=pipe, env=around
    )


async def told(*words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    process = await started(*words, env=env)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def test_a_table_of_two_models_with_other_tools_formulas() -> None:
    async def main() -> None:
        async with SimulatedProvider(STEADY) as sim:
            code, out, err = await told("one", "two", "--url", sim.base_url, "--runs", "2")
            assert (code, err) == (0, "")
            for text in ("TTFT ms", "output tok/s", "500 answer tokens", "vLLM's and aiperf's", "LLMPerf's"):
                assert text in out
            assert "one: 2 of 2 runs have a rate (2 ok); cold TTFT" in out
            assert "two: 2 of 2 runs" in out

    run(main())


def test_json_has_every_single_run() -> None:
    async def main() -> None:
        async with SimulatedProvider(STEADY) as sim:
            code, out, err = await told("m", "--url", sim.base_url, "--runs", "3", "--concurrency", "2", "--json")
            assert (code, err) == (0, "")
            found = json.loads(out)
            (model,) = found["models"]
            assert (found["runs"], found["concurrency"], model["sound"], len(model["each"])) == (3, 2, 6, 6)
            assert model["cold"]["ttft_ms"] > 0
            speed = model["figures"]["output_tps"]
            assert speed["least"] <= speed["median"] <= speed["largest"]
            assert set(model["formulas"]) == {"inter_token", "per_token_to_end", "end_to_end", "chunks"}
            assert model["qualities"] == {"ok": 6}

    run(main())


def test_no_sound_run_is_exit_code_1_and_says_why() -> None:
    async def main() -> None:
        async with SimulatedProvider(fast(faults=(Cut(after_tokens=8),))) as sim:
            code, out, _ = await told("m", "--url", sim.base_url, "--runs", "2")
            assert code == 1
            assert "m: 0 of 2 runs have a rate (2 truncated)" in out
            assert "m: 3 x cut: closed the connection before the answer was complete" in out

    run(main())


def test_a_burst_has_no_rate_in_the_table() -> None:
    async def main() -> None:
        async with SimulatedProvider(replace(STEADY, faults=(Buffered(),))) as sim:
            code, out, _ = await told("m", "--url", sim.base_url, "--runs", "2")
            assert code == 1
            assert "m: 0 of 2 runs have a rate (2 burst)" in out
            (row,) = (line for line in out.splitlines() if "output tok/s" in line)
            assert row.replace("│", " ").split() == ["output", "tok/s", "-"]

    run(main())


def test_where_some_runs_fail_the_others_are_the_figures() -> None:
    async def main() -> None:
        cut = replace(STEADY, faults=(Cut(after_tokens=12, share=0.5),), seed=5)
        async with SimulatedProvider(cut) as sim:
            code, out, _ = await told("m", "--url", sim.base_url, "--runs", "8", "--json")
            (model,) = json.loads(out)["models"]
            bad = [one for one in model["each"] if one["outcome"] != "ok"]
            assert code == 0
            assert 0 < len(bad) < 8
            assert all(one["output_tps"] is None and "cut" in one["error"] for one in bad)
            assert model["figures"]["output_tps"]["count"] == model["sound"]

    run(main())


def test_a_key_comes_from_the_environment_and_a_wrong_one_is_told() -> None:
    async def main() -> None:
        async with SimulatedProvider(replace(STEADY, api_key="sk-right-0123456789")) as sim:
            words = ("m", "--url", sim.base_url, "--runs", "1")
            code, out, err = await told(*words, env={"GATEWAY_BENCH_KEY": "sk-right-0123456789"})
            assert code == 0
            code, out, err = await told(*words, "--key", "sk-wrong-0123456789")
            assert code == 1
            assert "HTTP 401, auth" in out
            assert "0123456789" not in out + err

    run(main())


def test_a_target_that_is_not_there_is_told() -> None:
    async def main() -> None:
        code, out, _ = await told("m", "--url", "http://127.0.0.1:9/v1", "--runs", "1")
        assert code == 1
        assert "m: 2 x connect: could not be reached" in out

    run(main())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("m", "--url", "ftp://x"), "--url: must begin with http:// or https://"),
        (("m", "--runs", "0"), "--runs: must be a whole number from 1 to 1000"),
        (("m", "--concurrency", "many"), "--concurrency: must be a whole number from 1 to 512"),
        (("m", "--prompt", "/nowhere"), "--prompt /nowhere: cannot be read as UTF-8 text (FileNotFoundError)"),
        (("m", "--key", "sk-\u00e9"), "--key: must be printable ASCII"),
        ((), "the following arguments are required: MODEL"),
    ],
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...], says: str) -> None:
    async def main() -> None:
        code, out, err = await told(*words)
        assert (code, out) == (2, "")
        assert says in err

    run(main())


def test_a_prompt_of_ones_own_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        prompt = tmp_path / "prompt.txt"
        prompt.write_text("Sort a list, please.", "utf-8")
        async with SimulatedProvider(STEADY) as sim:
            words = ("--prompt", str(prompt), "--max-tokens", "12", "--runs", "1")
            code, _, _ = await told("m", "--url", sim.base_url, *words)
            assert code == 0
            body = sim.stats.seen[-1].body
            assert body is not None
            assert body["messages"] == [{"role": "user", "content": "Sort a list, please."}]
            assert body["max_tokens"] == 12

    run(main())


def test_an_interruption_shows_what_was_measured() -> None:
    async def main() -> None:
        # The third answer never ends: the interruption comes while it is awaited.
        async with SimulatedProvider(STEADY) as sim:
            process = await started("m", "--url", sim.base_url, "--runs", "500")
            while sim.stats.requests < 4:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
            assert process.returncode == 1
            assert "interrupted; this is what was measured" in err.decode()
            assert "runs have a rate" in out.decode()

    run(main())


def test_a_silent_provider_can_be_interrupted_too() -> None:
    async def main() -> None:
        async with SimulatedProvider(fast(faults=(Stall(after_tokens=2, seconds=None),))) as sim:
            process = await started("m", "--url", sim.base_url)
            while sim.stats.requests < 1:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, _ = await process.communicate()
            assert process.returncode == 1
            assert "m: 0 of 0 runs have a rate (no run)" in out.decode()

    run(main())
