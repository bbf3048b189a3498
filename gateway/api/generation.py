"""GET /v1/generation?id=: the record of one request, for the key that made it or an admin."""

from gateway.api.asgi import Request, respond_json
from gateway.api.services import Services
from gateway.core.errors import RequestError
from gateway.core.types import Caller


async def generation(services: Services, request: Request, caller: Caller) -> None:
    """The record. To anyone else's key it does not exist: 404, as for an id that never was."""
    generation_id = request.query("id")
    if not generation_id:
        raise RequestError(400, "id is missing; GET /v1/generation?id=ID", code="invalid_value", param="id")
    record = await services.records.find(generation_id)
    if record is None or not (caller.admin or record.get("key") == caller.name):
        raise RequestError(404, "there is no such generation", code="generation_not_found", param="id")
    await respond_json(request, 200, record)
