"""What pydantic found wrong, in our words: no value is repeated unless it is a plain word of the file."""

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gateway.config.document import Document
from gateway.config.expand import is_secret
from gateway.config.presets import Preset
from gateway.config.problems import Path, Problem, meant, nearest, shown
from gateway.config.schema import Config

_KINDS = {
    "string_type": "must be text (put it in quotes if it looks like a number)",
    "string_unicode": "must be text",
    "int_type": "must be a whole number",
    "int_parsing_size": "must be a whole number of sensible size",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping (key: value)",
    "mapping_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "tuple_type": "must be a list",
}
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def problems_of(error: ValidationError, document: Document, presets: Mapping[str, Preset]) -> Iterator[Problem]:
    """One problem for each finding."""
    for finding in error.errors(include_url=False):
        path = tuple(step for step in finding["loc"] if step != "[key]")
        yield Problem(path, _text(finding, path, presets), document.line(path))


def _text(finding: Any, path: Path, presets: Mapping[str, Preset]) -> str:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path)
    if kind == "missing":
        return _missing(path, presets)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _not_one_of(path, value)
    if kind in _KINDS:
        return f"{_KINDS[kind]}, not {_kind_of(value)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{words} {context[name]:g}"
    if kind == "finite_number":
        return "must be a finite number"
    return "is too long" if kind in ("too_long", "string_too_long") else "is not a valid value"


def _unknown(path: Path) -> str:
    section = section_at(path[:-1])
    allowed = list(section.model_fields) if section else []
    guess = nearest(path[-1], allowed)
    return "is not a setting; " + (f"did you mean '{guess}'? " if guess else "") + f"allowed: {', '.join(allowed)}"


def _missing(path: Path, presets: Mapping[str, Preset]) -> str:
    if path == ("version",):
        return "is required; write version: 1"
    if len(path) == 3 and path[0] == "providers" and path[2] == "base_url":
        return f"is required, since {shown(path[1])} is no preset; {meant(path[1], presets, 'presets')}"
    return "is required"


def _not_one_of(path: Path, value: object) -> str:
    allowed = [str(choice) for choice in _choices(_annotation_at(path))]
    guess = nearest(value, allowed) if not is_secret(path) else None
    wrong = shown(value) if not is_secret(path) else "this value"
    return (
        f"{wrong} is not allowed; " + (f"did you mean '{guess}'? " if guess else "") + f"one of: {', '.join(allowed)}"
    )


def _kind_of(value: object) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number with a fraction"),
        (str, "text"),
        (tuple, "a list"),
        (dict, "a mapping"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")


def section_at(path: Path) -> type[BaseModel] | None:
    """The section of the schema that `path` leads to."""
    annotation = _annotation_at(path)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _annotation_at(path: Path) -> Any:
    """The bare type at `path` in the schema; None where there is none."""
    annotation: Any = Config
    for step in path:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            hints = typing.get_type_hints(annotation, include_extras=True)
            annotation = _bare(hints.get(str(step)))
        elif get_origin(annotation) is tuple:
            annotation = _bare(get_args(annotation)[0])
        else:
            arguments = get_args(annotation)
            annotation = _bare(arguments[1]) if len(arguments) == 2 else None
    return annotation


def _bare(annotation: Any) -> Any:
    """Without Annotated and without `| None`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (types.UnionType, typing.Union):
        inner = [argument for argument in get_args(annotation) if argument is not type(None)]
        return _bare(inner[0]) if len(inner) == 1 else annotation
    return annotation


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is typing.Literal else ()
