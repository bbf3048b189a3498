"""Reading scripts strictly: every mistake is named with its path, what was found and what is allowed."""

import difflib
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from gateway.core.errors import ConfigError
from gateway.simulator.faults import FAULTS, Fault, kind_of
from gateway.simulator.script import LIVE_KEYS, REQUEST_KEYS, SCHEDULE_KEYS, Load, Reasoning, Script, Ttft, Window
from gateway.simulator.units import Number

# What each field takes, worked out once: a request's `sim` is read on the request path.
_HINTS: Mapping[type[Any], Mapping[str, Any]] = MappingProxyType(
    {
        kind: get_type_hints(kind, include_extras=True)
        for kind in (Script, Ttft, Load, Reasoning, Window, *FAULTS.values())
    }
)


def read_script(given: object, path: str = "") -> Script:
    """A whole script. Raises ConfigError with every mistake in it."""
    reader = _Reader()
    script = reader.made(Script, given, path)
    reader.finish()
    assert isinstance(script, Script)
    return script


def read_changes(given: object, allowed: frozenset[str] = REQUEST_KEYS, path: str = "sim") -> dict[str, Any]:
    """Part of a script, as values for `dataclasses.replace`. Raises ConfigError with every mistake in it."""
    reader = _Reader()
    changes = reader.part(given, allowed, path)
    reader.finish()
    return changes


def read_live(given: object) -> dict[str, Any]:
    """What the control endpoint may change while the provider runs."""
    return read_changes(given, LIVE_KEYS, "")


def show(value: Any) -> Any:
    """The script as JSON that reads back to the same script."""
    if isinstance(value, Fault):
        return {"kind": kind_of(value)} | _shown_fields(value)
    if is_dataclass(value):
        return _shown_fields(value)
    if isinstance(value, Mapping):
        return {key: show(item) for key, item in value.items()}
    return [show(item) for item in value] if isinstance(value, tuple) else value


def _shown_fields(value: Any) -> dict[str, Any]:
    shown = {_key(entry.name): getattr(value, entry.name) for entry in fields(value)}
    return {key: show(item) for key, item in shown.items() if item is not None}


def _key(name: str) -> str:
    return name.rstrip("_")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


