"""What a command does when its reader has gone, as in `gateway check | head -1`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_leaves_ends_a_command_without_a_traceback(
    tmp_path: Path, form: list[str], unbuffered: str
) -> None:
    file = tmp_path / "gateway.yaml"
    providers = "providers: {a: {base_url: 'http://127.0.0.1:9/v1'}}"
    file.write_text(f"version: 1\n{providers}\nmodels: {{m: {{deployments: [{{provider: a}}]}}}}\n")
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "gateway", "check", *form, str(file)]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    try:
        done = subprocess.run(words, check=False, stdout=writes, stderr=subprocess.PIPE, text=True, env=env)
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (1, "")
