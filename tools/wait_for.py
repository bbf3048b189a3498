"""Waits until every URL answers 200: `wait_for.py URL…`. Exit code 1 after 30 s."""

import sys
import time
import urllib.error
import urllib.request

LIMIT_S = 30.0


def answers(url: str) -> bool:
    """Whether it answers 200 now. Proxies of the environment are not asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def main(urls: list[str]) -> int:
    """0 when all answer."""
    until = time.monotonic() + LIMIT_S
    while not all(answers(url) for url in urls):
        if time.monotonic() > until:
            print(f"no answer after {LIMIT_S:.0f} s from one of: {' '.join(urls)}", file=sys.stderr)
            return 1
        time.sleep(0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
