"""`python -m benchmarks.aiperf`: what aiperf measures through the gateway, against the gateway's own records.

The same requests by other hands: one simulated provider, a token a chunk, the server's token counts. aiperf is run from
an environment of its own (`make bench-aiperf` makes it).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.native_build import BenchmarkError
from benchmarks.truth_setting import Shape, model_name, setting

# What a client's own start costs it (a connection, its event loop) is a few milliseconds: they must not decide.
SHAPE = Shape("500 ms, 100 tok/s", {"ttft": 0.5, "tps": 100, "output_tokens": 200}, 2.5)
AGREEMENT = 0.02
REQUESTS = 30
WARMUP = 3
_LONGEST_S = 600.0
# aiperf wants a tokenizer although it does not count with it here; a word is a token to this one.
_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(sys.argv[1])
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """One request as both saw it. Times in milliseconds, rates in tokens per second."""

    ttft_ms: float
    aiperf_ttft_ms: float
    tps: float
    aiperf_tps: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure: medians of both, and ours over aiperf's."""

    figure: str
    gateway: float
    aiperf: float

    @property
    def ratio(self) -> float:
        """1 is agreement."""
        return self.gateway / self.aiperf

    @property
    def holds(self) -> bool:
        """Within two percent."""
        return abs(self.ratio - 1) <= AGREEMENT


def compared(pairs: Sequence[Pair]) -> list[Comparison]:
    """The medians side by side."""
    return [
        Comparison("TTFT ms", median(one.ttft_ms for one in pairs), median(one.aiperf_ttft_ms for one in pairs)),
        Comparison("tok/s", median(one.tps for one in pairs), median(one.aiperf_tps for one in pairs)),
    ]


def paired(exported: Sequence[dict[str, Any]], records: dict[str, dict[str, Any]]) -> list[Pair]:
    """Requests by the id that aiperf gave them, which the gateway keeps as `client_request_id`.

    aiperf's inter-token latency is (latency - TTFT) / (n - 1): with a token a chunk its inverse and our rate are alike.
    """
    pairs: list[Pair] = []
    for one in exported:
        record = records.get(one["metadata"]["x_request_id"])
        if record is None or one["metadata"]["benchmark_phase"] != "profiling":
            continue
        metrics = one["metrics"]
        if record["speed"]["quality"] != "ok":
            raise BenchmarkError(f"a sample is {record['speed']['quality']}: {record['id']}")
        pairs.append(
            Pair(
                ttft_ms=record["client"]["ttft_ms"],
                aiperf_ttft_ms=metrics["time_to_first_token"]["value"],
                tps=record["speed"]["output_tps"],
                aiperf_tps=1000 / metrics["inter_token_latency"]["value"],
            )
        )
    if not pairs:
        raise BenchmarkError("no request of aiperf is among the gateway's records")
    return pairs


def _prepare(python: Path, folder: Path) -> tuple[Path, Path]:
    """A tokenizer and prompts, on disk."""
    tokenizer, prompts = folder / "tokenizer", folder / "prompts.jsonl"
    made = subprocess.run([python, "-c", _TOKENIZER, tokenizer], capture_output=True, text=True, check=False)
    if made.returncode:
        raise BenchmarkError(f"the tokenizer could not be made:\n{made.stderr[-2000:]}")
    lines = [{"text": f"Write function number {number}, which joins intervals."} for number in range(REQUESTS)]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tokenizer, prompts


def _profile(program: Path, port: int, model: str, folder: Path, concurrency: int) -> list[dict[str, Any]]:
    tokenizer, prompts = _prepare(program.with_name("python"), folder)
    artifacts = folder / "aiperf"
    command = [
        *(str(program), "profile", "--model", model, "--url", f"http://127.0.0.1:{port}", "--endpoint-type", "chat"),
        *("--streaming", "--use-server-token-count", "--tokenizer", str(tokenizer), "--ui", "none"),
        *("--input-file", str(prompts), "--custom-dataset-type", "single_turn", "--export-level", "records"),
        *("--request-count", str(REQUESTS), "--concurrency", str(concurrency)),
        *("--warmup-request-count", str(WARMUP), "--artifact-dir", str(artifacts)),
    ]
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_LONGEST_S, env=environment, cwd=folder
    )
    exported = artifacts / "profile_export.jsonl"
    if done.returncode or not exported.exists():
        raise BenchmarkError(f"aiperf ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return [json.loads(line) for line in exported.read_text().splitlines()]


def _records(log: Path, wanted: int) -> dict[str, dict[str, Any]]:
    """The gateway's records by the client's id. The last lines are written by a thread."""
    deadline = time.monotonic() + 5.0
    while True:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        if len(lines) >= wanted or time.monotonic() > deadline:
            return {line["client_request_id"]: line for line in lines if line["outcome"] == "ok"}
        time.sleep(0.05)


def measure(program: Path, concurrency: int) -> list[Comparison]:
    """Runs simulator, gateway and aiperf."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with setting([SHAPE], [1], 1, folder) as place:
            exported = _profile(program, place.port, model_name(SHAPE, 1, 1), folder, concurrency)
            records = _records(folder / "requests.jsonl", REQUESTS + WARMUP)
        return compared(paired(exported, records))


def main(argv: Sequence[str] | None = None) -> int:
    """0: they agree within two percent; 1: they do not, or something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aiperf", description=__doc__)
    parser.add_argument("--program", type=Path, default=Path(".cache/aiperf/bin/aiperf"), help="aiperf's own program")
    parser.add_argument("--concurrency", type=int, default=1, help="requests at once (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        if not args.program.exists():
            raise BenchmarkError(f"{args.program} is not there; `make bench-aiperf` installs it")
        found = measure(args.program.absolute(), args.concurrency)
    except (BenchmarkError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        rows = [{**asdict(one), "ratio": round(one.ratio, 4), "holds": one.holds} for one in found]
        print(json.dumps({"requests": REQUESTS, "concurrency": args.concurrency, "figures": rows}, indent=2))
    else:
        Console().print(_table(found, args.concurrency))
    return 0 if all(one.holds for one in found) else 1


def _table(found: Sequence[Comparison], concurrency: int) -> Table:
    title = f"{REQUESTS} requests, {concurrency} at once, through the gateway: medians"
    table = Table("figure", "gateway's records", "aiperf", "ratio", "within 2 %", title=title, title_justify="left")
    for one in found:
        holds = "yes" if one.holds else "NO"
        table.add_row(one.figure, f"{one.gateway:.2f}", f"{one.aiperf:.2f}", f"{one.ratio:.4f}", holds)
    return table


if __name__ == "__main__":
    sys.exit(main())
