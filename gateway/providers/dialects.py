"""The table of dialects. A new wire format is one file and one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.core.ports import Dialect
from gateway.providers.openai import OpenAIDialect

DIALECTS: Mapping[str, Dialect] = MappingProxyType({"openai": OpenAIDialect()})
