"""The configured keys: known by their SHA-256, compared in a time that tells nothing."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.core.types import Caller

# Nobody's key is longer; hashing megabytes of header for a stranger is work for nothing.
MAX_KEY_CHARS = 512


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One of `auth.keys`. `sha256` is the hash in hex; `models` None: every public name."""

    name: str
    sha256: str
    models: frozenset[str] | None = None


class KeyRing:
    """Tells callers apart by the key they present. Without any configured key everybody may call.

    `admins` are hashes in hex. An admin key that is no caller's key calls as `admin`.
    """

    def __init__(self, keys: Sequence[KeyEntry] = (), admins: Iterable[str] = ()) -> None:
        self._callers = [(bytes.fromhex(entry.sha256), Caller(entry.name, entry.models)) for entry in keys]
        self._admins = [bytes.fromhex(digest) for digest in admins]
        self._open = not self._callers

    def identify(self, presented: str | None) -> Caller | None:
        """The caller; None where a key is needed and this is none of them.

        Every entry is compared whatever was found before: the time does not tell which key came close.
        """
        if presented is None or len(presented) > MAX_KEY_CHARS:
            return Caller() if self._open else None
        digest = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).digest()
        found: Caller | None = None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest):
                found = caller
        admin = False
        for known in self._admins:
            admin |= hmac.compare_digest(known, digest)
        if admin:
            return Caller(found.name, None, admin=True) if found else Caller("admin", None, admin=True)
        return found or (Caller() if self._open else None)
