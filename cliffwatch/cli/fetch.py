"""One bounded request, for commands that look at a server once."""

from __future__ import annotations

import os
import ssl
import time
import urllib.error
import urllib.request
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from cliffwatch.errors import InputError, UnreachableError

TIMEOUT_S = 10.0
_NOT_THERE = {404, 405, 501}
_PIECE = 1 << 16


class UntrustedError(UnreachableError):
    """The certificate that was shown is of no authority that is trusted, or of another host, or out of date."""


def fetch(url: str, *, limit: int, missing_ok: bool = False) -> str | None:
    """The text at `url`, at most `limit` bytes; None where there is nothing and `missing_ok`. TLS is verified; the
    token of CLIFFWATCH_API_KEY goes along where that is set.

    Raises:
        InputError: no http(s) address.
        UnreachableError: nobody answers, or with an error, or with more than the limit.
    """
    refuse_address(url)
    token = os.environ.get("CLIFFWATCH_API_KEY")
    status, reason, body = exchange(
        url, authorization=f"Bearer {token}" if token else None, limit=limit, timeout_s=TIMEOUT_S
    )
    if status < 300:
        return body.decode("utf-8", errors="replace")
    if missing_ok and status in _NOT_THERE:
        return None
    raise UnreachableError(f"answered {status} {reason}", file=url)


def refuse_address(url: str) -> None:
    """Raises InputError unless `url` is http(s) with a host, and without a name or password, which logs would show."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"is no address: {error}", field="URL", value=url) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        allowed = "http://HOST[:PORT][/PATH] or https://..., without a name or password"
        raise InputError(
            "is no address to ask", field="URL", value=f"{parts.scheme}://{parts.hostname}", allowed=allowed
        )


def exchange(
    url: str,
    *,
    authorization: str | None,
    limit: int,
    timeout_s: float,
    form: bytes | None = None,
    trust: ssl.SSLContext | None = None,
) -> tuple[int, str, bytes]:
    """Status, reason and body of a GET, or of a POST of `form`; all of it within `timeout_s`. `authorization` is
    that header's value; `trust` stands in place of the system's certificate authorities.

    Raises:
        UntrustedError: the server's certificate does not hold.
        UnreachableError: nobody answers, or not in time, or with more than `limit` bytes.
    """
    ends = time.monotonic() + timeout_s
    request = urllib.request.Request(url, data=form, headers={"User-Agent": "cliffwatch"})  # noqa: S310  checked
    if authorization:
        request.add_unredirected_header("Authorization", authorization)
    context = trust or _tls()
    try:
        with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:  # noqa: S310
            return answer.status, answer.reason, _read(answer, url, limit, ends)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.reason, _read(error, url, limit, ends)
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise UntrustedError(
                f"shows a certificate that is not trusted: {reason.verify_message}", file=url
            ) from error
        raise UnreachableError(f"cannot be asked: {reason}", file=url) from error


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the system's certificates takes longer than most answers."""
    return ssl.create_default_context()


def _read(answer: Any, url: str, limit: int, ends: float) -> bytes:
    """The body, piece by piece: the socket's time-out alone would let a server that drips hold us for ever."""
    pieces, size = [], 0
    while piece := answer.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise UnreachableError("answers with too much", file=url, allowed=f"up to {limit} bytes")
        if time.monotonic() > ends:
            raise UnreachableError("cannot be asked: its answer takes too long", file=url)
    return b"".join(pieces)
