"""Many simulated providers in one process, described by a YAML file."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import yaml

from gateway.core.errors import ConfigError
from gateway.simulator.parse import read_script
from gateway.simulator.provider import SimulatedProvider
from gateway.simulator.script import Script


class Fleet:
    """`async with Fleet(read_fleet(path)) as fleet:` runs every provider; `fleet["hare"].base_url` is one of them."""

    def __init__(self, scripts: Iterable[Script], *, host: str = "127.0.0.1") -> None:
        self._providers = {script.name: SimulatedProvider(script, host=host) for script in scripts}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for provider in self:
                await stack.enter_async_context(provider)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def __iter__(self) -> Iterator[SimulatedProvider]:
        return iter(self._providers.values())

    def __getitem__(self, name: str) -> SimulatedProvider:
        return self._providers[name]


def read_fleet(path: Path | None = None, only: Iterable[str] = ()) -> tuple[Script, ...]:
    """The scripts of a fleet file, of the packaged demo fleet without one; all, or `only` those named.

    Raises ConfigError with every mistake as `file:line: path: what is wrong`.
    """
    source = path or files("gateway.simulator") / "demo_fleet.yaml"
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{source}: cannot be read: {error}"]) from None
    scripts = _scripts(text, str(path or "demo_fleet.yaml"))
    wanted = tuple(only)
    unknown = [name for name in wanted if name not in scripts]
    if unknown:
        raise ConfigError([f"{name}: is not in the fleet; known: {', '.join(scripts)}" for name in unknown])
    return tuple(script for name, script in scripts.items() if not wanted or name in wanted)


def _scripts(text: str, shown: str) -> dict[str, Script]:
    document = _Document(text, shown)
    content, problems = document.content, document.problems
    providers = content.get("providers") if isinstance(content, Mapping) else None
    if not isinstance(content, Mapping) or not isinstance(providers, Mapping) or not providers:
        raise ConfigError([*problems, f"{shown}:1: a fleet has one key, providers, that maps names to scripts"])
    strangers = [key for key in content if key != "providers"]
    problems += [document.placed(f"{key}: is not known here; known: providers") for key in strangers]
    scripts: dict[str, Script] = {}
    for name, given in providers.items():
        try:
            scripts[name] = read_script(_named(name, given), f"providers.{name}")
        except ConfigError as error:
            problems += [document.placed(problem) for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return scripts


def _named(name: str, given: object) -> object:
    if given is None:
        return {"name": name}
    if not isinstance(given, Mapping):
        return given
    if "name" in given:
        raise ConfigError([f"providers.{name}.name: is the key already"])
    return {"name": name, **given}


class _Document:
    """A YAML text as plain values, with the line of every path and the keys that are given twice."""

    def __init__(self, text: str, shown: str) -> None:
        self.problems: list[str] = []
        self._shown = shown
        self._lines: dict[str, int] = {}
        self._loader = yaml.SafeLoader(text)
        self.content: Any = self._parsed()

    def placed(self, problem: str) -> str:
        """The problem with its line: that of the nearest enclosing key that is in the file."""
        path = problem.partition(": ")[0]
        while path and path not in self._lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self._shown}:{self._lines.get(path, 1)}: {problem}"

    def _parsed(self) -> Any:
        try:
            node = self._loader.get_single_node()
            return None if node is None else self._value(node, "")
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark is not None else 1
            raise ConfigError(
                [f"{self._shown}:{line}: is not valid YAML: {getattr(error, 'problem', error)}"]
            ) from None
        finally:
            self._loader.dispose()

    def _value(self, node: yaml.Node, path: str) -> Any:
        if isinstance(node, yaml.SequenceNode):
            for at, item in enumerate(node.value):
                self._lines[f"{path}[{at}]"] = item.start_mark.line + 1
            return [self._value(item, f"{path}[{at}]") for at, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return self._loader.construct_object(node)
        found: dict[str, Any] = {}
        for key_node, item in node.value:
            key = str(key_node.value)
            inner = f"{path}.{key}" if path else key
            self._lines[inner] = key_node.start_mark.line + 1
            if key in found:
                self.problems.append(self.placed(f"{inner}: is given twice"))
            found[key] = self._value(item, inner)
        return found
