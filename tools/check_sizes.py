"""The size and shape of source files: one subject a file, a function fits a screen, names say what."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.sources import ROOT, report, tracked

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "data", "info"}


def problems_of(path: Path) -> Iterator[str]:
    """Every broken rule of one file."""
    name = path.relative_to(ROOT)
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        yield f"{name}: {lines} lines, at most {MAX_FILE_LINES}: it has more than one subject"
    if set(name.with_suffix("").parts) & VAGUE_NAMES:
        yield f"{name}: the name does not say what is in it"
    tree = ast.parse(text)
    if text.strip() and ast.get_docstring(tree) is None:
        yield f"{name}:1: the first line says what the file's subject is (a docstring)"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}"


if __name__ == "__main__":
    sys.exit(report("sizes", [problem for path in tracked("*.py") for problem in problems_of(path)]))
