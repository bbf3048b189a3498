"""The documents against the code: links, commands, settings, metrics, and words that do not belong in a repository."""

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

import gateway.config
from gateway.cli import COMMANDS
from gateway.telemetry.definitions import DEFINITIONS
from tools.sources import ROOT, report, tracked

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "console", "shell"}
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
METRIC_ROW = re.compile(r"^\| `(gateway_\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)

# Put together from parts, so that this file does not hold what it looks for.
INDEXES = ["pypi", "pythonhosted", "npmjs", "yarnpkg", "conda", "deb.debian", "crates", "docker"]
FORBIDDEN = (
    (re.compile(rf"\b(?:{'|'.join(re.escape(name) for name in INDEXES)})\.(?:org|com|io)\b"), "a registry's host"),
    (re.compile(r"--(?:extra-)?index[-]url|--find[-]links|--trusted[-]host"), "a package index option"),
    (re.compile(r"(?<![\w.$}~-])/(?:work|root|tmp|home)/\w"), "a path of one machine"),
)
TEXT_PATTERNS = ("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "*.txt", "*.in", "*.sh", "Makefile", ".ci/run", "tools/*")


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken_links(path: Path) -> Iterator[str]:
    """Relative links that lead nowhere."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        place, _, anchor = link.partition("#")
        aim = (path.parent / place).resolve() if place else path
        if not aim.exists():
            yield f"{path.relative_to(ROOT)}: the link {link} leads nowhere"
        elif anchor and aim.suffix == ".md" and anchor not in anchors(aim.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}: {link}: there is no such heading"


def unknown_commands(path: Path) -> Iterator[str]:
    """`make X` and `gateway X` in shell examples that do not exist."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    for language, body in FENCE.findall(path.read_text(encoding="utf-8")):
        if language not in SHELL:
            continue
        for line in body.splitlines():
            words = line.removeprefix("$ ").split()
            if words[:1] == ["make"] and not {word for word in words[1:2] if "=" not in word} <= targets:
                yield f"{path.relative_to(ROOT)}: the Makefile has no target for: {line}"
            if words[:1] == ["gateway"] and words[1] not in COMMANDS and not words[1].startswith("-"):
                yield f"{path.relative_to(ROOT)}: there is no such command: {line}"


def undocumented_settings() -> Iterator[str]:
    """Fields of the configuration's sections that docs/configuration.md does not name."""
    text = read("docs/configuration.md")
    for module in pkgutil.walk_packages(gateway.config.__path__, "gateway.config."):
        importlib.import_module(module.name)
    for section in sections(BaseModel):
        if section.__module__ != "gateway.config.schema":
            continue
        for name, field in section.model_fields.items():
            word = field.alias or name
            if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
                yield f"docs/configuration.md does not name `{word}` ({section.__name__})"


def sections(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All classes below."""
    for child in base.__subclasses__():
        yield child
        yield from sections(child)


def metrics_apart() -> Iterator[str]:
    """Metrics without a row in docs/metrics.md, rows without a metric, rows that say something else."""
    rows = {name: (kind, labels) for name, kind, labels in METRIC_ROW.findall(read("docs/metrics.md"))}
    for row in DEFINITIONS:
        wanted = (row.kind, ", ".join(f"`{label}`" for label in row.labels))
        if row.name not in rows:
            yield f"docs/metrics.md has no row for {row.name}"
        elif (found := rows.pop(row.name)) != wanted:
            yield f"docs/metrics.md: {row.name} is {wanted}, not {found}"
    yield from (f"docs/metrics.md: there is no metric {name}" for name in rows)


def read(name: str) -> str:
    """A document's text; none of a document that is not there."""
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def forbidden_words(path: Path) -> Iterator[str]:
    """Hosts and paths that tie the repository to one place."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:100]}"


def problems() -> Iterator[str]:
    """Everything that is wrong."""
    for path in tracked("*.md"):
        yield from broken_links(path)
        yield from unknown_commands(path)
    yield from undocumented_settings()
    yield from metrics_apart()
    for path in tracked(*TEXT_PATTERNS):
        yield from forbidden_words(path)


if __name__ == "__main__":
    sys.exit(report("documents", list(problems())))
