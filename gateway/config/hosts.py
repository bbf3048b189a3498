"""Hosts and URLs as the configuration names them: which are near, which are well formed."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?"
)
_NEAR_SUFFIXES = (".local", ".internal", ".lan", ".home.arpa", ".localhost", ".svc", ".test")
_SCHEMES = {"http": 80, "https": 443}


def is_host(text: str) -> bool:
    """Whether `text` is an IP address or a host name."""
    if _address(text) is not None:
        return True
    # All digits and dots, yet no address: a mistyped one.
    return bool(_NAME.fullmatch(text)) and not re.fullmatch(r"[0-9.]+", text)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`. Names other than localhost may lead anywhere."""
    address = _address(host)
    if address is None:
        return host.lower().rstrip(".") == "localhost"
    return address.is_loopback


def is_near(host: str) -> bool:
    """Whether traffic to `host` stays on this machine or a private network, as far as its name tells."""
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_loopback or address.is_link_local
    name = host.lower().rstrip(".")
    return "." not in name or name.endswith(_NEAR_SUFFIXES)


def split_url(text: str, schemes: tuple[str, ...] = ("http", "https")) -> SplitResult:
    """A URL with scheme, host and perhaps port and path, nothing else. Raises ValueError saying what is wrong."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be a URL of printable ASCII without spaces")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("must be a URL with a valid host and port") from None
    if parts.scheme not in schemes:
        raise ValueError(f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    if not parts.hostname or not is_host(parts.hostname) or port == 0:
        raise ValueError("must name a valid host (and port)")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("must have no ?query and no #fragment")
    return parts


def base_url(text: str) -> str:
    """A provider's base URL without its trailing slash. Raises ValueError saying what is wrong."""
    parts = split_url(text)
    if "@" in parts.netloc:
        raise ValueError("must have no user name or password; give the credential as api_key")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValueError("must end before /chat/completions, which the gateway adds")
    return text.rstrip("/")


def origin(text: str) -> str:
    """`https://app.example.com` or with a port, as browsers send it. Raises ValueError."""
    if text == "*":
        raise ValueError("must list each origin; * would let any web page spend the keys")
    parts = split_url(text)
    if parts.path or "@" in parts.netloc:
        raise ValueError("must be an origin: scheme, host and port without a path")
    port = parts.port
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _SCHEMES[parts.scheme]) else f":{port}")


def host_and_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:9090` or `[::1]:9090` in two. Raises ValueError."""
    says = "must be a host and a port: 127.0.0.1:9090 or [::1]:9090"
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(says) from None
    if host is None or port is None or parts.netloc != text or "@" in text or not is_host(host):
        raise ValueError(says)
    return host, port


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
