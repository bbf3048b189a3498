"""`gateway serve` as a process, stopped and killed: what the next one still knows."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.stores.records import eventually, latest, stored

CONFIG = """\
version: 1
server: {{port: 0}}
state_dir: {state}
providers:
  sim: {{base_url: "{url}"}}
models:
  m: {{deployments: [{{provider: sim, model: up}}]}}
auth: {{keys: [{{name: alice, key: "${{ALICE}}"}}, {{name: bob, key: "${{BOB}}"}}], admin_keys: ["${{ADMIN}}"]}}
telemetry: {{request_log: off}}
"""
KEYS = {name: f"a-key-of-{name.lower()}-0123456789" for name in ("ALICE", "BOB", "ADMIN")}
ASK = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "a prompt nobody keeps"}]}


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept.pop("GATEWAY_CONFIG", None)
    return {**kept, "PYTHONPATH": os.getcwd(), **KEYS, **more}


@contextmanager
def process(*words: str, cwd: Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "gateway", *words]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env or environment()
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "fleet.yaml").write_text("providers:\n  sim: {ttft: 5ms, tps: 400, output_tokens: 40}\n")
    with process("fleet", "fleet.yaml", "--json", cwd=tmp_path) as started:
        assert started.stdout is not None
        yield json.loads(started.stdout.readline())["providers"][0]["base_url"]


class Serving:
    """A running gateway. `told` is what it said before it was ready."""

    def __init__(self, started: subprocess.Popen[str]) -> None:
        self.process = started
        self.told = ""
        assert started.stderr is not None
        while (found := re.search(r"on (http://127\.0\.0\.1:\d+)/v1", self.told)) is None:
            line = started.stderr.readline()
            assert line, self.told
            self.told += line
        self.url = found[1]

    def get(self, path: str, key: str = "ALICE") -> httpx.Response:
        headers = {"authorization": f"Bearer {KEYS[key]}"}
        return httpx.get(f"{self.url}{path}", headers=headers, trust_env=False, timeout=20)

    def ask(self, key: str = "ALICE") -> str:
        """One request, read to its end; its id."""
        headers = {"authorization": f"Bearer {KEYS[key]}"}
        done = httpx.post(f"{self.url}/v1/chat/completions", json=ASK, headers=headers, trust_env=False, timeout=20)
        assert done.status_code == 200
        return done.headers["x-request-id"]

    def record(self, generation_id: str, key: str = "ALICE") -> Any:
        found: list[httpx.Response] = []

        def there() -> bool:
            found.append(self.get(f"/v1/generation?id={generation_id}", key))
            return found[-1].status_code == 200

        eventually(there)
        return found[-1].json()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)


@pytest.fixture
def serve(tmp_path: Path, fleet: str) -> Iterator[Callable[[], Serving]]:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url=fleet, state="state"))
    started: list[Any] = []

    def start() -> Serving:
        started.append(process("serve", cwd=tmp_path))
        return Serving(started[-1].__enter__())

    yield start
    for running in started:
        running.__exit__(None, None, None)


def test_after_a_stop_a_generation_is_still_found_by_the_key_that_made_it_and_by_no_other(
    serve: Callable[[], Serving],
) -> None:
    first = serve()
    generation_id = first.ask()
    record = first.record(generation_id)
    first.stop()
    second = serve()
    assert second.get(f"/v1/generation?id={generation_id}").json() == record
    assert second.get(f"/v1/generation?id={generation_id}", "ADMIN").json() == record
    hidden = second.get(f"/v1/generation?id={generation_id}", "BOB")
    unknown = second.get("/v1/generation?id=gen-0", "BOB")
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json() == unknown.json()


def test_what_was_asked_just_before_the_stop_is_not_lost(serve: Callable[[], Serving]) -> None:
    first = serve()
    asked = [first.ask() for _ in range(20)]
    first.stop()
    second = serve()
    assert [second.get(f"/v1/generation?id={one}").status_code for one in asked] == [200] * 20


def samples(serving: Serving) -> int:
    """Speed samples of the last 24 hours."""
    (entry,) = serving.get("/v1/speed?window=24h", "ADMIN").json()["deployments"]
    found: int = entry["windows"]["24h"]["samples"]
    return found


def test_after_a_stop_the_speed_of_the_last_day_is_still_known(serve: Callable[[], Serving]) -> None:
    first = serve()
    for _ in range(4):
        first.record(first.ask())
    eventually(lambda: samples(first) == 4)
    first.stop()
    second = serve()
    assert "statistics of 1 deployments found" in second.told
    assert samples(second) == 4
    second.record(second.ask())
    eventually(lambda: samples(second) == 5)
    second.stop()
    assert samples(serve()) == 5


KILLED = """
import asyncio, sys
from pathlib import Path
from gateway.core.clock import monotonic, wall_offset_s
from gateway.metering.book import SpeedBook
from gateway.stores.remembering import Remembering
from gateway.stores.sqlite import SqliteState
from tests.stores.records import SAMPLE

