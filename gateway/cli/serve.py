"""`gateway serve`: the gateway on its configuration, until SIGTERM."""

import argparse
import asyncio
import gc
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from gateway.app import Gateway, Listening, Settings, assemble, serve, settings_of
from gateway.cli.descriptors import raise_file_limit
from gateway.config.load import Found, find
from gateway.config.references import exposed
from gateway.config.schema import Config
from gateway.config.state_folder import state_folder
from gateway.core.errors import ConfigError


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `serve` to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the gateway",
        description="Serves on the given configuration, else $GATEWAY_CONFIG, else ./gateway.yaml, else on every "
        "provider whose API key variable is set. SIGTERM drains: streams finish, new requests are refused.",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration file")
    parser.add_argument("--host", help="address to listen on, over server.host")
    parser.add_argument("--port", type=int, help="port to listen on, over server.port; 0 takes a free one")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="only 1 in this version")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 after a drain; ConfigError (exit 2) where the configuration cannot be served."""
    if args.workers != 1:
        raise ConfigError(["--workers: this version serves with one process; leave it out"])
    if args.port is not None and not 0 <= args.port <= 65535:
        raise ConfigError(["--port: must be 0 to 65535"])
    found = find(args.config, os.environ, Path.cwd())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    gateway = assemble(_settings(found.config, args))
    raise_file_limit()
    # What was made at the start lives as long as the process: later collections need not walk it.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(gateway, lambda listening: _announce(gateway, listening, found)))
    return 0


def _settings(config: Config, args: argparse.Namespace) -> Settings:
    """The command line's words over the file's; an open address needs keys whoever names it."""
    settings = settings_of(config)
    host = args.host or settings.host
    if exposed(host, has_keys=bool(config.auth.keys), allow_open=config.server.allow_open):
        raise ConfigError([f"--host: {host} can be reached from a network; add auth.keys, or server.allow_open: true"])
    port = settings.port if args.port is None else args.port
    return replace(settings, host=host, port=port, state=state_folder(config, os.environ, sys.platform))


def _announce(gateway: Gateway, listening: Listening, found: Found) -> None:
    host = gateway.settings.host
    shown = f"[{host}]" if ":" in host else host
    names = gateway.services.names.public
    served = ", ".join(names[:10]) or ", ".join(f"{name}/<model>" for name in gateway.settings.open_providers)
    print(f"gateway: serving {found.source} on http://{shown}:{listening.port}/v1 ({served})", file=sys.stderr)
