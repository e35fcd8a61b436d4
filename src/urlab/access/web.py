"""Which web requests are let in: by the host that they ask for, the page that sends them, and a token.

For every HTTP port of ours, whatever serves it: headers in, a refusal in words out. A browser runs scripts of any page
that its user looks at, and sends what they ask to any port of this machine. So a request is refused when it says that
a page of another origin sent it (``Origin``, ``Sec-Fetch-Site``), and when the host that it asks for is none of ours:
a foreign name that leads here is how a page becomes one of "our" origin (DNS rebinding).
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from urlab.errors import ConfigError

SHORTEST_TOKEN = 16
"""Characters; one of `new_token` has 32."""

Headers = Iterable[tuple[bytes, bytes]]
"""Names in lower case, and values, as ASGI has them."""

_OF_BROWSERS = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"})
_SAME_ORIGIN = (b"same-origin", b"none")
_WILDCARDS = ("0.0.0.0", "::")


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def check_token(token: str | None, option: str = "--token") -> None:
    """ConfigError for a token that could be guessed; None is no token."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"{option} has {len(token)} characters and could be guessed; it needs {SHORTEST_TOKEN} or more. "
            f"'{option} auto' makes one and prints it, and so does: python -c 'import secrets; "
            f"print(secrets.token_urlsafe(24))'"
        )


@dataclass(frozen=True)
class WebAccess:
    """What one server's port lets in. ``host`` is the address that it listens on; ``token`` None is no token.

    ``allowed_hosts`` are further names by which clients reach it, such as that of a proxy before it.
    """

    host: str
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()

    def refused_page(self, method: str, headers: Headers) -> str | None:
        """Why this request is refused whatever it asks for; None if it is not.

        The host is not looked at where a token is asked for: a page that was led here by a foreign name has none.
        """
        found: dict[bytes, bytes] = {}
        hosts = []
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name in _OF_BROWSERS:
                found[name] = value
        if self.token is None:
            for host in hosts:
                if not _is_host_of(self, host):
                    return (
                        f"this server is not {_text(host)[:100]!r}; ask for it by its address, "
                        f"or start it with --allow-host {_without_port(_text(host))[:100]}"
                    )
        if not found or _is_own_page(method, found, hosts):
            return None
        return "requests of web pages of another origin are refused"

    def is_token_right(self, authorization: bytes) -> bool:
        """Whether the header ``Authorization`` carries the token; True if none is asked for."""
        return self.token is None or hmac.compare_digest(authorization, f"Bearer {self.token}".encode())

    def has_name(self, name: str) -> bool:
        """Whether this server is meant by a name or address, in lower case and without a port."""
        if _is_loopback(name) or name in self._names:
            return True
        # No name leads to an address: a page that asks for one is served from there, so from here.
        return self.host in _WILDCARDS and _address(name) is not None

    @cached_property
    def _names(self) -> frozenset[str]:
        names = {self.host, *self.allowed_hosts}
        if not _is_loopback(self.host):
            machine = socket.gethostname()
            names |= {machine, f"{machine}.local"}
        return frozenset(_without_port(name.lower()) for name in names)


@lru_cache(256)
def _is_host_of(access: WebAccess, host: bytes) -> bool:
    """Kept: clients ask for the same one with every request, and reading an address takes ten microseconds."""
    return access.has_name(_without_port(_text(host)))


def _is_own_page(method: str, headers: dict[bytes, bytes], hosts: list[bytes]) -> bool:
    """Programs send neither header. Following a link to here is no request of the page that had the link."""
    origin = headers.get(b"origin")
    if origin is not None and [_text(origin).partition("://")[2]] != [_text(host) for host in hosts]:
        return False
    site = headers.get(b"sec-fetch-site", b"none")
    follows_link = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return site in _SAME_ORIGIN or (follows_link and method in ("GET", "HEAD"))


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or name.endswith(".localhost") if address is None else address.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _text(value: bytes) -> str:
    return value.decode("latin1").strip().lower()


def _without_port(host: str) -> str:
    """The name or address of ``name``, ``name:80``, ``[::1]`` and ``[::1]:80``; addresses without brackets stay."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return (name if name and ":" not in name and port.isdecimal() else host).rstrip(".")
