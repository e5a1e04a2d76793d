"""What an HTTP response other than a good stream means: its outcome, a line for people, when to come back."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

from cliffwatch.records.schema import Outcome
from cliffwatch.stream.openai_wire import tidy

MAX_BODY_BYTES = 64 << 10
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)


def classify_http(
    status: int,
    content_type: str,
    body: bytes,
    *,
    retry_after: str | None = None,
    now_unix_s: float | None = None,
) -> tuple[Outcome, str, float | None]:
    """Outcome, message and seconds to wait of a response that is no stream of tokens.

    Args:
        status: the HTTP status. A 200 comes here when its content type is not the dialect's.
        content_type: as sent; may be empty.
        body: as much of it as was read; 64 KiB are looked at.
        retry_after: the Retry-After field: seconds or an HTTP date (RFC 9110, 10.2.3). Nonsense counts as absent.
        now_unix_s: the wall clock that an HTTP date is compared with; the present unless given.
    """
    said = _said(content_type, body[:MAX_BODY_BYTES])
    wait_s = (
        None if retry_after is None else _retry_after_s(retry_after, time.time() if now_unix_s is None else now_unix_s)
    )
    return _outcome(status), tidy(f"HTTP {status}: {said}" if said else f"HTTP {status}"), wait_s


def _outcome(status: int) -> Outcome:
    if status == 429:
        return Outcome.HTTP_429
    if 400 <= status < 500:
        return Outcome.HTTP_4XX
    if 500 <= status < 600:
        return Outcome.HTTP_5XX
    return Outcome.PROTOCOL  # a redirect, an empty 204, a 200 of the wrong type: nothing of the dialect


def _said(content_type: str, body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip().removeprefix("data:").strip()  # Triton frames its 400 as an event
    try:
        return _message(json.loads(text)) or text
    except (ValueError, RecursionError):
        pass
    if "html" in content_type.lower() or text[:15].lower().startswith(("<!doctype", "<html")):
        title = _TITLE.search(text)
        return f"HTML page: {(title[1] if title else _TAGS.sub(' ', text)).strip()}"
    return text


def _message(body: object) -> str:
    """The message in an error body of vLLM and llama.cpp (`error.message`), SGLang (`message`), FastAPI (`detail`)."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, (_message(item) for item in body)))
    if not isinstance(body, dict):
        return ""
    if "msg" in body:  # one finding of FastAPI's validation
        place = ".".join(str(part) for part in body["loc"]) if isinstance(body.get("loc"), list) else ""
        return f"{place}: {body['msg']}" if place else str(body["msg"])
    return next((said for key in ("error", "message", "detail") if (said := _message(body.get(key)))), "")


def _retry_after_s(value: str, now_unix_s: float) -> float | None:
    value = value.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:  # asctime form: HTTP dates are always UTC
        when = when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now_unix_s)
