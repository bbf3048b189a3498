"""The table of strategies: one file each, one line each."""

from types import MappingProxyType

from gateway.routing.strategies.contract import Strategy
from gateway.routing.strategies.order import order
from gateway.routing.strategies.weighted import weighted

STRATEGIES: MappingProxyType[str, Strategy] = MappingProxyType(
    {
        "order": order,
        "weighted": weighted,
    }
)
