"""References in a configuration: `${VAR}`, `${VAR:-default}`, and `file:/path` where a secret is expected."""

import re
from collections.abc import Mapping
from pathlib import Path as FilePath

from gateway.config.document import Document
from gateway.config.problems import FromEnvironment, Path, Problem, key_text

# Where secrets stand: `file:` is read here, and what stands here is never repeated in a message.
SECRET_PATHS: tuple[Path, ...] = (
    ("auth", "keys", "*", "key"),
    ("auth", "admin_keys", "*"),
    ("providers", "*", "api_key"),
    ("providers", "*", "headers", "*"),
)
_TOKEN = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_SECRET_FILE_LIMIT = 65_536
# Stands in for what is missing so that the rest of the file is still checked; long enough to be taken for a key.
_STAND_IN = FromEnvironment("missing-secret-stand-in-value")


def matches(path: Path, pattern: Path) -> bool:
    """Whether `path` is one that `pattern` describes; `*` stands for any one step."""
    return len(path) == len(pattern) and all(want in ("*", step) for step, want in zip(path, pattern, strict=True))


def is_secret(path: Path) -> bool:
    """Whether a secret stands at `path`."""
    return any(matches(path, pattern) for pattern in SECRET_PATHS)


def expand(document: Document, environ: Mapping[str, str], folder: FilePath) -> tuple[Document, list[Problem]]:
    """The document with every reference replaced, and the references that lead nowhere.

    Relative secret files are looked for in `folder`. `$${` is a literal `${`.
    """
    expansion = _Expansion(document, environ, folder)
    values = {key: expansion.value(value, (key,)) for key, value in document.values.items()}
    return Document(values, document.lines), expansion.problems


class _Expansion:
    """One walk over the values."""

    def __init__(self, document: Document, environ: Mapping[str, str], folder: FilePath) -> None:
        self.document = document
        self.environ = environ
        self.folder = folder
        self.problems: list[Problem] = []

    def value(self, value: object, path: Path) -> object:
        if isinstance(value, dict):
            return {key: self.value(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, tuple):
            return tuple(self.value(item, (*path, index)) for index, item in enumerate(value))
        if not isinstance(value, str):
            return value
        text = self._references(value, path) if "${" in value else value
        if is_secret(path) and value.startswith("file:"):
            return self._secret_file(text[len("file:") :], path)
        return text

    def _references(self, text: str, path: Path) -> str:
        """`text` with its references replaced."""
        parts: list[str] = []
        end = 0
        for token in _TOKEN.finditer(text):
            parts.append(text[end : token.start()])
            end = token.end()
            if token[0] == "$${":
                parts.append("${")
                continue
            found = self._variable(token[1], path)
            if found is None:
                return _STAND_IN
            parts.append(found)
        return FromEnvironment("".join(parts) + text[end:])

    def _variable(self, reference: str | None, path: Path) -> str | None:
        """The value of one variable; an empty one counts as not set."""
        match = _NAME.fullmatch(reference or "")
        if match is None:
            self._problem(path, "holds a reference that is not understood; write ${VAR} or ${VAR:-default}")
            return None
        name, default = match[1], match[2]
        found = self.environ.get(name) or default
        if found is None:
            says = f"needs the environment variable {name}, which is not set; set it, or write ${{{name}:-default}}"
            self._problem(path, says, missing=name)
            return None
        if not _is_text(found):
            self._problem(path, f"the environment variable {name} holds bytes that are no text")
            return None
        return found

    def _secret_file(self, name: str, path: Path) -> str:
        """The content of a secret file, without surrounding white space."""
        try:
            with (self.folder / name).open("rb") as stream:
                content = stream.read(_SECRET_FILE_LIMIT + 1)
            text = content.decode("utf-8").strip()
        except UnicodeDecodeError:
            self._problem(path, "the secret file is not UTF-8 text")
            return _STAND_IN
        except (OSError, ValueError):
            label = self._file_label(path)
            self._problem(path, f"{label} does not exist or cannot be read; it takes the path of a file", label)
            return _STAND_IN
        if not text or len(content) > _SECRET_FILE_LIMIT:
            label = self._file_label(path)
            self._problem(path, f"{label} is empty or larger than 64 KB", label)
            return _STAND_IN
        return FromEnvironment(text)

    def _file_label(self, path: Path) -> str:
        """The file as the configuration names it: variables in it stay unexpanded."""
        value: object = self.document.values
        for step in path:
            value = value[step] if isinstance(value, dict | tuple) else None  # type: ignore[index]
        return "/".join(key_text(part) if part else "" for part in str(value).split("/"))

    def _problem(self, path: Path, text: str, missing: str | None = None) -> None:
        self.problems.append(Problem(path, text, self.document.line(path), missing))


def _is_text(value: str) -> bool:
    """False where undecodable bytes of the environment stand in it, or a NUL."""
    return not any("\ud800" <= character <= "\udfff" or character == "\0" for character in value)
