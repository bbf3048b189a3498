"""What the truth test runs: shapes of streams, simulated providers that send them, a gateway in front."""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.native_build import BenchmarkError
from benchmarks.peers import REPOSITORY
from benchmarks.processes import free_port, running, stop, wait_until_serving


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of stream. `script` is the provider's, in the words of a fleet file; `length_s` what a stream takes.

    `expect` is the quality every sample has; `rate` the field of the record that is held against the truth.
    """

    name: str
    script: dict[str, Any]
    length_s: float
    expect: str = "ok"
    rate: str = "output_tps"


SHAPES = (
    Shape("50 ms, 20 tok/s", {"ttft": 0.05, "tps": 20, "output_tokens": 24}, 1.2),
    Shape("200 ms, 100 tok/s", {"ttft": 0.2, "tps": 100, "output_tokens": 100}, 1.2),
    Shape("300 ms, 1,000 tok/s by 8", {"ttft": 0.3, "tps": 1000, "tokens_per_chunk": 8, "output_tokens": 800}, 1.1),
    Shape(
        "1 s of reasoning, streamed",
        {"ttft": 0.2, "tps": 100, "output_tokens": 50, "reasoning": {"tokens": 50, "seconds": 1}},
        1.7,
    ),
    Shape(
        "1 s of reasoning, hidden",
        {"ttft": 0.2, "tps": 100, "output_tokens": 50, "reasoning": {"tokens": 300, "seconds": 1, "streamed": False}},
        1.7,
        "hidden_reasoning",
        "answer_tps",
    ),
    Shape(
        "jitter, 150 ms, 60 tok/s",
        {"ttft": {"median": 0.15, "sigma": 0.3}, "tps": 60, "jitter": 0.5, "output_tokens": 60},
        1.2,
    ),
)
# One provider for what is no speed: each request says itself what becomes of it.
ODD = "odd"
ODD_SCRIPT = {"ttft": 0.05, "tps": 100, "output_tokens": 40}


def provider_name(shape: Shape) -> str:
    """The simulated provider that sends this shape."""
    return "s-" + re.sub("[^a-z0-9]+", "-", shape.name.lower()).strip("-")


def model_name(shape: Shape, concurrency: int, run: int) -> str:
    """The public model that only this run of this cell uses, so that its statistics are of nothing else."""
    return f"{provider_name(shape)}-at-{concurrency}-run-{run}"


@dataclass(frozen=True, slots=True)
class Setting:
    """What runs. `sims`: ports by provider. `log`: the request log."""

    port: int
    sims: dict[str, int]
    log: Path

    def truths(self, provider: str) -> list[dict[str, Any]]:
        """The provider's own account of its last thousand streams."""
        found: list[dict[str, Any]] = get_json(self.sims[provider], "/sim?last=1000")["last_streams"]
        return found

    def records(self, ids: Sequence[str], within_s: float = 10.0) -> dict[str, dict[str, Any]]:
        """The records with these ids, as soon as the request log has all of them."""
        wanted, deadline = set(ids), time.monotonic() + within_s
        while True:
            found = {line["id"]: line for line in self._logged() if line["id"] in wanted}
            if len(found) == len(wanted):
                return found
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{len(wanted) - len(found)} of {len(wanted)} records never came")
            time.sleep(0.05)

    def _logged(self) -> Iterator[dict[str, Any]]:
        if self.log.exists():
            with self.log.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.endswith("\n"))

    def metrics(self) -> str:
        """The exposition."""
        return _get(self.port, "/metrics").decode()

    def speed(self, deployment: str) -> dict[str, Any]:
        """The five-minute window of one deployment, as /v1/speed has it."""
        for entry in get_json(self.port, "/v1/speed")["deployments"]:
            if entry["id"] == deployment:
                window: dict[str, Any] = entry["windows"]["5m"]
                return window
        raise BenchmarkError(f"/v1/speed does not know {deployment}")


def get_json(port: int, path: str) -> Any:
    """The JSON answer of a local server."""
    return json.loads(_get(port, path))


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise BenchmarkError(f"GET {path} answered {answer.status}: {body[:200]!r}")
    return body


@contextmanager
def setting(shapes: Sequence[Shape], concurrencies: Sequence[int], runs: int, folder: Path) -> Iterator[Setting]:
    """Simulator and gateway, each a process of its own, while the block lasts."""
    with _simulator(shapes, folder) as sims:
        port, config, log = free_port(), folder / "gateway.yaml", folder / "requests.jsonl"
        config.write_text(json.dumps(_config(port, log, sims, _models(shapes, concurrencies, runs))))
        output = folder / "gateway.log"
        command = [sys.executable, "-m", "gateway", "serve", "-c", str(config)]
        with running(command, output, {"PYTHONPATH": str(REPOSITORY), "NO_PROXY": "127.0.0.1"}) as pid:
            wait_until_serving(pid, port, output, path="/readyz")
            yield Setting(port, sims, log)


def _models(shapes: Sequence[Shape], concurrencies: Sequence[int], runs: int) -> dict[str, str]:
    """Providers by model."""
    cells = {
        model_name(shape, at, run): provider_name(shape)
        for shape in shapes
        for at in concurrencies
        for run in range(1, runs + 1)
    }
    return {**cells, ODD: ODD}


def _config(port: int, log: Path, sims: dict[str, int], models: dict[str, str]) -> dict[str, Any]:
    """JSON is YAML too."""
    return {
        "version": 1,
        "state_dir": "off",
        "server": {"host": "127.0.0.1", "port": port},
        "telemetry": {"request_log": str(log)},
        "providers": {name: {"base_url": f"http://127.0.0.1:{at}/v1", "api_key": "none"} for name, at in sims.items()},
        "models": {
            model: {"deployments": [{"provider": provider, "model": model}]} for model, provider in models.items()
        },
    }


@contextmanager
def _simulator(shapes: Sequence[Shape], folder: Path) -> Iterator[dict[str, int]]:
    """The ports of the simulated providers."""
    scripts = {provider_name(shape): shape.script for shape in shapes} | {ODD: ODD_SCRIPT}
    fleet = folder / "fleet.yaml"
    fleet.write_text(json.dumps({"providers": scripts}))
    command = [sys.executable, "-m", "gateway", "fleet", str(fleet), "--json"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=REPOSITORY)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise BenchmarkError("the simulated providers did not start")
        listed = json.loads(first)["providers"]
        yield {entry["name"]: int(entry["root_url"].rpartition(":")[2]) for entry in listed}
    finally:
        stop(process)
        if process.stdout is not None:
            process.stdout.close()
