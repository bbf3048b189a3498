"""Functions, methods, classes and imports that nothing uses. Tests do not count as a use.

Fields are left out: those of records and settings are read by name, from JSON and YAML.
"""

import sys

from vulture import Vulture

from tools.sources import ROOT, report

PATHS = ("gateway", "tools", "benchmarks")
KINDS = {"function", "method", "property", "class", "import", "unreachable_code"}

# Called by a library, under the library's names.
CALLED_BY = {
    "asyncio": (
        *("connection_made", "connection_lost", "data_received", "eof_received"),
        *("pause_writing", "resume_writing", "buffer_updated", "get_buffer"),
    ),
    "httptools": (
        *("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
        *("on_status", "on_chunk_header", "on_chunk_complete"),
    ),
    "uvicorn": ("capture_signals",),
}
# Parts of a public class that only its users and tests call; each says why it stays.
KEPT: dict[str, str] = {
    "render": "the whole exposition at once, for those who have no event loop",
    "disable": "the administrator's switch of the health book; no path leads to it yet",
    "enable": "its other half",
    "predicted_ttft_s": "what a deadline and a strategy by first token will ask the speed book",
}
PYDANTIC = ["@field_validator*", "@model_validator*", "@field_serializer*"]


def problems() -> list[str]:
    """What is dead."""
    names = [name for called in CALLED_BY.values() for name in called]
    vulture = Vulture(ignore_names=[*names, *KEPT], ignore_decorators=PYDANTIC)
    vulture.scavenge([str(ROOT / path) for path in PATHS if (ROOT / path).is_dir()])
    return [
        f"{item.filename.relative_to(ROOT)}:{item.first_lineno}: {item.message}"
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ in KINDS
    ]


if __name__ == "__main__":
    sys.exit(report("dead code", problems()))
