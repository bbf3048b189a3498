"""Settings of the public interface that this version validates but does not act on.

A limit that does not bind or a promise nobody keeps is worse than an error, so each is refused where it is given.
To make a setting work, delete its line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.config.document import Document
from gateway.config.expand import matches
from gateway.config.problems import Path, Problem


@dataclass(frozen=True, slots=True)
class Unsupported:
    """`values` None: any value is refused, apart from those in `acted_on`."""

    path: str
    values: tuple[object, ...] | None = None
    acted_on: tuple[object, ...] = ()

    def refuses(self, value: object) -> bool:
        """Whether this version would ignore `value`. null is not given."""
        if value is None or value in self.acted_on:
            return False
        return self.values is None or value in self.values

    @property
    def pattern(self) -> Path:
        """`auth.keys.*.rpm` as steps."""
        return tuple(self.path.split("."))

    @property
    def says(self) -> str:
        """The refusal. Only values of our own tables are named."""
        if self.acted_on:
            allowed = ", ".join(str(value).lower() for value in self.acted_on)
            return f"is not enforced by this version; remove it (allowed now: {allowed})"
        return "is not enforced by this version; remove it"


_ORDERS = ("order", "weighted")
_STRATEGIES = ("cheapest", "fastest", "lowest_ttft", "balanced")
_DIALECTS = ("anthropic", "gemini", "bedrock", "azure")

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported("auth.keys.*.rpm"),
    Unsupported("auth.keys.*.tpm"),
    Unsupported("auth.keys.*.max_parallel"),
    Unsupported("auth.keys.*.budget"),
    Unsupported("state", acted_on=("memory",)),
    Unsupported("providers.*.dialect", values=_DIALECTS, acted_on=("openai",)),
    Unsupported("providers.*.rpm"),
    Unsupported("providers.*.tpm"),
    Unsupported("tiers"),
    Unsupported("models.*.deployments.*.tier"),
    Unsupported("models.*.deployments.*.premium_of"),
    Unsupported("routes.*.tier"),
    Unsupported("routes.*.strategy", values=_STRATEGIES, acted_on=_ORDERS),
    Unsupported("routes.*.guard"),
    Unsupported("routes.*.hedge"),
    Unsupported("routes.*.max_price"),
    Unsupported("defaults.tier"),
    Unsupported("defaults.strategy", values=_STRATEGIES, acted_on=_ORDERS),
    Unsupported("defaults.guard"),
    Unsupported("defaults.hedge"),
    Unsupported("defaults.max_price"),
    Unsupported("defaults.window"),
    Unsupported("defaults.min_samples"),
    Unsupported("defaults.explore"),
    Unsupported("defaults.probes"),
    Unsupported("telemetry.compat"),
    Unsupported("telemetry.otlp_endpoint"),
    Unsupported("telemetry.capture_content", values=(True, "true"), acted_on=(False,)),
)


def refusals(document: Document) -> Iterator[Problem]:
    """A problem for every setting in the file that this version would ignore."""
    for path, value in _walk(document.values, ()):
        for row in UNSUPPORTED:
            if matches(path, row.pattern) and row.refuses(value):
                yield Problem(path, row.says, document.line(path))


_DEEPEST = max(len(row.pattern) for row in UNSUPPORTED)


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, object]]:
    """Every value with its path, as deep as the table goes."""
    if path:
        yield path, value
    if len(path) >= _DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index))
