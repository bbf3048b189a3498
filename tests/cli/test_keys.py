"""`gateway keys`."""

import hashlib
import io

import pytest

from gateway.cli import main


def test_a_new_key_has_256_bits_and_comes_with_its_hash(capsys: pytest.CaptureFixture[str]) -> None:
    keys = set()
    for _ in range(3):
        assert main(["keys", "new"]) == 0
        key_line, hash_line = capsys.readouterr().out.splitlines()
        key = key_line.removeprefix("key:  ")
        keys.add(key)
        assert key.startswith("sk-gw-")
        assert len(key.removeprefix("sk-gw-")) == 43
        assert hash_line == f"hash: sha256:{hashlib.sha256(key.encode()).hexdigest()}"
    assert len(keys) == 3


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\nsecond line\n"])
def test_a_key_is_hashed_without_the_end_of_its_line(
    ending: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"a-key-of-16-char{ending}"))
    assert main(["keys", "hash"]) == 0
    assert capsys.readouterr().out == f"sha256:{hashlib.sha256(b'a-key-of-16-char').hexdigest()}\n"


@pytest.mark.parametrize(
    "typed", ["", "fifteen-chars-k", "a key with spaces in it", "ключ-из-многих-букв", "k" * 513, "sha256:" + "0" * 64]
)
def test_what_cannot_be_a_key_is_refused_without_repeating_it(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed + "\n"))
    assert main(["keys", "hash"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("gateway keys hash: ")
    assert not typed or typed not in told.err


def test_keys_without_an_action_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["keys"])
    assert raised.value.code == 2
    assert "ACTION" in capsys.readouterr().err
