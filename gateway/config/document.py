"""A YAML file as plain values, with the line of each.

Plain scalars follow YAML 1.2: only `true` and `false` are truth values, `03:00` and `off` are text. Lists become
tuples, keys are always text. Anchors and `<<` work, bounded; tags, duplicate keys and odd characters are problems.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gateway.config.problems import Path, Problem, key_text

LIMIT_BYTES = 1_000_000
MAX_DEPTH = 30
MAX_VALUES = 100_000
_IMPLICIT = "implicit"
_TEXT_TAG = "tag:yaml.org,2002:str"

_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class Unreadable(Exception):
    """The file gives no values at all; holds the one problem."""

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.problem = Problem((), text, line)


@dataclass(frozen=True, slots=True)
class Document:
    """`values` is the root mapping; `lines` the line of every value in it, counted from 1."""

    values: dict[str, Any]
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int | None:
        """The line of the value at `path`, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


class _Loader(yaml.SafeLoader):
    """Composes nodes only. Tags are told apart from their absence, depth is bounded."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels", self.line + 1)
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        """Asked for nodes without a tag of their own."""
        return _IMPLICIT


def read_text(file: FilePath) -> str:
    """The text of a configuration file. Raises Unreadable."""
    try:
        if file.is_dir():
            raise Unreadable("is a directory, not a YAML file")
        with file.open("rb") as stream:
            content = stream.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable("does not exist") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read ({type(error).__name__})") from None
    if len(content) > LIMIT_BYTES:
        raise Unreadable("is larger than 1 MB; a configuration never is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("is not UTF-8 text", content.count(b"\n", 0, error.start) + 1) from None


def parse(text: str) -> tuple[Document, list[Problem]]:
    """The values of a YAML text, and the mistakes that still leave values. Raises Unreadable."""
    root = _compose(text)
    if root is None:
        raise Unreadable("is empty; the least is `version: 1`, providers and models")
    if not isinstance(root, MappingNode):
        raise Unreadable("must be a mapping of settings (`version: 1`, `providers: …`)", root.start_mark.line + 1)
    builder = _Builder()
    values = builder.mapping(root, (), 1)
    return Document(values, builder.lines), builder.problems


def _compose(text: str) -> Node | None:
    """The node tree of the one document in `text`."""
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(_syntax(error.problem, text, mark.line if mark else 0), mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable("is not valid YAML: a control character that YAML does not allow", line) from None
    except (yaml.YAMLError, ValueError, IndexError, RecursionError) as error:
        raise Unreadable(f"is not valid YAML ({type(error).__name__})") from None


def _syntax(problem: str | None, text: str, line: int) -> str:
    """The parser's complaint without quotations from the file, which may be secrets."""
    says = re.sub(r"'[^']{3,}'|\"[^\"]{3,}\"", "…", problem or "not understood")
    lines = text.splitlines()
    hint = ""
    if line < len(lines) and "${" in lines[line] and "{" in lines[line].split("${")[0]:
        hint = '; inside { } a reference needs quotes: "${VAR}"'
    return f"is not valid YAML: {says}{hint}"


def plain_scalar(text: str) -> object:
    """What an unquoted scalar means: null, a truth value, a number, else text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class _Builder:
    """Walks the node tree once, keeping lines and problems."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.count = 0

    def value(self, node: Node, path: Path, depth: int) -> object:
        self.count += 1
        if self.count > MAX_VALUES:
            raise Unreadable(f"holds more than {MAX_VALUES:,} values once its aliases are written out")
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels", _line(node))
        if node.tag not in (_IMPLICIT, _TEXT_TAG):
            self._problem(path, "has a YAML tag (!…), which is not supported; remove the tag", node)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, SequenceNode):
            return tuple(self._item(item, (*path, index), depth) for index, item in enumerate(node.value))
        return self.mapping(node, path, depth) if isinstance(node, MappingNode) else None

    def mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, Any]:
        """Own keys first, then what `<<` brings for keys that are not there."""
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in values:
                first = self.lines[(*path, key)]
                self._problem((*path, key), f"is given twice (first on line {first}); keep one", key_node)
                continue
            self.lines[(*path, key)] = _line(key_node)
            values[key] = self.value(value_node, (*path, key), depth + 1)
        for source in self._merged(node, path, depth):
            for key_node, value_node in source.value:
                key = self._key(key_node, path)
                if key is not None and key not in values:
                    self.lines[(*path, key)] = _line(key_node)
                    values[key] = self.value(value_node, (*path, key), depth + 1)
        return values

    def _merged(self, node: MappingNode, path: Path, depth: int) -> Iterator[MappingNode]:
        """The mappings that `<<` names, their own `<<` after them."""
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels", _line(node))
        for key_node, value_node in node.value:
            if not _is_merge(key_node):
                continue
            for source in value_node.value if isinstance(value_node, SequenceNode) else [value_node]:
                self.count += 1
                if not isinstance(source, MappingNode) or self.count > MAX_VALUES:
                    self._problem(path, "`<<` takes an alias of a mapping", key_node)
                    continue
                yield source
                yield from self._merged(source, path, depth + 1)

    def _item(self, node: Node, path: Path, depth: int) -> object:
        self.lines[path] = _line(node)
        return self.value(node, path, depth + 1)

    def _key(self, node: Node, path: Path) -> str | None:
        if _is_merge(node):
            return None
        if not isinstance(node, ScalarNode):
            self._problem(path, "has a list or mapping as a key; a key is a word", node)
            return None
        key = str(node.value)
        if not key or not key.isprintable():
            self._problem(path, f"has an unusable key {key_text(key)}; a key is a printable word", node)
            return None
        return key

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" or character == "\0" for character in text):
            self._problem(path, "holds a character that is no text (NUL or half a surrogate pair)", node)
            return ""
        return plain_scalar(text) if node.style is None and node.tag == _IMPLICIT else text

    def _problem(self, path: Path, text: str, node: Node) -> None:
        self.problems.append(Problem(path, text, _line(node)))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style is None and node.value == "<<"
