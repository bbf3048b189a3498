"""Which files the checks look at: those that git tracks or would track."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tracked(*patterns: str) -> list[Path]:
    """Paths of the repository that match, new files included, ignored ones not."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def report(title: str, problems: list[str]) -> int:
    """Prints the problems; the exit code."""
    for problem in problems:
        print(problem)
    print(f"{title}: {len(problems)} problems" if problems else f"{title}: fine")
    return 1 if problems else 0
