"""What is read from /proc."""

import os
import subprocess
import sys

import pytest

from benchmarks import kernel

pytestmark = pytest.mark.skipif(not kernel.PROC.joinpath("self", "stat").exists(), reason="needs Linux's /proc")


def test_work_of_a_child_counts_for_the_tree() -> None:
    spin = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", spin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in kernel.tree(os.getpid())
        assert kernel.cpu_seconds(child.pid) >= 0.2
        child.communicate(b"\n")
    assert child.pid not in kernel.tree(os.getpid())


def test_a_process_that_is_gone_costs_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert kernel.cpu_seconds(child.pid) == 0.0
    assert kernel.resident_bytes(child.pid) == 0


def test_resident_memory_of_this_process_is_some_megabytes() -> None:
    assert kernel.resident_bytes(os.getpid()) > 1_000_000
