"""`python -m benchmarks.aiperf`: what aiperf measures through the gateway, against the gateway's own records.

The same requests by other hands: one simulated provider, a token a chunk, the server's token counts. aiperf is run from
an environment of its own (`make bench-aiperf` makes it).
"""

import argparse
import contextlib
import json
import os
import signal
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
    """One figure: medians of both, and the ratios, ours over aiperf's, of the single requests."""

    figure: str
    gateway: float
    aiperf: float
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median of the requests' ratios; 1 is agreement."""
        return median(self.ratios)

    @property
    def worst(self) -> float:
        """The ratio farthest from 1."""
        return max(self.ratios, key=lambda ratio: abs(ratio - 1))

    @property
    def within(self) -> int:
        """How many single requests agree."""
        return sum(abs(ratio - 1) <= AGREEMENT for ratio in self.ratios)

    @property
    def holds(self) -> bool:
        """Whether the median request agrees: a single one is at the mercy of the machine (docs/bench.md)."""
        return abs(self.ratio - 1) <= AGREEMENT


def compared(pairs: Sequence[Pair]) -> list[Comparison]:
    """Request by request, both figures."""
    return [
        _comparison("TTFT ms", [(one.ttft_ms, one.aiperf_ttft_ms) for one in pairs]),
        _comparison("tok/s", [(one.tps, one.aiperf_tps) for one in pairs]),
    ]


def _comparison(figure: str, both: Sequence[tuple[float, float]]) -> Comparison:
    ratios = tuple(ours / theirs for ours, theirs in both)
    return Comparison(figure, median(ours for ours, _ in both), median(theirs for _, theirs in both), ratios)


def paired(exported: Sequence[dict[str, Any]], records: dict[str, dict[str, Any]], wanted: int) -> list[Pair]:
    """Requests by the id that aiperf gave them, which the gateway keeps as `client_request_id`.

    All of the `wanted` ones or an error: a request that failed or is not found again must not go missing unseen.
    """
    profiled = [one for one in exported if one["metadata"]["benchmark_phase"] == "profiling"]
    if len(profiled) != wanted:
        raise BenchmarkError(f"aiperf exported {len(profiled)} of {wanted} requests")
    return [_pair(one, records.get(one["metadata"]["x_request_id"])) for one in profiled]


def _pair(one: dict[str, Any], record: dict[str, Any] | None) -> Pair:
    """aiperf's inter-token latency is (latency - TTFT) / (n - 1): its inverse is our rate where a chunk is a token."""
    if one.get("error"):
        raise BenchmarkError(f"a request of aiperf failed: {one['error']}")
    if record is None:
        raise BenchmarkError(f"aiperf's request {one['metadata']['x_request_id']} is not among the gateway's records")
    if record["speed"]["quality"] != "ok":
        raise BenchmarkError(f"a sample is {record['speed']['quality']}: {record['id']}")
    metrics, tokens = one["metrics"], record["tokens"]["output"]
    counted, chunks = metrics["output_sequence_length"]["value"], record["stream_events"]["tokens"]
    if not tokens == counted == chunks:
        raise BenchmarkError(f"{record['id']}: {tokens} tokens, {counted} by aiperf, in {chunks} chunks: not alike")
    return Pair(
        ttft_ms=record["client"]["ttft_ms"],
        aiperf_ttft_ms=metrics["time_to_first_token"]["value"],
        tps=record["speed"]["output_tps"],
        aiperf_tps=1000 / metrics["inter_token_latency"]["value"],
    )


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
    returned, said = _run(command, folder)
    exported = artifacts / "profile_export.jsonl"
    if returned or not exported.exists():
        raise BenchmarkError(f"aiperf ended with {returned}:\n{said[-3000:]}")
    return [json.loads(line) for line in exported.read_text().splitlines()]


def _run(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Exit code and output. aiperf is many processes: whatever ends this one ends all of them."""
    direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **direct},
        cwd=folder,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=_LONGEST_S)
        return process.returncode, said
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
        return compared(paired(exported, records, REQUESTS))


def main(argv: Sequence[str] | None = None) -> int:
    """0: the median request agrees within two percent, in both figures; 1: it does not, or something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aiperf", description=__doc__)
    parser.add_argument("--program", type=Path, default=Path(".cache/aiperf/bin/aiperf"), help="aiperf's own program")
    parser.add_argument("--concurrency", type=int, default=1, help="requests at once (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        for needed in (args.program, args.program.with_name("python")):
            if not needed.exists():
                raise BenchmarkError(f"{needed} is not there; `make bench-aiperf` installs it")
        found = measure(args.program.absolute(), args.concurrency)
    except (BenchmarkError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        rows = [
            {**asdict(one), "ratio": one.ratio, "worst": one.worst, "within": one.within, "holds": one.holds}
            for one in found
        ]
        print(json.dumps({"requests": REQUESTS, "concurrency": args.concurrency, "figures": rows}, indent=2))
    else:
        Console().print(_table(found, args.concurrency))
    return 0 if all(one.holds for one in found) else 1


def _table(found: Sequence[Comparison], concurrency: int) -> Table:
    title = f"{REQUESTS} requests, {concurrency} at once, through the gateway: medians"
    heads = ("figure", "gateway's records", "aiperf", "ratio", "worst", "requests within 2 %", "agrees")
    table = Table(*heads, title=title, title_justify="left")
    for one in found:
        figures = (f"{one.gateway:.2f}", f"{one.aiperf:.2f}", f"{one.ratio:.4f}", f"{one.worst:.4f}")
        table.add_row(one.figure, *figures, f"{one.within} of {len(one.ratios)}", "yes" if one.holds else "NO")
    return table


if __name__ == "__main__":
    sys.exit(main())
