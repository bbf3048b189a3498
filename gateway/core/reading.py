"""What a dialect reads from one event of a stream: the neutral form the meter and the dispatch path understand."""

from dataclasses import dataclass


@dataclass(slots=True)
class Usage:
    """Token counts as the provider's final usage states them, already normalised: `output` includes reasoning.

    `reasoning` None: not known (also for a 0 beside streamed reasoning, which the meter decides).
    `predicted`: tokens of a predicted output, accepted or rejected: they make the rate of the sample meaningless.
    A later usage of the same stream replaces the fields it has and leaves those it does not have (Anthropic tells the
    prompt at the start and the output at the end).
    """

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    predicted: int | None = None


@dataclass(slots=True)
class WireError:
    """An error found inside a 200 stream or in an error body. `code` is a key of FAILURES."""

    code: str
    message: str | None = None
    param: str | None = None
    wire_code: str | int | None = None


@dataclass(slots=True)
class Reading:
    """One event. Characters are code points; a reading with all three at 0 bears no token.

    Not frozen: one is made per event on the hot path and dies with it; a frozen one costs three times as much.
    `reasoning` is below 0 where characters of an earlier event turn out to be answer after all: only sums count.
    `unknown_delta`: a non-empty delta of a kind we do not know: commits, without a TTFT stamp.
    `repeat`: characters of a whole message repeated at the end; they count only if nothing was streamed before.
    `usage_only`: a pure usage chunk (`choices: []`), to be cut out where the client did not ask for usage.
    `terminal`: the dialect's end marker (`[DONE]`). `bad`: the frame could not be decoded.
    `tool_calls_whole`: complete tool calls delivered in this one event.
    `summarised`: the reasoning is said to be a summary: what is billed is not what is streamed.
    `restart`: a generation begins (`message_start`, `response.created`); a second one in a stream is a splice.
    `serving_model`: another model took over in mid-stream and serves from here on.
    `ping`: a sign of life that is an event of its own; it bears nothing.
    `plain`: nothing but characters, model, tier and response id is set; nothing else need be looked at.
    """

    content: int = 0
    reasoning: int = 0
    tool: int = 0
    unknown_delta: bool = False
    repeat: int = 0
    usage: Usage | None = None
    usage_only: bool = False
    finish: str | None = None
    error: WireError | None = None
    terminal: bool = False
    bad: bool = False
    choices: int = 1
    tool_calls_whole: int = 0
    summarised: bool = False
    model: str | None = None
    tier: str | None = None
    response_id: str | None = None
    server_clock: dict[str, float] | None = None
    restart: bool = False
    serving_model: str | None = None
    ping: bool = False
    plain: bool = False
