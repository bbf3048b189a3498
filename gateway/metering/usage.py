"""Usage that comes in parts: the prompt at the start, the output at the end."""

from gateway.core.reading import Usage


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
