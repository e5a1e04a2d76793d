"""Where requests go, and how who answers there is trusted, and who asks: URL and TLS."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import gevent.ssl

from cliffwatch.errors import InputError
from loadgen.identity import BASIC_VARIABLE, KEY_PASSWORD_VARIABLE, NO_SECRETS, TOKEN_VARIABLES, SecretFiles

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_FORMS = "http://HOST[:PORT][/PATH] or https://..."


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
            allowed = f"USER:PASSWORD in {BASIC_VARIABLE} or --basic-auth-file, a token in {TOKEN_VARIABLES[0]}"
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
        whole = authority(self.host, self.port)
        return whole.removesuffix(f":{_DEFAULT_PORTS[self.scheme]}")

    def url(self, path: str = "") -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}{path}"


def authority(host: str, port: int) -> str:
    """`host:port`, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tls_context(
    origin: Origin, secrets: SecretFiles = NO_SECRETS, *, ca_file: Path | None = None, insecure: bool = False
) -> ssl.SSLContext | None:
    """The TLS settings for `origin`, None for plain http. Certificates are verified unless `insecure` was asked for.

    Raises:
        InputError: a file cannot be read or holds no certificate or key; options that contradict each other.
    """
    if insecure and ca_file:
        raise InputError("contradicts --ca-file", file="--insecure", allowed="one of the two")
    if secrets.client_key and not secrets.client_cert:
        raise InputError("has no meaning alone", file="--client-key", allowed="with --client-cert")
    if origin.scheme == "http":
        given = {"--insecure": insecure, "--ca-file": ca_file, "--client-cert": secrets.client_cert}
        if useless := next((name for name, value in given.items() if value), None):
            raise InputError("has no meaning for a http:// target", file=useless)
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
    if secrets.client_cert is not None:
        _show_certificate(context, secrets.client_cert, secrets.client_key)
    assert isinstance(context, ssl.SSLContext)  # noqa: S101  gevent's context is a subclass; its module is untyped
    return context


def _show_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Have a context show who we are. Raises InputError, which quotes neither key nor password."""

    def password() -> str:
        given = os.environ.get(KEY_PASSWORD_VARIABLE)
        if given is None:  # else OpenSSL would ask on the terminal
            allowed = f"its password in {KEY_PASSWORD_VARIABLE}"
            raise InputError("is encrypted", file=key or certificate, allowed=allowed)
        return given

    for path in filter(None, (certificate, key)):
        if not os.access(path, os.R_OK) or path.is_dir():
            raise InputError("cannot be read", file=path, allowed="a PEM file")
    try:
        context.load_cert_chain(str(certificate), None if key is None else str(key), password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: a password over 1 KiB
        why = getattr(error, "reason", None) or "not PEM, or not the key of this certificate"
        allowed = f"a PEM certificate with its key and the right {KEY_PASSWORD_VARIABLE}, if it has one"
        raise InputError(f"cannot be used: {why}".lower(), file=key or certificate, allowed=allowed) from error
