"""Small configurations for tests."""

from collections.abc import Mapping
from pathlib import Path

from gateway.config.load import Inspection, inspect_text

ENVIRON = {"GROQ_API_KEY": "gsk_environment_key_0123456789"}

GOOD = """\
version: 1
providers:
  groq: {}
models:
  kimi-k3:
    deployments:
      - {provider: groq}
"""


def inspected(text: str, environ: Mapping[str, str] = ENVIRON) -> Inspection:
    """What is said of `text`, called c.yaml."""
    return inspect_text(text, environ, "c.yaml", Path("."))


def problems(text: str, environ: Mapping[str, str] = ENVIRON) -> list[str]:
    """The problems of `text`, called c.yaml."""
    return list(inspected(text, environ).problems)


def with_server(settings: str) -> str:
    """A good configuration with one more section line on line 8."""
    return f"{GOOD}server: {settings}\n"
