"""GET /healthz, /readyz, /health, /metrics."""

from gateway.api.asgi import Request, respond_in_pieces, respond_json
from gateway.api.services import Services


async def healthz(services: Services, request: Request) -> None:
    """The process answers."""
    await respond_json(request, 200, {"status": "ok"})


async def readyz(services: Services, request: Request) -> None:
    """New requests are wanted. While draining: 503."""
    ready = services.readiness.ready
    await respond_json(request, 200 if ready else 503, {"status": "ready" if ready else "draining"})


async def metrics(services: Services, request: Request) -> None:
    """Prometheus text."""
    pieces = await services.scrape()
    await respond_in_pieces(request, 200, pieces, [(b"content-type", services.metrics_type.encode())])
