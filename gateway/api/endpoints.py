"""GET /v1/models/{id}/endpoints: who serves a model, at what price and how fast, in OpenRouter's shape."""

from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from typing import Any

import orjson

from gateway.api.asgi import JSON_HEADERS, Request, respond
from gateway.api.reports import Reports
from gateway.api.services import Services
from gateway.core.speed import Quantiles
from gateway.core.types import Caller, Deployment, Health, Target

# The request parameters that stand behind a declared feature.
_PARAMETERS = {
    "tools": ("tools", "tool_choice"),
    "reasoning": ("reasoning", "reasoning_effort"),
    "json_schema": ("response_format", "structured_outputs"),
}
_HALF_HOUR_S, _FIVE_MINUTES_S, _DAY_S = 1800.0, 300.0, 86_400.0
# States in which requests are sent there as a rule.
_IN_SERVICE = frozenset({"ok", "unmeasured", "sagging"})


async def endpoints(services: Services, request: Request, caller: Caller, name: str) -> None:
    """The deployments of a model or route, in the order of the configuration. Raises RequestError 404, 403."""
    target = services.names.look_up(name, caller)
    reports = services.reports
    body = await reports.answers.get(("endpoints", name), lambda: _answer(reports, target, name))
    await respond(request, 200, body, JSON_HEADERS)


async def _answer(reports: Reports, target: Target, name: str) -> bytes:
    wanted = (((entry.id, "endpoint"), partial(_endpoint, reports, entry)) for entry in target.deployments)
    entries = [orjson.Fragment(piece.text) for piece in await reports.pieces.collect(wanted)]
    return orjson.dumps({"data": {**_model(target, name), "endpoints": entries}})


def _model(target: Target, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": target.name,
        # A configured name has no birthday, and nobody told us what is inside the model.
        "created": None,
        "description": target.description,
        "architecture": {
            "modality": None,
            "input_modalities": _inputs(target.deployments),
            "output_modalities": None,
            "tokenizer": None,
            "instruct_type": None,
        },
    }


def _inputs(deployments: Iterable[Deployment]) -> list[str] | None:
    """What all of them are declared to take; None where one of them declares nothing."""
    declared = [deployment.features for deployment in deployments]
    if not declared or any(features is None for features in declared):
        return None
    return ["text", "image"] if all("vision" in (features or ()) for features in declared) else ["text"]


def _endpoint(reports: Reports, deployment: Deployment, now: float) -> dict[str, Any]:
    half_hour = reports.speeds.window(deployment.id, _HALF_HOUR_S, now)
    health = reports.health.health(deployment, now)
    provider = deployment.provider.name
    return {
        "name": f"{provider} | {deployment.model}",
        "model_id": deployment.model,
        "model_name": deployment.model,
        "context_length": deployment.context,
        "pricing": _pricing(deployment),
        "provider_name": provider,
        "tag": deployment.id,
        "quantization": None,
        "max_completion_tokens": deployment.max_output,
        "max_prompt_tokens": None,
        "supported_parameters": _parameters(deployment),
        "supports_implicit_caching": None,
        "status": _status(health),
        "state": health.state,
        "uptime_last_30m": _percent(half_hour.uptime),
        "uptime_last_5m": _percent(reports.speeds.window(deployment.id, _FIVE_MINUTES_S, now).uptime),
        "uptime_last_1d": _percent(reports.speeds.window(deployment.id, _DAY_S, now).uptime),
        "latency_last_30m": latency(half_hour.ttft_ms),
        "throughput_last_30m": throughput(half_hour.output_tps),
    }


def latency(ttft_ms: Quantiles) -> dict[str, float | None] | None:
    """`pN`: N % of requests had their first token within so many milliseconds.

    OpenRouter's reference says of this field: "Latency percentiles in milliseconds over the last 30 minutes. Latency
    measures time to first token." (Only its `preferred_max_latency` of a request is in seconds.)
    """
    if not ttft_ms.count:
        return None
    return _rounded(p50=ttft_ms.p50, p75=ttft_ms.p75, p90=ttft_ms.p90, p99=ttft_ms.p99)


def throughput(output_tps: Quantiles) -> dict[str, float | None] | None:
    """`pN`: N % of requests had at least so many tokens a second, so that p90 is below p50: the lower tail."""
    if not output_tps.count:
        return None
    return _rounded(p50=output_tps.p50, p75=output_tps.p25, p90=output_tps.p10, p99=output_tps.p1)


def _rounded(**values: float | None) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 1) for name, value in values.items()}


def _status(health: Health) -> int | None:
    """OpenRouter's 0 is an endpoint in service. What its other numbers mean is not published, so none is given."""
    return 0 if health.state in _IN_SERVICE else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 2)


def _pricing(deployment: Deployment) -> dict[str, str | None]:
    price = deployment.price
    return {
        "prompt": usd_per_token(price.input if price else None),
        "completion": usd_per_token(price.output if price else None),
        "input_cache_read": usd_per_token(price.cached_input if price else None),
    }


def usd_per_token(per_million: float | None) -> str | None:
    """Dollars per token as a plain decimal, without an exponent or a float's noise."""
    if per_million is None:
        return None
    exact = (Decimal(repr(per_million)) / 1_000_000).normalize()
    return f"{exact:f}"


def _parameters(deployment: Deployment) -> list[str] | None:
    """Those that the declared features stand for; None where none are declared."""
    if deployment.features is None:
        return None
    refused = deployment.provider.quirks.refuses
    known = [name for feature, names in _PARAMETERS.items() if feature in deployment.features for name in names]
    return [name for name in known if name not in refused]
