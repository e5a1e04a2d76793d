"""A Prometheus server, asked over its HTTP API: bounded in time and size, several questions side by side."""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from cliffwatch.cli.fetch import UntrustedError, exchange, refuse_address
from cliffwatch.errors import CliffwatchError, InputError, UnreachableError, shorten
from cliffwatch.slo.live.asks import Ask, Reply

TOKEN_VARIABLE = "CLIFFWATCH_PROMETHEUS_TOKEN"
BASIC_VARIABLE = "CLIFFWATCH_PROMETHEUS_BASIC_AUTH"
TIMEOUT_S = 10.0
MAX_BYTES = 64 << 20
MAX_TOKEN_BYTES = 64 << 10
SIDE_BY_SIDE = 4
_BUSY = {429, 502, 503, 504}
_WAIT_S = 0.5  # before the second attempt; twice as long before each further one

_MEND = "one of the system's authorities; or --prometheus-ca-file FILE with the authority that signed it"


class _Refusal(msgspec.Struct):
    error: str = ""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The server at `url` (a path before `/api` allowed, as of a proxy or a multi-tenant store).

    Attributes:
        authorization: the header's value.
        trust: certificate authorities in place of the system's.
        attempts: how often a question is put while the server says that it is busy.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S
    trust: ssl.SSLContext | None = None
    attempts: int = 1

    def ask(self, one: Ask) -> bytes:
        """The answer's text.

        Raises:
            UnreachableError: nobody answers, not in time, with too much, or with an error; in Prometheus's own words.
        """
        form = urlencode(one.form).encode() if one.form else None
        address = self.url.rstrip("/") + one.path
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(_WAIT_S * 2 ** (attempt - 1))
            status, reason, body = self._exchange(address, form)
            if status not in _BUSY:
                break
        if status >= 300:
            raise UnreachableError(f"answered {status} {_words(body) or reason}", file=self.url)
        return body

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """Answers in the order of the questions; an error in the place of the answer that could not be had."""
        if len(asks) < 2:
            return [self._reply(one) for one in asks]
        with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(asks))) as pool:
            return list(pool.map(self._reply, asks))

    def _exchange(self, address: str, form: bytes | None) -> tuple[int, str, bytes]:
        try:
            return exchange(
                address,
                authorization=self.authorization,
                limit=MAX_BYTES,
                timeout_s=self.timeout_s,
                form=form,
                trust=self.trust,
            )
        except UntrustedError as error:
            raise UntrustedError(error.message, file=self.url, allowed=_MEND) from error

    def _reply(self, one: Ask) -> Reply:
        try:
            return self.ask(one)
        except CliffwatchError as error:
            return error


def prometheus(
    url: str,
    token_file: Path | None = None,
    *,
    basic_auth_file: Path | None = None,
    ca_file: Path | None = None,
    timeout_s: float = TIMEOUT_S,
    attempts: int = 1,
) -> Prometheus:
    """The server at `url`, with the bearer token or the USER:PASSWORD of a file, else of the environment, else neither.

    Raises InputError for what is no address, a file that cannot be read, or two ways to say who we are.
    """
    refuse_address(url)
    given = {
        "Bearer": secret(token_file, field="--prometheus-token-file") if token_file else "",
        "Basic": secret(basic_auth_file, field="--prometheus-basic-auth-file") if basic_auth_file else "",
    }
    if not any(given.values()):
        given = {"Bearer": os.environ.get(TOKEN_VARIABLE, ""), "Basic": os.environ.get(BASIC_VARIABLE, "")}
    if all(given.values()):
        raise InputError("do not go together", field="bearer token and basic authentication", allowed="one of them")
    for kind, variable in (("Bearer", TOKEN_VARIABLE), ("Basic", BASIC_VARIABLE)):
        if not _fits_a_header(given[kind]):
            raise InputError("cannot stand in a header", field=variable, allowed="printable ASCII")
    if (basic := given["Basic"]) and ":" not in basic:
        raise InputError("is not what basic authentication needs", field=BASIC_VARIABLE, allowed="USER:PASSWORD")
    given["Basic"] = base64.b64encode(basic.encode()).decode()
    authorization = next((f"{kind} {value}" for kind, value in given.items() if value), None)
    return Prometheus(url, authorization, timeout_s, _trust(ca_file) if ca_file else None, attempts)


def _trust(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        message = f"holds no certificates of authorities: {error.strerror or error}"
        raise InputError(message, file=ca_file, field="--prometheus-ca-file", allowed="a PEM file") from error


def secret(path: Path, *, field: str) -> str:
    """The one line of a file that holds a secret. Raises InputError."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_TOKEN_BYTES + 1).decode("latin-1").strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path, field=field) from error
    if not text or len(text) > MAX_TOKEN_BYTES or not _fits_a_header(text):
        raise InputError("is no token", file=path, field=field, allowed="one line of printable ASCII, not empty")
    return text


def _fits_a_header(text: str) -> bool:
    """Else the error of the HTTP library would repeat the secret."""
    return text.isascii() and (not text or text.isprintable())


def _words(body: bytes) -> str:
    try:
        return shorten(msgspec.json.decode(body, type=_Refusal).error, 300).strip("'")
    except msgspec.DecodeError:
        return ""
