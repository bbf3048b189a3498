"""From a file and the environment to a Config: the only reader of the environment.

`load` for a given file, `find` for whatever there is, `automatic` for none, `inspect` for every finding at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from gateway.config import tree
from gateway.config.document import Document, Unreadable, parse, read_text
from gateway.config.effects import warnings_of
from gateway.config.expand import expand
from gateway.config.presets import presets
from gateway.config.problems import FromEnvironment, Path, Problem, meant, shown
from gateway.config.references import reference_problems
from gateway.config.schema import Config
from gateway.config.schema_problems import problems_of
from gateway.config.state_folder import needs_home, resolved
from gateway.config.unsupported import refusals
from gateway.core.errors import ConfigError

ENVIRONMENT_NAME = "GATEWAY_CONFIG"
LOCAL_NAME = "gateway.yaml"
# A preset that does not exist is one problem; that it brings no base URL is no second one.
_STAND_IN_URL = "https://preset.invalid"


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that can be used. `source` is the file, or what automatic mode was made of."""

    config: Config
    source: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that is to be said of a file.

    `config` is there when the only problems are missing secrets (then with stand-ins: never serve it).
    `missing` names secrets: environment variables and `file:` paths.
    """

    source: str
    config: Config | None
    problems: tuple[str, ...]
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load(path: str | FilePath, environ: Mapping[str, str]) -> Config:
    """The configuration in a file. Raises ConfigError with every problem in it."""
    return read(path, environ).config


def read(path: str | FilePath, environ: Mapping[str, str], label: str | None = None) -> Found:
    """The configuration in a file with its warnings. `label` is what the file is called in messages."""
    inspection = inspect(path, environ, label)
    if inspection.problems or inspection.config is None:
        raise ConfigError(list(inspection.problems))
    return Found(inspection.config, inspection.source, inspection.warnings)


def find(path: str | None, environ: Mapping[str, str], cwd: str | FilePath) -> Found:
    """The configuration to serve: `path`, else $GATEWAY_CONFIG, else ./gateway.yaml, else automatic.

    Raises ConfigError where the first of these that is there cannot be used, or none is there.
    """
    file = locate(path, environ, cwd)
    if file is not None:
        return read(FilePath(cwd) / file, environ, file)
    config = automatic(environ)
    if config is None:
        raise ConfigError([_nothing_found()])
    used = ", ".join(presets()[name].key for name in config.providers)
    return Found(config, f"automatic (from {used})")


def locate(path: str | None, environ: Mapping[str, str], cwd: str | FilePath) -> str | None:
    """The file that `find` would read, relative to `cwd`; None where it would go automatic."""
    named = path or environ.get(ENVIRONMENT_NAME)
    if named:
        return named
    return LOCAL_NAME if (FilePath(cwd) / LOCAL_NAME).exists() else None


def automatic(environ: Mapping[str, str]) -> Config | None:
    """Every preset whose key variable is set, each serving `NAME/<any model>`. None where no variable is set."""
    providers = {
        name: {"preset": name, "base_url": preset.base_url, "api_key": environ[preset.key], "any_model": True}
        for name, preset in presets().items()
        if environ.get(preset.key, "").strip()
    }
    if not providers:
        return None
    try:
        return Config.model_validate({"version": 1, "providers": providers})
    except ValidationError as error:
        names = {str(finding["loc"][1]) for finding in error.errors(include_input=False, include_url=False)}
        unusable = "holds a line break or a character that cannot stand in a header"
        raise ConfigError([f"environment: {presets()[name].key}: {unusable}" for name in sorted(names)]) from None


def inspect(path: str | FilePath, environ: Mapping[str, str], label: str | None = None) -> Inspection:
    """Everything that is wrong with a file, or its configuration. Never raises."""
    file = FilePath(path)
    source = label or str(path)
    try:
        text = read_text(file)
    except Unreadable as unreadable:
        return Inspection(source, None, (unreadable.problem.render(source),))
    return inspect_text(text, environ, source, file.parent)


def inspect_text(text: str, environ: Mapping[str, str], source: str, folder: FilePath) -> Inspection:
    """As `inspect`, of a text. Relative paths in it are meant from `folder`."""
    try:
        document, unread = parse(text)
    except Unreadable as unreadable:
        return Inspection(source, None, (unreadable.problem.render(source),))
    document, unresolved = expand(document, environ, folder)
    document, unset = _with_presets(document, environ)
    config, invalid = _validated(document)
    homeless = _homeless(document, environ)
    told = _told_once([*unresolved, *unset, *refusals(document), *invalid, *homeless, *reference_problems(document)])
    problems = [*unread, *told]
    usable = config is not None and all(problem.missing for problem in problems)
    warnings = _sorted(warnings_of(config, document)) if config is not None and usable else []
    return Inspection(
        source,
        _resolved_paths(config, folder, environ) if config is not None and usable else None,
        tuple(problem.render(source) for problem in _sorted(problems)),
        tuple(dict.fromkeys(problem.missing for problem in problems if problem.missing)),
        tuple(warning.render(source) for warning in warnings),
    )


def _with_presets(document: Document, environ: Mapping[str, str]) -> tuple[Document, list[Problem]]:
    """The document with what presets know of its providers filled in."""
    problems: list[Problem] = []
    if not isinstance(document.values.get("providers"), dict):
        return document, problems
    filled: dict[str, Any] = {}
    for name, given in tree.section(document, "providers").items():
        filled[name] = (
            given if given is not None and not isinstance(given, dict) else _filled(name, given or {}, environ)
        )
        problems += _preset_problems(document, name, given, filled[name])
    return Document({**document.values, "providers": filled}, document.lines), problems


def _filled(name: str, given: dict[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """One provider with base URL, dialect and key of its preset where it does not give its own."""
    preset_name = given.get("preset") or name
    preset = presets().get(preset_name) if isinstance(preset_name, str) else None
    values = {key: value for key, value in given.items() if value is not None}
    if preset is None:
        known = {"base_url": _STAND_IN_URL} if "preset" in values else {}
        return {**known, **given, "api_key": None} if values.get("api_key") == "none" else {**known, **given}
    values = {"preset": preset_name, "base_url": preset.base_url, "dialect": preset.dialect, **values}
    if values.get("api_key") == "none":
        del values["api_key"]
    elif "api_key" not in values and environ.get(preset.key, "").strip():
        values["api_key"] = FromEnvironment(environ[preset.key])
    return values


def _preset_problems(document: Document, name: str, given: Any, filled: Any) -> Iterator[Problem]:
    """A preset that does not exist, a preset's key that is not there."""
    values = tree.mapping(given)
    wanted = values.get("preset")
    if isinstance(wanted, str) and wanted not in presets():
        path: Path = ("providers", name, "preset")
        says = f"unknown preset {shown(wanted)}; {meant(wanted, presets(), 'presets')}"
        yield Problem(path, says, document.line(path))
        return
    preset = presets().get(tree.text_or_none(tree.mapping(filled).get("preset")) or "")
    if preset is not None and values.get("api_key") is None and "api_key" not in tree.mapping(filled):
        says = f"needs the environment variable {preset.key}, which is not set; set it, or give api_key"
        yield Problem(("providers", name), says, document.line(("providers", name)), preset.key)


