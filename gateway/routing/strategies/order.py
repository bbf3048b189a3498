"""The strategy `order`: as listed in the configuration."""

import random
from collections.abc import Sequence

from gateway.core.types import Call, Deployment


def order(group: Sequence[Deployment], call: Call, rng: random.Random) -> Sequence[Deployment]:
    """The deployments as they are listed."""
    return group
