"""Streams that end badly or are framed oddly: whatever the gateway adds stands apart from what was there."""

import json

import pytest

from tests.live import run
from tests.wire.playing import Seen, play
from tests.wire.replaying import Reel

TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
# Longer than what is held back of an event that is not complete.
LONG = b"y" * 70_000

# The pieces of a stream, and what the client gets of them.
WELL_ENDED = {
    "DONE without a blank line": ((TOKEN, FINISH + b"data: [DONE]"), TOKEN + FINISH + DONE),
    "a comment without its end": ((TOKEN, FINISH + b": bye"), TOKEN + FINISH + b": bye\n\n" + DONE),
    "a field without its end": ((TOKEN, FINISH + b"id: 7"), TOKEN + FINISH + b"id: 7\n\n" + DONE),
    "a usage chunk too long to be held": (
        (TOKEN, b'data: {"choices":[],"usage":{"prompt_tokens":1},"x":"' + LONG, b'"}\n\n', FINISH + DONE),
        TOKEN + b'data: {"choices":[],"usage":{"prompt_tokens":1},"x":"' + LONG + b'"}\n\n' + FINISH + DONE,
    ),
    "CR LF cut in two at the very end": (
        (TOKEN, b"data: [DONE]\r\n\r", b"\n"),
        TOKEN + b"data: [DONE]\r\n\r\n",
    ),
    "CR alone": ((TOKEN, FINISH + b"data: [DONE]\r", b"\r"), TOKEN + FINISH + b"data: [DONE]\r\r"),
    "something after DONE": ((TOKEN, FINISH + DONE + b": bye\n\n"), TOKEN + FINISH + DONE),
    "a comment that is no UTF-8": ((TOKEN, b": \xff\n\n" + DONE), TOKEN + b": \xef\xbf\xbd\n\n" + DONE),
    "a field that is no UTF-8": ((TOKEN, b"id: \xff\n" + FINISH + DONE), TOKEN + b"id: \xef\xbf\xbd\n" + FINISH + DONE),
    "a frame that is no UTF-8": ((TOKEN, b"data: \xff\n\n" + DONE), TOKEN + b"data: \xef\xbf\xbd\n\n" + DONE),
}
# The pieces of a stream, what the client gets of them before the gateway's error, the code of that.
BADLY_ENDED = {
    "a comment without its end": ((TOKEN, b": bye"), TOKEN + b": bye\n\n", "cut"),
    "half an event": ((TOKEN, b'data: {"choi'), TOKEN + b'data: {"choi\n\n', "cut"),
    "half an event too long to be held": ((TOKEN, b"data: {" + LONG), TOKEN + b"data: {" + LONG + b"\n\n", "cut"),
    "an error too long to be held": (
        (TOKEN, b'data: {"error":{"code":503,"x":"' + LONG, b'"}}\n\n'),
        TOKEN + b'data: {"error":{"code":503,"x":"' + LONG + b'"}}\n\n',
        "overloaded",
    ),
}


def ending(pieces: tuple[bytes, ...]) -> Reel:
    """A body that ends with its connection."""
    return Reel(tuple((0.0, piece) for piece in pieces), chunked=False, stays=False)


def cut(pieces: tuple[bytes, ...]) -> Reel:
    """A chunked body of which the rest of a chunk never comes."""
    body = b"".join(pieces)
    return Reel(((0.0, b"%x\r\n" % (len(body) + 9)), *((0.0, piece) for piece in pieces)), stays=False)


def error_after(expected: bytes, seen: Seen) -> str:
    """The code of the one error event that follows what is expected."""
    assert seen.body[: len(expected)] == expected
    rest = seen.body[len(expected) :]
    assert rest.startswith(b"data: {")
    assert rest.endswith(b"}\n\n")
    code = json.loads(rest[6:])["error"]["code"]
    assert isinstance(code, str)
    return code


@pytest.mark.parametrize("name", WELL_ENDED)
def test_an_end_is_completed_and_nothing_runs_into_it(name: str) -> None:
    pieces, expected = WELL_ENDED[name]

    async def main() -> None:
        got = (await play({"m": (ending(pieces),)}, usage_asked=False))["m"]
        assert got.body == expected
        assert (got.record.outcome, got.record.error) == ("ok", None)

    run(main())


@pytest.mark.parametrize("name", BADLY_ENDED)
def test_an_error_of_ours_stands_apart_from_what_was_passed_on(name: str) -> None:
    pieces, expected, code = BADLY_ENDED[name]

    async def main() -> None:
        got = (await play({"m": (ending(pieces),)}, usage_asked=False))["m"]
        assert error_after(expected, got) == code
        assert got.record.error == code

    run(main())


def test_an_error_of_ours_stands_apart_where_the_connection_is_cut() -> None:
    async def main() -> None:
        got = (await play({"m": (cut((TOKEN, b"data: {" + LONG)),)}, usage_asked=False))["m"]
        passed_on = got.body[: got.body.rindex(b"data: {")]
        assert passed_on.startswith(TOKEN + b"data: {yyyy")
        assert error_after(passed_on, got) == "cut"
        assert passed_on.endswith(b"y\n\n")

    run(main())
