"""`gateway fleet` as a process of its own."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import httpx

SCRIPT = "providers:\n  quick: {ttft: 0, tps: 1000000}\n  dull: {}\n"
MAIN = "import sys; from gateway.cli import main; sys.exit(main())"


async def started(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, "fleet", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


def test_a_fleet_tells_its_addresses_answers_and_stops_on_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(SCRIPT)

    async def main() -> None:
        process = await started(str(file), "--only", "quick", "--json")
        try:
            assert process.stdout is not None
            told = json.loads(await process.stdout.readline())
            assert told["pid"] == process.pid
            assert [one["name"] for one in told["providers"]] == ["quick"]
            async with httpx.AsyncClient(base_url=told["providers"][0]["base_url"]) as client:
                body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
                answer = await client.post("/chat/completions", json=body)
                assert answer.text.endswith("data: [DONE]\n\n")
                await client.post("/chat/completions", json=body | {"sim": {"tps": 20}, "max_tokens": 1})
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    asyncio.run(main())


def test_mistakes_in_the_file_are_told_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("providers:\n  a: {tsp: 5}\n")

    async def main() -> None:
        process = await started(str(file))
        _, told = await process.communicate()
        assert process.returncode == 2
        assert told.decode() == f"{file}:2: providers.a.tsp: is not known here; did you mean tps?\n"

    asyncio.run(main())


def test_a_port_that_is_taken_is_told_with_exit_code_1(tmp_path: Path) -> None:
    async def main() -> None:
        taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        file = tmp_path / "fleet.yaml"
        file.write_text(f"providers:\n  a: {{port: {taken.sockets[0].getsockname()[1]}}}\n")
        process = await started(str(file))
        _, told = await process.communicate()
        taken.close()
        await taken.wait_closed()
        assert process.returncode == 1
        assert told.startswith(b"cannot listen: ")

    asyncio.run(main())
