"""The `gateway` command: one module a command, imported only when it is asked for."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

from gateway import __version__
from gateway.core.errors import ConfigError

COMMANDS: Mapping[str, str] = {
    "serve": "serve the gateway",
    "demo": "a simulated fleet, the gateway in front of it, and a live table; needs no key and no network",
    "bench": "measure how fast models answer",
    "check": "validate a configuration",
    "keys": "make a key, or hash one, for the configuration",
    "fleet": "simulated providers with scripted speed and faults",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. 0 done, 1 failed, 2 wrong usage or configuration."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="gateway", description="An OpenAI-compatible proxy that routes and meters.")
    parser.add_argument("--version", action="version", version=f"gateway {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        if words[:1] == [name]:
            importlib.import_module(f"gateway.cli.{name}").add_parser(commands)
        else:
            commands.add_parser(name, help=purpose)
    args = parser.parse_args(words)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as with `| head`. What is still buffered must not fail at the exit once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ConfigError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code
