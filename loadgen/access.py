"""The way to a target, put together once a process: address, trust, proxy, and who we say we are."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.identity import SecretFiles, read_headers
from loadgen.origin import Origin, tls_context
from loadgen.proxy import Proxy, proxy_for


@dataclass(frozen=True, slots=True)
class Access:
    """How one process gets to its target.

    Attributes:
        origin: the target.
        tls: how it is trusted; None for plain http.
        proxy: what stands between; None for nothing.
        headers: lines that every request carries; secret.
        base: what stands before a path in a request's first line.
    """

    origin: Origin
    tls: ssl.SSLContext | None = None
    proxy: Proxy | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    base: str = field(init=False)

    def __post_init__(self) -> None:
        plain = self.proxy is not None and self.tls is None  # a proxy is given whole URLs, unless in a tunnel
        object.__setattr__(self, "base", self.origin.url() if plain else self.origin.base_path)
        if plain and self.proxy is not None:
            object.__setattr__(self, "headers", (*self.headers, *self.proxy.headers))

    @classmethod
    def of(cls, target: str, secrets: SecretFiles, *, ca_file: Path | None = None, insecure: bool = False) -> Access:
        """From options, files and the environment. Raises InputError."""
        origin = Origin.parse(target)
        tls = tls_context(origin, secrets, ca_file=ca_file, insecure=insecure)
        return cls(origin, tls, proxy_for(origin), read_headers(secrets))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run's record should say of it."""
        if self.proxy is None:
            return ()
        cost = "connecting includes its tunnel" if self.tls else "its own time is in every latency"
        return (f"requests go through the proxy {self.proxy.authority}, which the environment names: {cost}",)


def request_bytes(
    access: Access, method: str, path: str, body: bytes = b"", *, request_id: str = "", headers: tuple[str, ...] = ()
) -> bytes:
    """One HTTP/1.1 request, ready for the wire. `headers` are further lines, checked already."""
    lines = [f"{method} {access.base}{path} HTTP/1.1", f"Host: {access.origin.authority}", "User-Agent: cliffwatch"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if request_id:
        lines.append(f"X-Request-Id: {request_id}")
    return "\r\n".join([*lines, *access.headers, *headers, "\r\n"]).encode("latin-1") + body
