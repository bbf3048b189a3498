"""`gateway fleet`: runs simulated providers until it is told to stop."""

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from gateway.cli.descriptors import raise_file_limit
from gateway.simulator import Fleet, Script, read_fleet


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `fleet` to the command line."""
    parser = subparsers.add_parser(
        "fleet",
        help="run simulated providers with scripted speeds and faults",
        description="Runs simulated OpenAI-compatible providers until SIGTERM or Ctrl-C. They invent their answers.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE.yaml", help="fleet file (default: the demo fleet)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run only these providers of the file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON line with names and addresses")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 after a stop signal, 1 where a port cannot be had. Raises ConfigError for mistakes in the file."""
    scripts = read_fleet(args.file, args.only)
    raise_file_limit()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(scripts, args.host, args.json))
    except OSError as error:
        print(f"cannot listen: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(scripts: tuple[Script, ...], host: str, as_json: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopped.set)
    async with Fleet(scripts, host=host) as fleet:
        if as_json:
            _print_json(fleet)
        else:
            _print_table(fleet)
        await stopped.wait()


def _print_json(fleet: Fleet) -> None:
    listed = [{"name": one.script.name, "base_url": one.base_url, "root_url": one.root_url} for one in fleet]
    print(json.dumps({"pid": os.getpid(), "providers": listed}), flush=True)


def _print_table(fleet: Fleet) -> None:
    table = Table("name", "base_url", "pid")
    for one in fleet:
        table.add_row(one.script.name, one.base_url, str(os.getpid()))
    console = Console()
    console.print(table)
    console.print("Control: GET and POST /sim beside /v1. Stop with Ctrl-C.")
    sys.stdout.flush()
