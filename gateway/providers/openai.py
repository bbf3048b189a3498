"""The OpenAI dialect: chat completions and legacy completions, as spoken by OpenAI and by everyone else."""

from gateway.providers.openai_errors import error_of_status
from gateway.providers.openai_events import read_body, read_event
from gateway.providers.openai_request import build_request
from gateway.providers.openai_stream import reader


class OpenAIDialect:
    """The port `Dialect`. Holds nothing: its methods are the functions themselves, without a call in between."""

    name: str = "openai"
    framing: str = "sse"
    request = staticmethod(build_request)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
    reader = staticmethod(reader)
