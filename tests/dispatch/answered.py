"""What a client got, read back: events and text of a stream; and limits that do not keep a test waiting."""

import json
from typing import Any

from gateway.core.types import Timeouts

QUICK = Timeouts(connect_s=2, ttft_s=0.25, idle_s=0.4)


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def text_of(text: str) -> str:
    return "".join(
        choice["delta"].get("content") or "" for event in events_of(text) for choice in event.get("choices", [])
    )
