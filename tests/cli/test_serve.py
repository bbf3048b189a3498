"""`gateway serve` as a process: wrong words, what it says, and a SIGTERM that lets streams finish."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

CONFIG = """\
version: 1
server: {{port: 0}}
providers:
  sim: {{base_url: "{url}"}}
models:
  m: {{deployments: [{{provider: sim, model: up}}]}}
telemetry: {{request_log: records.jsonl}}
"""


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept.pop("GATEWAY_CONFIG", None)
    return {**kept, "PYTHONPATH": os.getcwd()}


def serve(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateway", "serve", *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env=clean_environment(), timeout=30
    )


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "fleet.yaml"
    file.write_text("providers:\n  sim: {ttft: 20ms, tps: 40, output_tokens: 40}\n")
    command = [sys.executable, "-m", "gateway", "fleet", str(file), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment())
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["providers"][0]["base_url"]
    process.terminate()
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def serving(tmp_path: Path, fleet: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url=fleet))
    command = [sys.executable, "-m", "gateway", "serve"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=clean_environment())
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"serving gateway\.yaml on (http://127\.0\.0\.1:\d+)/v1 \(m\)", line)
    assert found, line
    yield process, found[1]
    process.kill()
    process.wait()
    process.stderr.close()


def test_without_configuration_and_key_it_names_the_demo(tmp_path: Path) -> None:
    done = serve(cwd=tmp_path)
    assert done.returncode == 2
    assert "gateway demo" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-c", "nowhere.yaml"), "nowhere.yaml"),
        (("-c", "ok.yaml", "--host", "0.0.0.0"), "auth.keys"),
        (("-c", "ok.yaml", "--host", "no.such.host.invalid"), "auth.keys"),
        (("-c", "ok.yaml", "--port", "99999"), "--port"),
        (("-c", "ok.yaml", "--workers", "2"), "--workers"),
        (("-c", "ok.yaml", "--host", "127.0.0.1", "--port", "x"), "--port"),
        (("-c", "ok.yaml", "--host", "203.0.113.1"), "auth.keys"),
    ],
)
def test_what_cannot_be_served_exits_with_2_and_a_reason(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    (tmp_path / "ok.yaml").write_text(CONFIG.format(url="http://127.0.0.1:9/v1"))
    done = serve(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_said_plainly(tmp_path: Path, serving: tuple[subprocess.Popen[str], str]) -> None:
    port = serving[1].rpartition(":")[2]
    done = serve("--port", port, cwd=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_sigterm_lets_a_stream_finish_and_exits_with_0(
    tmp_path: Path, serving: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = serving
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with (
        httpx.Client(base_url=url, trust_env=False, timeout=20) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as response,
    ):
        pieces = response.iter_text()
        text = next(pieces)
        process.send_signal(signal.SIGTERM)
        text += "".join(pieces)
        request_id = response.headers["x-request-id"]
    assert text.endswith("data: [DONE]\n\n")
    assert process.wait(10) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/readyz", trust_env=False)
    record = json.loads((tmp_path / "records.jsonl").read_text())
    assert (record["id"], record["outcome"], record["tokens"]["output"]) == (request_id, "ok", 40)
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
