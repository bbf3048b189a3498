"""`gateway check`: what is wrong with a configuration, or what it comes to."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gateway.config.load import Inspection, find, inspect, locate
from gateway.config.resolve import catalog, open_providers
from gateway.config.schema import Config
from gateway.config.state_folder import state_folder
from gateway.core.errors import ConfigError
from gateway.telemetry.metrics import Metrics

# A table that is piped somewhere has no terminal to fit into.
_PIPED_WIDTH = 240
# Time series that one scrape should carry at most.
MAX_SERIES = 60_000


@dataclass(frozen=True, slots=True)
class Row:
    """One deployment behind one public name."""

    name: str
    kind: str
    deployment: str
    provider: str
    upstream_model: str
    price_known: bool


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `check` to the command line."""
    parser = subparsers.add_parser(
        "check",
        help="validate a configuration",
        description="Names every problem of a configuration, or lists the deployments it resolves to. "
        "Without FILE: $GATEWAY_CONFIG, then ./gateway.yaml, then the keys in the environment.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="the configuration file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 where the configuration can be served, 2 where not."""
    inspection = _inspect(args.file)
    rows = list(_rows(inspection.config)) if inspection.config else []
    if args.json:
        print(json.dumps(_as_json(inspection, rows), indent=2))
    else:
        _print(inspection, rows)
    return 2 if inspection.problems else 0


def _inspect(file: str | None) -> Inspection:
    """The file that `serve` would take; automatic mode where there is none."""
    cwd = Path.cwd()
    located = locate(file, os.environ, cwd)
    if located is not None:
        return inspect(cwd / located, os.environ, located)
    try:
        found = find(None, os.environ, cwd)
    except ConfigError as error:
        return Inspection("automatic", None, tuple(error.problems))
    return Inspection(found.source, found.config, (), (), found.warnings)


def _rows(config: Config) -> Iterator[Row]:
    resolved = catalog(config)
    for name in resolved.public:
        target = resolved.targets[name]
        shown = ", ".join((name, *target.aliases))
        for entry in target.deployments:
            known = entry.price is not None and entry.price.input is not None and entry.price.output is not None
            kind = "route" if target.route else "model"
            yield Row(shown, kind, entry.id, entry.provider.name, entry.upstream_model, known)
    for provider in open_providers(config):
        yield Row(f"{provider}/*", "any model", f"{provider}/*", provider, "*", False)


def _warnings(inspection: Inspection) -> Iterator[str]:
    """Those of the file, and what it would come to as a whole."""
    yield from inspection.warnings
    if inspection.config is not None:
        series = Metrics(catalog(inspection.config), open_providers=open_providers(inspection.config)).series
        if series > MAX_SERIES:
            yield f"/metrics has {series:,} time series from the start; over {MAX_SERIES:,} a scrape is heavy"


def _as_json(inspection: Inspection, rows: list[Row]) -> dict[str, object]:
    return {
        "ok": not inspection.problems,
        "source": inspection.source,
        "problems": list(inspection.problems),
        "missing_secrets": list(inspection.missing),
        "warnings": list(_warnings(inspection)),
        "state_dir": None if inspection.config is None else _state_path(inspection.config),
        "deployments": [asdict(row) for row in rows],
    }


def _state_path(config: Config) -> str | None:
    """Where `serve` keeps state; None where in memory only."""
    folder = state_folder(config, os.environ, sys.platform)
    return None if folder is None or folder.path is None else str(folder.path)


def _print(inspection: Inspection, rows: list[Row]) -> None:
    for problem in inspection.problems:
        print(problem)
    if inspection.config is not None:
        print(f"source: {inspection.source}")
        print(f"state: {_state_path(inspection.config) or 'in memory only'}")
        _print_table(rows)
    if inspection.missing:
        print(f"missing secrets: {', '.join(inspection.missing)}")
    for warning in _warnings(inspection):
        print(f"warning: {warning}")
    count = len(inspection.problems)
    print(f"{count} problem{'' if count == 1 else 's'}" if count else "ok")


def _print_table(rows: list[Row]) -> None:
    table = Table("name", "kind", "deployment", "provider", "upstream model", "price")
    for row in rows:
        price = "known" if row.price_known else "unknown"
        table.add_row(row.name, row.kind, row.deployment, row.provider, row.upstream_model, price)
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    Console(width=width, markup=False, highlight=False).print(table)
