"""Instants as people write them."""

from __future__ import annotations

import pytest

from cliffwatch.slo.backtest.times import parse_instant, utc_iso

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-09-21T14:13:20Z", NOW),
        ("2026-09-21 16:13:20+02:00", NOW),
        ("2026-09-21T14:13:20", NOW),  # UTC where no zone is given
        ("2026-09-21", NOW - 14 * 3600 - 13 * 60 - 20),
        ("1790000000", NOW),
        ("1790000000.5", NOW + 0.5),
        ("30d ago", NOW - 30 * 86_400),
        ("90m AGO", NOW - 5400),
        ("now", NOW),
    ],
)
def test_forms(text: str, seconds: float) -> None:
    assert parse_instant(text, now_s=NOW) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "5", "1790000000000", "30d", "1e99d ago", "-5d ago", "9999-01-01", "0001-01-01", "inf"]
)
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_instant(text, now_s=NOW)


def test_written_in_utc() -> None:
    assert utc_iso(NOW) == "2026-09-21T14:13:20Z"
