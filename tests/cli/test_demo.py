"""The demo as a user starts it: it serves, shows the fleet, and loses no request when a provider is killed."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "gateway", "demo", "--port", "0", "--rate", "10", "--seconds", "14"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "160"})
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"{pattern!r} was never printed")


def test_a_killed_provider_is_left_and_no_request_fails_that_had_not_begun(demo: subprocess.Popen[str]) -> None:
    assert until(demo, r"base_url\s+(\S+)")[1].startswith("http://127.0.0.1:")
    pid = int(until(demo, r"^hare .*\s(\d+)$")[1])
    os.kill(pid, signal.SIGKILL)
    assert until(demo, r"^hare\s+(\w+).*gone$")[1] in ("cooling", "probing")
    summary = until(demo, r"(\d+) requests: (\d+) ok, (\d+) of them moved on .*; (\d+) failed before a token")
    while later := _last(demo):
        summary = later
    requests, ok, _, before_token = (int(figure) for figure in summary.groups())
    assert requests > 50
    assert before_token == 0
    assert ok >= requests - 10  # those in mid-stream at the kill, and those still running at the end
    assert demo.wait(10) == 0


def _last(demo: subprocess.Popen[str]) -> re.Match[str] | None:
    try:
        return until(demo, r"(\d+) requests: (\d+) ok, (\d+) of them moved on .*; (\d+) failed before a token")
    except AssertionError:
        return None


@pytest.mark.parametrize("words", [["--rate", "0"], ["--port", "70000"], ["--seconds", "-1"], ["--rate", "x"]])
def test_wrong_words_exit_with_2(words: list[str]) -> None:
    command = [sys.executable, "-m", "gateway", "demo", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert words[0] in done.stderr
