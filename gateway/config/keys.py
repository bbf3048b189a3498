"""Keys of callers: what can be one, and its hash, which is all that is kept."""

import hashlib
import re

MIN_CHARS = 16
MAX_CHARS = 512
_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})")


def refusal(key: str) -> str | None:
    """Why `key` cannot be a key; None where it can. Never repeats it."""
    if not MIN_CHARS <= len(key) <= MAX_CHARS:
        return f"a key has {MIN_CHARS} to {MAX_CHARS} characters; make one with `gateway keys new`"
    if not key.isascii() or not key.isprintable() or " " in key:
        return "a key is printable ASCII without spaces, or no client could send it"
    return None


def hash_of(key: str) -> str:
    """The SHA-256, in hex, of exactly the text that is presented as the key."""
    return hashlib.sha256(key.encode()).hexdigest()


def key_hash(value: object) -> str:
    """The hash that `sha256:…` gives, else that of the key itself. Raises ValueError, which never repeats it."""
    if not isinstance(value, str):
        raise ValueError("must be sha256: and 64 hex digits (from `gateway keys new`), ${VAR}, or file:/path")
    text = value.strip()
    if match := _SHA256.fullmatch(text):
        return match[1].lower()
    if text.lower().startswith("sha256"):
        raise ValueError("must be sha256: and exactly 64 hex digits")
    problem = refusal(text)
    if problem is not None:
        raise ValueError(problem)
    return hash_of(text)