class _Reader:
    """Collects mistakes instead of stopping at the first. A value that could not be read is None."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    def finish(self) -> None:
        if self._problems:
            raise ConfigError(self._problems)

    def made(self, kind: type[Any], given: object, path: str) -> Any:
        """A dataclass from a mapping."""
        if not isinstance(given, Mapping):
            return self._bad(path, f"{given!r} is not a mapping with {_listed(_names(kind))}")
        before = len(self._problems)
        hints = _HINTS[kind]
        given = self._unaliased(given, path) if kind is Script else given
        self._refuse_unknown(given, _names(kind), path)
        values = {
            entry.name: self._value(hints[entry.name], given[_key(entry.name)], _join(path, _key(entry.name)))
            for entry in fields(kind)
            if _key(entry.name) in given
        }
        missing = [entry for entry in fields(kind) if _required(entry) and entry.name not in values]
        for entry in missing:
            self._bad(_join(path, _key(entry.name)), "is missing")
        if len(self._problems) > before:
            return None
        made = kind(**values)
        self._check_whole(made, path)
        return made

    def part(self, given: object, allowed: frozenset[str], path: str) -> dict[str, Any]:
        """Some keys of a script."""
        if not isinstance(given, Mapping):
            self._bad(path, f"{given!r} is not a mapping with {_listed(allowed)}")
            return {}
        given = self._unaliased(given, path)
        self._refuse_unknown(given, allowed, path)
        hints = _HINTS[Script]
        return {key: self._value(hints[key], given[key], _join(path, key)) for key in given if key in allowed}

    def _unaliased(self, given: Mapping[Any, Any], path: str) -> Mapping[Any, Any]:
        if "fault" not in given:
            return given
        if "faults" in given:
            self._bad(path, "has both fault and faults; give one")
        return {("faults" if key == "fault" else key): value for key, value in given.items()}

    def _refuse_unknown(self, given: Mapping[Any, Any], known: Iterable[str], path: str) -> None:
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(str(key), list(known), 1)
                hint = f"did you mean {near[0]}?" if near else f"known: {_listed(known)}"
                self._bad(_join(path, str(key)), f"is not known here; {hint}")

    def _check_whole(self, made: Any, path: str) -> None:
        if isinstance(made, Window) and made.every is not None and (made.for_ is None or made.for_ > made.every):
            self._bad(_join(path, "for"), "must be given and at most every, or the window never ends")
        if isinstance(made, Window) and made.every == 0:
            self._bad(_join(path, "every"), "must be above 0")
        if isinstance(made, Script) and not _plain_name(made.name):
            self._bad(_join(path, "name"), f"{made.name!r} may have letters, digits, dot, dash and underscore only")

    def _value(self, hint: Any, given: Any, path: str) -> Any:
        origin = get_origin(hint)
        if origin is Annotated:
            return self._number(hint, given, path)
        if origin in (Union, types.UnionType):
            return self._either(get_args(hint), given, path)
        if origin is Literal:
            allowed = get_args(hint)
            return given if given in allowed else self._bad(path, f"{given!r} is not one of {_listed(allowed)}")
        if origin is tuple:
            return self._many(get_args(hint)[0], given, path)
        if origin is not None:
            return self._mapping(get_args(hint)[1], given, path)
        if hint is Fault:
            return self._fault(given, path)
        return self.made(hint, given, path) if _is_composed(hint) else self._plain(hint, given, path)

    def _number(self, hint: Any, given: Any, path: str) -> Any:
        kind, rule = get_args(hint)
        assert isinstance(rule, Number)
        try:
            return rule.read(given, whole=kind is int)
        except ValueError as error:
            return self._bad(path, str(error))

    def _either(self, members: tuple[Any, ...], given: Any, path: str) -> Any:
        if given is None and type(None) in members:
            return None
        wanted = [member for member in members if member is not type(None)]
        composed = [member for member in wanted if is_dataclass(member)]
        chosen = composed if isinstance(given, Mapping) and composed else wanted
        return self._value(chosen[0], given, path)

    def _many(self, member: Any, given: Any, path: str) -> Any:
        # One fault or one model needs no list around it.
        single = member in (Fault, str) and isinstance(given, str | Mapping)
        if not single and not isinstance(given, list | tuple):
            return self._bad(path, f"{given!r} is not a list")
        items = [given] if single else given
        return tuple(self._value(member, item, path if single else f"{path}[{at}]") for at, item in enumerate(items))

    def _mapping(self, member: Any, given: Any, path: str) -> Any:
        if member is Any:
            return self.part(given, SCHEDULE_KEYS, path)
        if not isinstance(given, Mapping):
            return self._bad(path, f"{given!r} is not a mapping")
        return {str(name): self._header(str(name), value, path) for name, value in given.items()}

    def _header(self, name: str, value: object, path: str) -> object:
        text = str(value)
        if not (name.isascii() and text.isascii() and f"{name}{text}".isprintable()) or ":" in name or not name:
            return self._bad(_join(path, name), "is not a header: printable ASCII only, no line breaks")
        return text

    def _fault(self, given: Any, path: str) -> Any:
        given = {"kind": given} if isinstance(given, str) else given
        if not isinstance(given, Mapping) or "kind" not in given:
            return self._bad(
                path, f"{given!r} is not a fault: a kind, or a mapping with kind; kinds: {_listed(FAULTS)}"
            )
        kind = given["kind"]
        if kind not in FAULTS:
            near = difflib.get_close_matches(str(kind), FAULTS, 1)
            hint = f"did you mean {near[0]}?" if near else f"kinds: {_listed(FAULTS)}"
            return self._bad(_join(path, "kind"), f"{kind!r} is not a kind of fault; {hint}")
        return self.made(FAULTS[kind], {key: item for key, item in given.items() if key != "kind"}, path)

    def _plain(self, kind: type[Any], given: Any, path: str) -> Any:
        if isinstance(given, kind) and (kind is bool or not isinstance(given, bool)):
            return given
        says: Mapping[type[Any], str] = {bool: "true or false", str: "a text", int: "a whole number"}
        return self._bad(path, f"{given!r} is not {says[kind]}")

    def _bad(self, path: str, problem: str) -> Any:
        self._problems.append(f"{path}: {problem}" if path else problem)
        return None


def _is_composed(hint: Any) -> bool:
    return is_dataclass(hint)


def _names(kind: type[Any]) -> list[str]:
    return [_key(entry.name) for entry in fields(kind)]


def _required(entry: Any) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted(str(name) for name in names))


def _plain_name(name: str) -> bool:
    return bool(name) and all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name)
