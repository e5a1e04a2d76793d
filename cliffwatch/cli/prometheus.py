"""A Prometheus server, asked over its HTTP API: bounded in time and size, several questions side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from cliffwatch.cli.fetch import exchange, refuse_address
from cliffwatch.errors import CliffwatchError, InputError, UnreachableError, shorten
from cliffwatch.slo.live.asks import Ask, Reply

TOKEN_VARIABLE = "CLIFFWATCH_PROMETHEUS_TOKEN"
TIMEOUT_S = 10.0
MAX_BYTES = 64 << 20
MAX_TOKEN_BYTES = 64 << 10
SIDE_BY_SIDE = 4


class _Refusal(msgspec.Struct):
    error: str = ""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The server at `url` (a path before `/api` allowed, as of a proxy or a multi-tenant store)."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S

    def ask(self, one: Ask) -> bytes:
        """The answer's text.

        Raises:
            UnreachableError: nobody answers, not in time, or with an error; with Prometheus's own words for it.
            InputError: the answer is too large.
        """
        form = urlencode(one.form).encode() if one.form else None
        address = self.url.rstrip("/") + one.path
        status, reason, body = exchange(address, token=self.token, limit=MAX_BYTES, timeout_s=self.timeout_s, form=form)
        if status >= 300:
            raise UnreachableError(f"answered {status} {_words(body) or reason}", file=self.url)
        return body

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """Answers in the order of the questions; an error in the place of the answer that could not be had."""
        if len(asks) < 2:
            return [self._reply(one) for one in asks]
        with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(asks))) as pool:
            return list(pool.map(self._reply, asks))

    def _reply(self, one: Ask) -> Reply:
        try:
            return self.ask(one)
        except CliffwatchError as error:
            return error


def prometheus(url: str, token_file: Path | None = None, *, timeout_s: float = TIMEOUT_S) -> Prometheus:
    """The server at `url` with the bearer token of `token_file`, or of CLIFFWATCH_PROMETHEUS_TOKEN where that is set.

    Raises InputError for what is no address, or a file that cannot be read.
    """
    refuse_address(url)
    token = secret(token_file, field="--prometheus-token-file") if token_file else os.environ.get(TOKEN_VARIABLE)
    return Prometheus(url, token or None, timeout_s)


def secret(path: Path, *, field: str) -> str:
    """The one line of a file that holds a secret. Raises InputError."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_TOKEN_BYTES + 1).decode("ascii").strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path, field=field) from error
    except UnicodeDecodeError as error:
        raise InputError("is no token", file=path, field=field, allowed="ASCII text") from error
    if not text or len(text) > MAX_TOKEN_BYTES or not text.isprintable():
        raise InputError("is no token", file=path, field=field, allowed="one line, not empty")
    return text


def _words(body: bytes) -> str:
    try:
        return shorten(msgspec.json.decode(body, type=_Refusal).error, 300).strip("'")
    except msgspec.DecodeError:
        return ""
