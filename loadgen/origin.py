"""Where requests go, and what proves who we are and who they are: URL, TLS, bearer token."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import gevent.ssl

from cliffwatch.errors import InputError

TOKEN_VARIABLES = ("CLIFFWATCH_API_KEY", "OPENAI_API_KEY")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_FORMS = "http://HOST[:PORT][/PATH] or https://..."
_MAX_TOKEN_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Origin:
    """A target URL, taken apart. `base_path` has no trailing slash and no `/v1`: the API dialects bring their own."""

    scheme: str
    host: str
    port: int
    base_path: str = ""

    @classmethod
    def parse(cls, url: str) -> Origin:
        """Raises InputError unless `url` is a plain http(s) address; secrets in a URL are refused, not kept."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"is not a URL: {error}", file="--target", value=url, allowed=_URL_FORMS) from error
        if "@" in parts.netloc:
            allowed = f"the token in the environment variable {TOKEN_VARIABLES[0]}, or --token-file"
            raise InputError("a user or password does not belong in the URL", file="--target", allowed=allowed)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
            raise InputError("is not an address of a server", file="--target", value=url, allowed=_URL_FORMS)
        if parts.query or parts.fragment or not url.isascii() or any(char <= " " for char in url):
            raise InputError("must be a plain address", file="--target", value=url, allowed=_URL_FORMS)
        path = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], path)

    @property
    def authority(self) -> str:
        """`host[:port]` as the Host header wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def url(self, path: str = "") -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}{path}"


def tls_context(origin: Origin, *, ca_file: Path | None = None, insecure: bool = False) -> ssl.SSLContext | None:
    """The TLS settings for `origin`, None for plain http. Certificates are verified unless `insecure` was asked for.

    Raises:
        InputError: `ca_file` cannot be read or holds no certificate; options that contradict each other.
    """
    if insecure and ca_file:
        raise InputError("contradicts --ca-file", file="--insecure", allowed="one of the two")
    if origin.scheme == "http":
        if insecure or ca_file:
            raise InputError("has no meaning for a http:// target", file="--ca-file" if ca_file else "--insecure")
        return None
    try:
        # PROTOCOL_TLS_CLIENT verifies by default; gevent's class makes sockets that wait in the event loop
        context = gevent.ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if ca_file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cafile=str(ca_file))
    except OSError as error:  # ssl.SSLError is one
        allowed = "a PEM file of certificates"
        raise InputError(f"cannot be used: {error.strerror or error}", file=ca_file, allowed=allowed) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    assert isinstance(context, ssl.SSLContext)  # noqa: S101  gevent's context is a subclass; its module is untyped
    return context


def read_token(token_file: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The bearer token from `token_file`, else from the environment, else None. It is never logged or recorded.

    Raises:
        InputError: the file cannot be read, or the token could not stand in a header. The token is not quoted.
    """
    if token_file is not None:
        source: object = token_file
        try:
            with token_file.open("rb") as stream:
                text = stream.read(_MAX_TOKEN_BYTES + 1).decode("ascii", "replace").strip()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=token_file) from error
    else:
        source = next((name for name in TOKEN_VARIABLES if environment.get(name)), None)
        if source is None:
            return None
        text = environment[str(source)].strip()
    if not text or len(text) > _MAX_TOKEN_BYTES or not all("!" <= char <= "~" for char in text):
        raise InputError("is not a bearer token", file=source, allowed="one line of printable ASCII without blanks")
    return text
