"""One bounded GET, for commands that look at a server once."""

from __future__ import annotations

import os
import ssl
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from cliffwatch.errors import InputError, UnreachableError

TIMEOUT_S = 10.0
_NOT_THERE = {404, 405, 501}


def fetch(url: str, *, limit: int, missing_ok: bool = False) -> str | None:
    """The text at `url`, at most `limit` bytes; None where there is nothing and `missing_ok`. TLS is verified; the
    token of CLIFFWATCH_API_KEY goes along where that is set.

    Raises:
        InputError: no http(s) address, or an answer over the limit.
        UnreachableError: nobody answers, or with an error.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"is no address: {error}", field="URL", value=url) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        allowed = "http://HOST[:PORT][/PATH] or https://..., without a name or password"
        raise InputError(
            "is no address to ask", field="URL", value=f"{parts.scheme}://{parts.hostname}", allowed=allowed
        )
    request = urllib.request.Request(url, headers={"User-Agent": "cliffwatch"})  # noqa: S310  scheme checked above
    if token := os.environ.get("CLIFFWATCH_API_KEY"):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        context = ssl.create_default_context()
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:  # noqa: S310
            body: bytes = answer.read(limit + 1)
    except urllib.error.HTTPError as error:
        if missing_ok and error.code in _NOT_THERE:
            return None
        raise UnreachableError(f"answered {error.code} {error.reason}", file=url) from error
    except (OSError, ValueError) as error:
        raise UnreachableError(f"cannot be asked: {getattr(error, 'reason', error)}", file=url) from error
    if len(body) > limit:
        raise InputError("answers with too much", file=url, allowed=f"up to {limit} bytes")
    return body.decode("utf-8", errors="replace")
