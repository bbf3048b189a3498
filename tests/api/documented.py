"""The documented shapes of answers, and how an answer is held against one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures" / "interface"


def documented(name: str) -> Any:
    """The example of the interface."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def differences(shown: Any, example: Any, path: str = "") -> Iterator[str]:
    """Documented fields that are missing or of another type. null is of every type; a list is judged by its first."""
    if shown is None or example is None:
        return
    if type(shown) is not type(example) and not {type(shown), type(example)} <= {int, float}:
        yield f"{path} is {type(shown).__name__}, documented as {type(example).__name__}"
    elif isinstance(example, dict):
        for key, value in example.items():
            if key in shown:
                yield from differences(shown[key], value, f"{path}.{key}")
            else:
                yield f"{path}.{key} is missing"
    elif isinstance(example, list) and example and shown:
        yield from differences(shown[0], example[0], f"{path}[0]")


def further(shown: Any, example: Any, path: str = "") -> set[str]:
    """Fields that are not documented there."""
    if isinstance(shown, dict) and isinstance(example, dict):
        known = [further(value, example[key], f"{path}.{key}") for key, value in shown.items() if key in example]
        return {f"{path}.{key}" for key in shown if key not in example}.union(*known)
    if isinstance(shown, list) and isinstance(example, list) and shown and example:
        return further(shown[0], example[0], f"{path}[]")
    return set()
