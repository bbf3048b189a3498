"""Speed tiers as vendors name them, in classes: whether less was served than was asked for."""

from collections.abc import Mapping
from types import MappingProxyType

STANDARD = 1

# Two names of one class are one promise: OpenAI answers `priority` to a request for `fast`.
_CLASSES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("ultrafast",), 3),
        **dict.fromkeys(("fast", "priority", "performance", "optimized"), 2),
        **dict.fromkeys(("default", "standard", "standard_only", "on_demand"), STANDARD),
        **dict.fromkeys(("flex", "batch"), 0),
    }
)


def downgraded(asked: str | None, served: str | None) -> bool:
    """The served class lies below the one asked for. Words we do not know, and `auto`, promise nothing."""
    if asked is None or served is None:
        return False
    asked_class, served_class = tier_class(asked), tier_class(served)
    return asked_class is not None and served_class is not None and served_class < asked_class


def tier_class(name: str | None) -> int | None:
    """3 ultrafast, 2 fast, 1 standard, 0 slower and cheaper; None for a word we do not know."""
    return None if name is None else _CLASSES.get(name.lower())
