"""What the surfaces know of deployments: the books behind /v1/speed and the list of endpoints, and their pieces."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.api.pieces import Answers, Pieces
from gateway.core.ports import HealthBook, SpeedReports


@dataclass(frozen=True, slots=True)
class Reports:
    """The books. `in_flight` gives the attempts under way at a deployment; None where they are not counted by it."""

    speeds: SpeedReports
    health: HealthBook
    in_flight: Callable[[str], int | None]
    pieces: Pieces
    answers: Answers
