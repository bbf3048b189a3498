"""Whose speed a sample is: a provider may serve another model or a lower speed tier than it was asked for."""

from collections.abc import Iterable

from gateway.core.record import GenerationRecord
from gateway.core.types import Deployment, asked_tier
from gateway.metering.tiers import STANDARD, tier_class

DOWNGRADED = "downgraded"
OTHER_MODEL = "other_model"


class ServedUnder:
    """Finds the deployment under which a record's speed is booked."""

    def __init__(self, deployments: Iterable[Deployment]) -> None:
        self._by_model: dict[tuple[str, str], list[Deployment]] = {}
        for deployment in deployments:
            key = (deployment.provider.name, deployment.upstream_model)
            self._by_model.setdefault(key, []).append(deployment)

    def __call__(self, record: GenerationRecord) -> str | None:
        """The deployment asked for, where it was served; else the one that stands for what was; None: there is none."""
        marks = record.speed.marks
        if DOWNGRADED not in marks and OTHER_MODEL not in marks:
            return record.deployment
        model = record.served_model if OTHER_MODEL in marks else record.upstream_model
        served = _class(record.served_tier)
        for deployment in self._by_model.get((record.provider or "", model or ""), ()):
            if deployment.id != record.deployment and _class(asked_tier(deployment.body)) == served:
                return deployment.id
        return None


def _class(tier: str | None) -> int:
    """No tier, or one we do not know, is the standard one."""
    known = tier_class(tier)
    return STANDARD if known is None else known
