"""Who counts as the last candidate: whoever has nobody left to be left for."""

from gateway.core.types import Timeouts
from tests.live import fast, live, run


def test_two_deployments_of_one_provider_are_not_left_for_each_other_when_late() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.05, idle_s=5)
        async with live(fast(ttft=0.3), timeouts=limits, twice=True) as gw:
            response = await gw.post()
            assert response.status_code == 200
            assert response.headers["x-gateway-attempts"] == "1"
            assert gw.sims[0].stats.requests == 1

    run(main())
