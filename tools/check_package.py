"""What the wheel holds: every module and every YAML file of the package, and a command that starts."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.sources import ROOT, report, tracked


def build(folder: str) -> Path:
    """Builds the wheel without asking any index."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return next(Path(folder).glob("*.whl"))


def main() -> int:
    wanted = {str(path.relative_to(ROOT)) for path in tracked("gateway/*.py", "gateway/*.yaml", "gateway/py.typed")}
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(build(folder)) as wheel:
        held = set(wheel.namelist())
        entry_points = next(wheel.read(name).decode() for name in held if name.endswith("entry_points.txt"))
    problems = [f"{name} is missing from the wheel" for name in sorted(wanted - held)]
    if "gateway = gateway.cli:main" not in entry_points:
        problems.append("the wheel has no command `gateway`")
    command = [sys.executable, "-m", "gateway", "--help"]
    started = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if started.returncode != 0:
        problems.append(f"`gateway --help` fails: {started.stderr.strip()[-300:]}")
    return report("package", problems)


if __name__ == "__main__":
    sys.exit(main())
