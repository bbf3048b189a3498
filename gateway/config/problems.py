"""One mistake in a configuration: where it is, what is wrong, and the nearest thing that was perhaps meant."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+-]{1,80}")
# Long runs without a break, and the usual prefixes, are what credentials look like when pasted in the wrong place.
_SECRETIVE = re.compile(r"(?:sk|gsk|pk|tp|csk|fw|xai|key|nvapi|hf|tgp)[-_]|[A-Za-z0-9_+=-]{24,}|[a-fA-F0-9]{16,}")
# Long names have their own look: short words and numbers with separators between. Keys mix both into one long run.
_WORD = r"(?:[A-Z]?[a-z]{1,20}[0-9.]{0,4}|[A-Z]{1,8}|[0-9.]{1,8}|[A-Za-z0-9.]{1,6})"
_WORDY = re.compile(rf"{_WORD}(?:[-_:/@+ ]{_WORD})*")


class FromEnvironment(str):
    """Text that came, in part or whole, from the environment or from a secret file. Never shown to anybody."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """`missing` is the name of the variable or file where the mistake is a secret that is not there."""

    path: Path
    text: str
    line: int | None = None
    missing: str | None = None

    def render(self, source: str) -> str:
        """`file:line: path: text`, always one line."""
        place = source if self.line is None else f"{source}:{self.line}"
        parts = [place, path_text(self.path), self.text] if self.path else [place, self.text]
        return " ".join(": ".join(parts).split())


def path_text(path: Path) -> str:
    """`models.kimi-k3.deployments[0].price`; odd keys are quoted, what looks like a secret is hidden."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + key_text(step)
    return text


def key_text(key: str) -> str:
    """A mapping key as it may be printed."""
    if _SECRETIVE.match(key) and not _WORDY.fullmatch(key[:120]):
        return "(hidden)"
    return key if _PLAIN.fullmatch(key) else ascii(key[:40])


def shown(value: object) -> str:
    """A literal of the file in quotes; what may be a secret is not repeated."""
    if not isinstance(value, str) or isinstance(value, FromEnvironment):
        return "this value"
    if not value or len(value) > 60:
        return "this value"
    text = key_text(value)
    return "this value" if text == "(hidden)" else f"'{text}'" if not text.startswith("'") else text


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that `name` was perhaps meant to be."""
    if not isinstance(name, str) or isinstance(name, FromEnvironment) or len(name) > 60:
        return None
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def meant(name: object, known: Iterable[str], kind: str = "known") -> str:
    """The end of a sentence on an unknown name: `did you mean 'x'? known: …`."""
    names = list(dict.fromkeys(known))
    if not names:
        return f"no {kind} are configured"
    listed = ", ".join(key_text(known_name) for known_name in names[:12]) + (", …" if len(names) > 12 else "")
    guess = nearest(name, names)
    return (f"did you mean '{key_text(guess)}'? " if guess else "") + f"{kind}: {listed}"
