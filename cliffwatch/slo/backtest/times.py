"""Instants as people write them: `2026-05-01`, `2026-05-01T12:00:00+02:00`, Unix seconds, `30d ago`, `now`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cliffwatch.units import parse_seconds

INSTANT_FORMS = "ISO 8601 (UTC where no zone is given), Unix seconds, a time span such as `30d ago`, or now"
_AGO = re.compile(r"\s*(\S+)\s+ago\s*", re.IGNORECASE)
_UNIX = re.compile(r"\d{9,10}(\.\d{1,9})?")
_LAST_S = 4_102_444_800.0  # the year 2100: later ones are milliseconds, or a slip


def parse_instant(text: object, *, now_s: float) -> float:
    """Unix seconds. Raises ValueError, with the forms that are allowed, for anything else and for the years before 1973
    and after 2099."""
    written = str(text).strip()
    instant = _instant(written, now_s)
    if instant is None or not 1e8 <= instant < _LAST_S:
        raise ValueError(f"must be {INSTANT_FORMS}")
    return instant


def _instant(written: str, now_s: float) -> float | None:
    if written.lower() == "now":
        return now_s
    if ago := _AGO.fullmatch(written):
        return now_s - seconds if (seconds := parse_seconds(ago[1])) >= 0 else None
    if _UNIX.fullmatch(written):
        return float(written)
    try:
        parsed = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def utc_text(instant_s: float) -> str:
    """`2026-05-01 12:00:30`, in UTC."""
    return datetime.fromtimestamp(round(instant_s), UTC).strftime("%Y-%m-%d %H:%M:%S")


def utc_iso(instant_s: float) -> str:
    """`2026-05-01T12:00:30Z`."""
    return datetime.fromtimestamp(round(instant_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
