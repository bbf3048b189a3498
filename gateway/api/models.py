"""GET /v1/models and /v1/models/{id}: models and routes a key may use, in OpenAI's list."""

from typing import Any

from gateway.api.asgi import Request, respond_json
from gateway.api.names import may_use
from gateway.api.services import Services
from gateway.core.types import Caller, Target

# OpenAI's `created` is a number; a configured name has no birthday.
_CREATED = 0


async def list_models(services: Services, request: Request, caller: Caller) -> None:
    """Every name the caller may ask for."""
    targets = [services.names.described(name) for name in services.names.public]
    data = [_shown(target, target.name) for target in targets if may_use(caller, target)]
    await respond_json(request, 200, {"object": "list", "data": data})


async def one_model(services: Services, request: Request, caller: Caller, name: str) -> None:
    """One name. Raises RequestError 404 where there is none."""
    await respond_json(request, 200, _shown(services.names.look_up(name, caller), name))


def _shown(target: Target, name: str) -> dict[str, Any]:
    windows = [deployment.context for deployment in target.deployments if deployment.context is not None]
    shown: dict[str, Any] = {
        "id": name,
        "object": "model",
        "created": _CREATED,
        "owned_by": "route" if target.route else "model",
        "deployments": [deployment.id for deployment in target.deployments],
    }
    if target.description:
        shown["description"] = target.description
    if windows:
        shown["context_length"] = max(windows)
    return shown
