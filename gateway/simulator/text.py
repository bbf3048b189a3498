"""The words simulated models say. Every token is five characters, so that characters tell tokens exactly."""

from types import MappingProxyType

CHARS_PER_TOKEN = 5

_ASCII = (
    "that fast hare will leap over each slow moth when rain does fall upon dark soil then warm wind from some deep "
    "lake must turn this grey fern gold "
    "with tall oaks near cold snow many deer walk past long after dusk they find soft moss "
    "here once more songs rise from reed beds also owls call"
)
_WIDE = "über naïf 日本語文 größ çaça ñandú öl🦊é ещёя θέλω ęśćż"


def _tokens(words: str) -> tuple[bytes, ...]:
    return tuple(f"{word[:4]:<4} ".encode() for word in words.split())


_VOCABULARY = MappingProxyType({"ascii": _tokens(_ASCII), "wide": _tokens(_WIDE)})


class Words:
    """An endless, repeating text. `start` says where in the vocabulary it begins."""

    __slots__ = ("_start", "_tokens")

    def __init__(self, alphabet: str, start: int) -> None:
        self._tokens = _VOCABULARY[alphabet]
        self._start = start

    def piece(self, first: int, count: int) -> bytes:
        """Tokens `first` to `first + count` as UTF-8; nothing in them needs escaping in JSON."""
        tokens, start = self._tokens, self._start + first
        size = len(tokens)
        if count == 1:
            return tokens[start % size]
        return b"".join([tokens[at % size] for at in range(start, start + count)])
