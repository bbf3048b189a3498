"""What a JSON value is, whatever a vendor put there: texts, counts, objects. Nothing here raises."""

import json
from typing import Any

import orjson

from gateway.core.types import Json

_LARGEST = 1e12
_NOTHING: Json = {}


def load(payload: bytes) -> Any:
    """As orjson, and also what Python servers write and JSON forbids: NaN, half a surrogate pair.

    Raises ValueError (also RecursionError, for a nesting that is an attack).
    """
    try:
        return orjson.loads(payload)
    except ValueError:
        return json.loads(payload.decode("utf-8"))


def load_object(payload: bytes) -> Json | None:
    """The JSON object, None for anything else."""
    try:
        value = load(payload)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def object_at(value: Any, name: str) -> Json:
    """The object under this name, an empty one where there is none."""
    found = value.get(name) if type(value) is dict else None
    return found if type(found) is dict else _NOTHING


def objects_at(value: Any, name: str) -> list[Json]:
    """The objects of the list under this name."""
    found = value.get(name) if type(value) is dict else None
    return [item for item in found if type(item) is dict] if type(found) is list else []


def text_at(value: Json, name: str, *others: str) -> str | None:
    """The first text that is not empty; half a surrogate pair is replaced, since it cannot be encoded again."""
    found = value.get(name)
    if type(found) is str and found:
        return found if found.isascii() else encodable(found)
    return text_at(value, *others) if others else None


def encodable(text: str) -> str:
    """The text with half surrogate pairs replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def length_at(value: Json, name: str) -> int:
    """Code points of the text under this name."""
    found = value.get(name)
    return len(found) if type(found) is str else 0


def count_at(value: Json, name: str, *others: str) -> int | None:
    """The first whole number, also one written as a float; never a negative one or a boolean."""
    found = value.get(name)
    if (type(found) is int or type(found) is float) and 0 <= found < _LARGEST:
        return int(found)
    return count_at(value, *others) if others else None


def compact_length(value: Any) -> int:
    """Characters of a JSON value that came as an object where others send its text."""
    try:
        return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (RecursionError, ValueError):
        return 0


def is_whole_object(text: Any) -> bool:
    """A JSON object complete in this one piece: arguments that came whole."""
    if type(text) is not str or text[:1] != "{" or text[-1:] != "}":
        return False
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True


def added(*counts: int | None) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
