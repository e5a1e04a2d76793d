"""A forward proxy between us and the target, as the environment names it (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import unquote, urlsplit

from cliffwatch.errors import InputError, shorten
from loadgen.identity import basic
from loadgen.origin import Origin, authority

_MAX_ANSWER_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})( [^\r\n]*)?\r?\n")


class ProxyRefusedError(OSError):
    """The proxy answers, but opens no tunnel."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address; `authorization` is the value of its header, where it wants one."""

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)

    @property
    def authority(self) -> str:
        return authority(self.host, self.port)

    @property
    def headers(self) -> tuple[str, ...]:
        """What a request says to the proxy."""
        return () if self.authorization is None else (f"Proxy-Authorization: {self.authorization}",)

    def open_tunnel(self, sock: Any, target: str) -> None:
        """Ask for a tunnel to `target` (host:port) on a fresh connection.

        Raises:
            ProxyRefusedError: it will not open one.
            OSError: the connection broke.
        """
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *self.headers, "\r\n"]
        sock.sendall("\r\n".join(lines).encode("latin-1"))
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = sock.recv(4096)
            answer += more
            if not more or len(answer) > _MAX_ANSWER_BYTES:
                raise ProxyRefusedError(f"the proxy {self.authority} gave no answer that is HTTP")
        status = _STATUS.match(answer)
        if status is None or not status[1].startswith(b"2"):
            said = answer.partition(b"\r\n")[0].decode("latin-1")
            raise ProxyRefusedError(f"the proxy {self.authority} refuses a tunnel: {shorten(said)}")


def proxy_for(origin: Origin, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """The proxy that the environment names for a target; None for none, and for targets on this machine.

    Raises:
        InputError: the variable's text is no address of a proxy. It is not quoted, since it may hold a password.
    """
    name = f"{origin.scheme}_proxy"
    text = _value(environment, name)
    if not text or _is_local(origin.host) or _is_exempt(origin, _value(environment, "no_proxy")):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    if parts.scheme != "http" or not host or parts.path not in {"", "/"}:
        allowed = "http://[USER:PASSWORD@]HOST:PORT"
        raise InputError("is no proxy that can be used", field=name.upper(), allowed=allowed)
    if parts.username is None:
        return Proxy(host, port)
    return Proxy(host, port, basic(f"{unquote(parts.username)}:{unquote(parts.password or '')}"))


def _value(environment: Mapping[str, str], name: str) -> str:
    """Of a variable that both spellings are usual of; the small one is the older."""
    return environment.get(name) or environment.get(name.upper()) or ""


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_exempt(origin: Origin, no_proxy: str) -> bool:
    """Whether one of the names, addresses and networks is the target's, or a domain that it is in."""
    host = origin.host.lower()
    for entry in (entry.strip().lower() for entry in no_proxy.split(",")):
        name = entry.removesuffix(f":{origin.port}").removeprefix("*").removeprefix(".")
        if entry == "*" or (name and (host == name or host.endswith(f".{name}") or _in_network(host, name))):
            return True
    return False


def _in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
