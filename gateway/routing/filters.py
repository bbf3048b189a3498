"""The filters of a plan: what a call needs against what a deployment has, and the deployment's state of health."""

from collections.abc import Iterable

from gateway.core.ports import HealthBook
from gateway.core.types import Deployment, Dropped, Health, Needs

# The words of `deployment.features`, each also a field of Needs and the reason of the drop.
FEATURES = ("tools", "vision", "json_schema", "reasoning")

# `probing` with this reason: the one trial a half-open deployment gets is under way.
TRIAL_IN_FLIGHT = "trial_in_flight"

_FIT = frozenset({"ok", "unmeasured"})
_NOTHING: frozenset[str] = frozenset()


class Sifted:
    """One target's deployments by what the filters say. Not a dataclass: one is made per plan, in half the time.

    `behind`: sagging. `due`: the ids among `able` that wait for their half-open trial. `resting`: cooling.
    """

    __slots__ = ("able", "behind", "due", "resting")

    def __init__(self) -> None:
        self.able: list[Deployment] = []
        self.behind: list[Deployment] = []
        self.due: list[str] = []
        self.resting: list[tuple[Deployment, Health]] = []


def required(needs: Needs) -> frozenset[str]:
    """The features a call needs; most calls need none."""
    if not (needs.tools or needs.vision or needs.json_schema or needs.reasoning):
        return _NOTHING
    return frozenset([name for name in FEATURES if getattr(needs, name)])


def lacking(deployment: Deployment, needs: Needs, features: frozenset[str]) -> str | None:
    """Why it cannot serve such a call: `context`, `max_output`, the name of a feature; None where it can."""
    answer = needs.max_tokens or 0
    if deployment.context is not None and needs.prompt_tokens + answer > deployment.context:
        return "context"
    if deployment.max_output is not None and answer > deployment.max_output:
        return "max_output"
    if features and deployment.features is not None and not features <= deployment.features:
        return next(name for name in FEATURES if name in features and name not in deployment.features)
    return None


def _limited(deployment: Deployment, features: frozenset[str]) -> bool:
    """Whether there is anything to hold against the deployment: mostly not, and plans are many."""
    return bool(features or deployment.context or deployment.max_output)


def sift(
    deployments: Iterable[Deployment], needs: Needs, book: HealthBook, now: float, dropped: list[Dropped]
) -> Sifted:
    """Sorts deployments by their health; those that policy or capability takes out are appended to `dropped`."""
    sifted = Sifted()
    able, features, health_of = sifted.able, required(needs), book.health
    for deployment in deployments:
        health = health_of(deployment, now)
        state = health.state
        if state == "disabled":
            dropped.append(Dropped(deployment, "disabled"))
        elif _limited(deployment, features) and (reason := lacking(deployment, needs, features)) is not None:
            dropped.append(Dropped(deployment, reason))
        elif state in _FIT:
            able.append(deployment)
        elif state == "sagging":
            sifted.behind.append(deployment)
        elif state == "probing" and health.reason != TRIAL_IN_FLIGHT:
            sifted.due.append(deployment.id)
            able.append(deployment)
        else:
            sifted.resting.append((deployment, health))
    return sifted
