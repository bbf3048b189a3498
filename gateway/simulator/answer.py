"""What the simulated model says: segments of tokens, from which chunks of any size are cut."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.types import Json
from gateway.simulator.chat import Chat, Tool
from gateway.simulator.script import Reasoning, Script
from gateway.simulator.text import CHARS_PER_TOKEN, Words

_TOOL = Tool("lookup", {"type": "object", "properties": {"query": {"type": "string"}}})


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of tokens of one kind: `reasoning`, `content`, `name` or `arguments`.

    `piece(first, count)` is their text, ready to stand inside a JSON string; `before` and `after` complete the delta.
    """

    kind: str
    tokens: int
    piece: Callable[[int, int], bytes]
    before: bytes
    after: bytes

    def text(self) -> str:
        """All of it, as the client reads it."""
        text = orjson.loads(b'"' + self.piece(0, self.tokens) + b'"') if self.tokens else ""
        assert isinstance(text, str)
        return text


@dataclass(frozen=True, slots=True)
class Answer:
    """Segments in order. `hidden`: reasoning tokens that are billed and take time, but are not shown."""

    segments: tuple[Segment, ...]
    hidden: int
    reasoning: int
    finish_reason: str

    @property
    def shown(self) -> int:
        """Tokens that are sent."""
        return sum(segment.tokens for segment in self.segments)

    @property
    def output(self) -> int:
        """Tokens that are billed."""
        return self.shown + self.hidden


def compose(chat: Chat, script: Script, call_id: str, start: int) -> Answer:
    """The whole answer, capped at the request's own limit. `start` picks where the text begins."""
    words = Words(script.text, start)
    tool = (chat.tool or _TOOL) if script.tool or chat.forced else None
    said = _tool_call(tool, call_id, words) if tool else (_content(script.output_tokens, words),)
    thought = script.reasoning.tokens if script.reasoning else 0
    wanted = thought + sum(segment.tokens for segment in said)
    budget = wanted if chat.max_tokens is None else chat.max_tokens
    thought = min(thought, budget)
    segments = _capped(said, budget - thought)
    hidden = thought if script.reasoning and not script.reasoning.streamed else 0
    if script.reasoning and thought > hidden:
        segments = (_reasoning(script.reasoning, thought, words), *segments)
    finish = "length" if budget < wanted else "tool_calls" if tool else "stop"
    return Answer(segments, hidden, thought, finish)


def usage(chat: Chat, script: Script, answer: Answer) -> Json:
    """The usage object of a complete answer; all zero for an empty one."""
    return {
        "prompt_tokens": chat.prompt_tokens,
        "completion_tokens": answer.output,
        "total_tokens": chat.prompt_tokens + answer.output,
        "prompt_tokens_details": {"cached_tokens": int(chat.prompt_tokens * script.cached_share)},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
    }


def message(answer: Answer, call_id: str) -> Json:
    """The answer as a non-streamed message."""
    texts = {segment.kind: segment.text() for segment in answer.segments}
    made: Json = {"role": "assistant", "content": texts.get("content", None if "name" in texts else "")}
    for segment in answer.segments:
        if segment.kind == "reasoning":
            field = segment.before.split(b'"')[1].decode()
            made[field] = texts["reasoning"]
    if "name" in texts:
        function = {"name": texts["name"], "arguments": texts.get("arguments", "")}
        made["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
    return made


def _content(tokens: int, words: Words) -> Segment:
    return Segment("content", tokens, words.piece, b'{"content":"', b'"}')


def _reasoning(script: Reasoning, tokens: int, words: Words) -> Segment:
    return Segment("reasoning", tokens, words.piece, b'{"%b":"' % script.field.encode(), b'"}')


def _tool_call(tool: Tool, call_id: str, words: Words) -> tuple[Segment, ...]:
    """The name as one token, then the arguments in pieces of the usual size."""
    name = _escaped(tool.name)
    opening = b'{"tool_calls":[{"index":0,"id":"%b","type":"function","function":{"name":"' % call_id.encode()
    written = orjson.dumps(_instance(tool.parameters, words)).decode()
    pieces = [_escaped(written[at : at + CHARS_PER_TOKEN]) for at in range(0, len(written), CHARS_PER_TOKEN)]
    return (
        Segment("name", 1, lambda first, count: name, opening, b'","arguments":""}}]}'),
        Segment(
            "arguments",
            len(pieces),
            lambda first, count: b"".join(pieces[first : first + count]),
            b'{"tool_calls":[{"index":0,"function":{"arguments":"',
            b'"}}]}',
        ),
    )


def _escaped(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


def _capped(segments: tuple[Segment, ...], budget: int) -> tuple[Segment, ...]:
    kept: list[Segment] = []
    for segment in segments:
        taken = min(segment.tokens, budget)
        budget -= taken
        if taken:
            kept.append(Segment(segment.kind, taken, segment.piece, segment.before, segment.after))
    return tuple(kept)


def _instance(schema: Mapping[str, Any], words: Words) -> Any:
    """A value that fits a simple JSON schema: every property of an object, the first of an enum."""
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    if isinstance(schema.get("properties"), dict):
        inner = {str(name): part for name, part in schema["properties"].items() if isinstance(part, dict)}
        return {name: _instance(part, words) for name, part in inner.items()}
    plain: Mapping[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "null": None, "array": [], "object": {}}
    kind = schema.get("type")
    return plain[kind] if isinstance(kind, str) and kind in plain else words.piece(0, 3).decode().strip()
