"""The strategy `weighted`: at random, in proportion to the deployments' weights."""

import random
from collections.abc import Sequence
from math import inf, log

from gateway.core.types import Call, Deployment


def weighted(group: Sequence[Deployment], call: Call, rng: random.Random) -> Sequence[Deployment]:
    """Draws without replacement; a weight of 0 comes after all others, as listed.

    Each deployment draws an exponential arrival time with its weight as the rate. The order of arrival is the order
    of drawing without replacement (Efraimidis and Spirakis, 2006).
    """
    draw = rng.random
    arrivals = [-log(1.0 - draw()) / entry.weight if entry.weight > 0.0 else inf for entry in group]
    return [group[index] for index in sorted(range(len(group)), key=arrivals.__getitem__)]
