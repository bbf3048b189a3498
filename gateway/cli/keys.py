"""`gateway keys`: makes a key for callers, or hashes one, for the configuration."""

import argparse
import getpass
import secrets
import sys

from gateway.config.keys import hash_of, refusal

PREFIX = "sk-gw-"
_KEY_BYTES = 32


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `keys` to the command line."""
    parser = subparsers.add_parser(
        "keys",
        help="make a key, or hash one, for the configuration",
        description="The configuration holds the SHA-256 of a key; the caller presents the key itself.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    new = actions.add_parser("new", help="make a key of 256 random bits; print it and its hash")
    new.set_defaults(run=_new)
    hashed = actions.add_parser("hash", help="read a key on standard input and print its hash")
    hashed.set_defaults(run=_hash)


def _new(args: argparse.Namespace) -> int:
    """Prints the key, once, and what goes into the configuration."""
    key = PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    print(f"key:  {key}")
    print(f"hash: sha256:{hash_of(key)}")
    print("The caller presents the key; auth.keys takes the hash. The key is not kept anywhere.", file=sys.stderr)
    return 0


def _hash(args: argparse.Namespace) -> int:
    """Exit code 2 where what was read cannot be a key."""
    typed = getpass.getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline()
    key = typed.strip()
    problem = "this is a hash already" if key.startswith("sha256:") else refusal(key)
    if problem is not None:
        print(f"gateway keys hash: {problem}", file=sys.stderr)
        return 2
    print(f"sha256:{hash_of(key)}")
    return 0
