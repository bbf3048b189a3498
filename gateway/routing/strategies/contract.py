"""What a strategy is: it puts deployments in an order and leaves none out."""

import random
from collections.abc import Sequence
from typing import Protocol

from gateway.core.types import Call, Deployment


class Strategy(Protocol):
    """Orders a group of deployments: returns each exactly once, and leaves the group itself as it is."""

    def __call__(self, group: Sequence[Deployment], call: Call, rng: random.Random) -> Sequence[Deployment]: ...
