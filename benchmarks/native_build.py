"""Builds the mock upstream and the load generator with the system's C compiler, once per state of their sources."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
CACHE = Path(__file__).parent.parent / ".cache" / "benchmarks"


class BenchmarkError(Exception):
    """Something a benchmark needs is missing or went wrong; the text is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the two programs."""

    upstream: Path
    load: Path


def build() -> Tools:
    """The programs, built where their sources have changed. Needs a C compiler as `cc`, or named by CC."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.read_bytes())
    folder = CACHE / digest.hexdigest()[:16]
    return Tools(upstream=_compiled("upstream", folder), load=_compiled("load", folder))


def _compiled(name: str, folder: Path) -> Path:
    program = folder / name
    if program.exists():
        return program
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BenchmarkError("a C compiler is needed for the load generator (Debian: apt-get install gcc libc6-dev)")
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{name}.{os.getpid()}"
    built = subprocess.run(
        [compiler, "-O2", "-o", str(fresh), str(SOURCES / f"{name}.c")], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise BenchmarkError(f"{name}.c does not compile:\n{built.stderr}")
    fresh.replace(program)
    return program