async def main():
    book = SpeedBook(monotonic, offset_s=wall_offset_s())
    remembering = Remembering(SqliteState(Path(sys.argv[1]), flush_s=0.01), book)
    remembering.restore()
    running = asyncio.create_task(remembering.run(every_s=0.01))
    for _ in range(5):
        book.record(SAMPLE)
    print(book.window("p/m", 86_400.0, monotonic()).samples, flush=True)
    await running

asyncio.run(main())
"""


def test_after_a_kill_the_statistics_that_were_noted_are_known(tmp_path: Path) -> None:
    def noted(runs: int) -> bool:
        with closing(sqlite3.connect(latest(tmp_path))) as connection:
            found: int = connection.execute("SELECT count(DISTINCT run) FROM hours").fetchone()[0]
        return found == runs

    counts = []
    for runs in (1, 2, 3):
        command = [sys.executable, "-c", KILLED, str(tmp_path)]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        assert started.stdout is not None
        counts.append(int(started.stdout.readline()))
        eventually(partial(noted, runs))
        started.kill()
        started.communicate()
    assert counts == [5, 10, 15]


def test_a_kill_loses_at_most_the_last_moment_and_breaks_nothing(serve: Callable[[], Serving], tmp_path: Path) -> None:
    asked: list[str] = []

    def all_stored() -> bool:
        return set(asked) <= stored(tmp_path / "state")

    for _ in range(3):
        running = serve()
        assert "damaged" not in running.told
        asked.extend(running.ask() for _ in range(5))
        eventually(all_stored)
        running.ask()
        running.kill()
    last = serve()
    assert [last.get(f"/v1/generation?id={one}").status_code for one in asked] == [200] * 15


def test_the_state_holds_no_prompt_and_no_key(serve: Callable[[], Serving], tmp_path: Path) -> None:
    running = serve()
    generation_id = running.ask()
    eventually(lambda: generation_id in stored(tmp_path / "state"))
    running.stop()
    content = b"".join(file.read_bytes() for file in (tmp_path / "state").iterdir())
    assert b"nobody keeps" not in content
    assert not any(key.encode() in content for key in KEYS.values())
    assert "nobody keeps" not in json.dumps(serve().record(generation_id))


def test_two_gateways_on_one_folder_serve_each_others_generations(serve: Callable[[], Serving]) -> None:
    first, second = serve(), serve()
    of_first, of_second = first.ask(), second.ask()
    assert second.record(of_first)["id"] == of_first
    assert first.record(of_second)["id"] == of_second
    first.stop()
    second.stop()
    third = serve()
    assert third.record(of_first)["id"] == of_first
    assert third.record(of_second)["id"] == of_second


def test_a_given_folder_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url="http://127.0.0.1:9/v1", state="gateway.yaml"))
    with process("serve", cwd=tmp_path) as started:
        _, told = started.communicate(timeout=30)
    assert started.returncode == 2
    assert f"state_dir: cannot keep state in {tmp_path}/gateway.yaml: it is no folder" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"XDG_STATE_HOME": "/proc/nowhere"}, "state_dir: cannot keep state in /proc/nowhere/speed-gateway: "),
        ({"XDG_STATE_HOME": "", "HOME": ""}, "HOME is not set"),
    ],
)
def test_without_a_usable_folder_of_its_own_it_warns_and_serves_from_memory(
    tmp_path: Path, fleet: str, environ: dict[str, str], says: str
) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url=fleet, state="null"))
    with process("serve", cwd=tmp_path, env=environment(**environ)) as started:
        running = Serving(started)
        assert says in running.told
        assert "in memory only" in running.told
        generation_id = running.ask()
        assert running.record(generation_id)["id"] == generation_id
        running.stop()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fleet.yaml", "gateway.yaml"]


def test_off_writes_nothing_and_warns_of_nothing(tmp_path: Path, fleet: str) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url=fleet, state="off"))
    with process("serve", cwd=tmp_path, env=environment(XDG_STATE_HOME=str(tmp_path / "xdg"))) as started:
        running = Serving(started)
        assert "memory" not in running.told
        running.record(running.ask())
        running.stop()
    assert not (tmp_path / "xdg").exists()


def test_the_demo_keeps_no_invented_figures(tmp_path: Path) -> None:
    home = environment(XDG_STATE_HOME=str(tmp_path / "xdg"))
    with process("demo", "--port", "0", "--seconds", "0.5", cwd=tmp_path, env=home) as started:
        said, _ = started.communicate(timeout=60)
    assert started.returncode == 0
    assert "base_url" in said
    assert list(tmp_path.iterdir()) == []


def test_what_was_dropped_and_where_state_is_are_told(serve: Callable[[], Serving], tmp_path: Path) -> None:
    running = serve()
    assert "gateway_state_dropped_total 0" in running.get("/metrics").text
    with process("check", "--json", cwd=tmp_path) as started:
        said, _ = started.communicate(timeout=30)
    assert json.loads(said)["state_dir"] == str(tmp_path / "state")
