"""Usage that comes in parts: the prompt at the start, the output at the end."""

from gateway.core.reading import Usage
from gateway.core.record import Tokens


def merged(earlier: Usage, later: Usage) -> Usage:
    """What the later one says, and of the earlier one what the later one leaves open. Never a sum.

    Where the later one counts both prompt and output it stands alone: its silence on details is an answer.
    """
    if later.input is not None and later.output is not None and later.cached is not None:
        return later
    return Usage(
        input=earlier.input if later.input is None else later.input,
        cached=earlier.cached if later.cached is None else later.cached,
        cache_write=earlier.cache_write if later.cache_write is None else later.cache_write,
        output=earlier.output if later.output is None else later.output,
        reasoning=earlier.reasoning if later.reasoning is None else later.reasoning,
        predicted=earlier.predicted if later.predicted is None else later.predicted,
    )


def counted(
    usage: Usage | None, split: tuple[int | None, int | None], chars: int, chars_per_token: float, prompt: int | None
) -> Tokens:
    """The record's counts. `split`: output and reasoning as far as they are final; `chars`, `chars_per_token` and the
    estimate of the `prompt` stand in for what the provider did not say."""
    output, reasoning = split
    source: str | None = "usage"
    if output is None and chars:
        output, reasoning, source = max(1, round(chars / chars_per_token)), None, "estimate"
    if usage is not None:
        return Tokens(usage.input, usage.cached, usage.cache_write, output, reasoning, source)
    return Tokens(prompt, output=output, source=source) if chars else Tokens()
