"""The key ring."""

import hashlib
import hmac

import pytest

from gateway.core.types import Caller
from gateway.limits.keys import MAX_KEY_CHARS, KeyEntry, KeyRing


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


ALICE = KeyEntry("alice", _hash("alice-key"), frozenset({"fast"}))
BOB = KeyEntry("bob", _hash("bob-key"))


def test_a_ring_without_keys_lets_everybody_in() -> None:
    assert KeyRing().identify(None) == Caller()
    assert KeyRing().identify("anything") == Caller()


@pytest.mark.parametrize(
    ("presented", "name", "models"),
    [("alice-key", "alice", frozenset({"fast"})), ("bob-key", "bob", None)],
)
def test_a_key_names_its_caller(presented: str, name: str, models: frozenset[str] | None) -> None:
    assert KeyRing([ALICE, BOB]).identify(presented) == Caller(name, models)


@pytest.mark.parametrize("presented", [None, "", "alice-ke", "alice-key ", "ALICE-KEY", _hash("alice-key"), "\ud800"])
def test_anything_but_a_key_is_nobody(presented: str | None) -> None:
    assert KeyRing([ALICE, BOB]).identify(presented) is None


def test_a_key_longer_than_any_real_one_is_refused() -> None:
    longest, too_long = "k" * MAX_KEY_CHARS, "k" * (MAX_KEY_CHARS + 1)
    ring = KeyRing([KeyEntry("fits", _hash(longest)), KeyEntry("never", _hash(too_long))])
    assert ring.identify(longest) == Caller("fits")
    assert ring.identify(too_long) is None


def test_an_admin_key_makes_an_admin_who_may_use_every_model() -> None:
    ring = KeyRing([ALICE], [_hash("root-key"), ALICE.sha256])
    assert ring.identify("root-key") == Caller("admin", None, admin=True)
    assert ring.identify("alice-key") == Caller("alice", None, admin=True)


def test_admin_keys_alone_do_not_close_the_ring() -> None:
    ring = KeyRing([], [_hash("root-key")])
    assert ring.identify(None) == Caller()
    assert ring.identify("root-key") == Caller("admin", None, admin=True)


def test_every_entry_is_compared_wherever_the_match_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    genuine = hmac.compare_digest

    def counting(known: bytes, digest: bytes) -> bool:
        compared.append(known)
        return genuine(known, digest)

    monkeypatch.setattr("gateway.limits.keys.hmac.compare_digest", counting)
    ring = KeyRing([ALICE, BOB], [_hash("root-key")])
    for presented in ("alice-key", "bob-key", "root-key", "nobody"):
        compared.clear()
        ring.identify(presented)
        assert len(compared) == 3
