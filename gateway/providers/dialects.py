"""The tables of dialects. A new wire format is one file and one line here.

READERS has every wire format that can be read; DIALECTS those that requests can be sent in as well.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.core.ports import Dialect, WireReader
from gateway.providers.anthropic import AnthropicReader
from gateway.providers.bedrock import BedrockReader
from gateway.providers.cohere import CohereReader
from gateway.providers.gemini import GeminiReader
from gateway.providers.ollama import OllamaReader
from gateway.providers.openai import OpenAIDialect
from gateway.providers.responses import ResponsesReader

_OPENAI = OpenAIDialect()

DIALECTS: Mapping[str, Dialect] = MappingProxyType({"openai": _OPENAI})

READERS: Mapping[str, WireReader] = MappingProxyType(
    {
        "openai": _OPENAI,
        "responses": ResponsesReader(),
        "anthropic": AnthropicReader(),
        "gemini": GeminiReader(),
        "bedrock": BedrockReader(),
        "cohere": CohereReader(),
        "ollama": OllamaReader(),
    }
)
