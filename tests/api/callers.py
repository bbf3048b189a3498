"""Callers with keys: a name with an allow-list, one without, an administrator."""

import hashlib

from gateway.limits.keys import KeyEntry, KeyRing

ALICE, BOB, ADMIN = "alice-key-alice-key", "bob-key-bob-key-bob", "admin-key-admin-key"


def sha(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def ring() -> KeyRing:
    entries = [KeyEntry("alice", sha(ALICE), frozenset({"m"})), KeyEntry("bob", sha(BOB), None)]
    return KeyRing(entries, [sha(ADMIN)])


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}