def _validated(document: Document) -> tuple[Config | None, list[Problem]]:
    try:
        return Config.model_validate(document.values), []
    except ValidationError as error:
        return None, list(problems_of(error, document, presets()))


def _told_once(problems: Iterable[Problem]) -> list[Problem]:
    """The first problem of each place: a value that is missing is not also malformed."""
    told: dict[Path, Problem] = {}
    for problem in problems:
        told.setdefault(problem.path, problem)
    return list(told.values())


def _sorted(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.line or 0, [str(step) for step in problem.path]))


def _homeless(document: Document, environ: Mapping[str, str]) -> Iterator[Problem]:
    path: Path = ("state_dir",)
    if needs_home(document.values.get("state_dir"), environ):
        yield Problem(path, "is meant from the home folder, but HOME is not set; write a path", document.line(path))


def _resolved_paths(config: Config, folder: FilePath, environ: Mapping[str, str]) -> Config:
    """Relative paths are meant from the configuration's folder, those with `~` from the user's home."""
    providers = {
        name: provider.model_copy(update={"ca_file": str(folder / provider.ca_file)}) if provider.ca_file else provider
        for name, provider in config.providers.items()
    }
    log = config.telemetry.request_log
    if log not in ("stdout", "off"):
        log = str(folder / log)
    telemetry = config.telemetry.model_copy(update={"request_log": log})
    state_dir = None if config.state_dir is None else resolved(config.state_dir, folder, environ)
    return config.model_copy(update={"providers": providers, "telemetry": telemetry, "state_dir": state_dir})


def _nothing_found() -> str:
    keys = ", ".join(preset.key for preset in presets().values())
    return (
        f"no configuration: no -c FILE, no ${ENVIRONMENT_NAME}, no ./{LOCAL_NAME}, and none of {keys} is set; "
        "write a gateway.yaml, set a key, or try `gateway demo`, which needs neither"
    )
