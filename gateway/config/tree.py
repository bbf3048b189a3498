"""Reads of a configuration's raw values that survive wrong types: what is no mapping has no entries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.config.document import Document
from gateway.config.problems import Path


@dataclass(frozen=True, slots=True)
class DeploymentNode:
    """One deployment as the file gives it; names are None where they are no text."""

    path: Path
    values: dict[str, Any]
    model: str

    @property
    def provider(self) -> str | None:
        return text_or_none(self.values.get("provider"))

    @property
    def upstream_model(self) -> str:
        return text_or_none(self.values.get("model")) or self.model

    @property
    def id(self) -> str | None:
        """The given id, else provider/model."""
        return text_or_none(self.values.get("id")) or (
            f"{self.provider}/{self.upstream_model}" if self.provider else None
        )


def mapping(value: object) -> dict[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> tuple[Any, ...]:
    """`value` where it is a list, else an empty one."""
    return value if isinstance(value, tuple) else ()


def text_or_none(value: object) -> str | None:
    """`value` where it is text."""
    return value if isinstance(value, str) else None


def section(document: Document, name: str) -> dict[str, Any]:
    """One top-level section."""
    return mapping(document.values.get(name))


def texts(value: object) -> Iterator[tuple[int, str]]:
    """The texts in a list with their positions."""
    for index, item in enumerate(sequence(value)):
        if isinstance(item, str):
            yield index, item


def deployments(document: Document) -> Iterator[DeploymentNode]:
    """Every deployment of every model, in order."""
    for model, settings in section(document, "models").items():
        for index, values in enumerate(sequence(mapping(settings).get("deployments"))):
            if isinstance(values, dict):
                yield DeploymentNode(("models", model, "deployments", index), values, model)


def open_providers(document: Document) -> set[str]:
    """Providers that take any model."""
    entries = section(document, "providers").items()
    return {name for name, values in entries if mapping(values).get("any_model") in (True, "true")}
