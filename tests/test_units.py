"""Quantities as people write them."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.units import (
    format_seconds,
    format_tokens,
    parse_number,
    parse_seconds,
    parse_share,
    parse_tokens,
    parse_whole,
)

PARSERS = [parse_seconds, parse_tokens, parse_share, parse_number, parse_whole]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (2.5, 2.5),
        (0, 0.0),
        ("2.5", 2.5),
        ("250ms", 0.25),
        ("40us", 4e-5),
        ("2s", 2.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("30d", 2_592_000.0),
        (" 1.5 s ", 1.5),
        (".5s", 0.5),
        ("1e3ms", 1.0),
        ("-1s", -1.0),
    ],
)
def test_seconds(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(("unit", "parts"), [("ms", 1000), ("us", 1_000_000)])
def test_a_threshold_is_the_number_that_a_figure_can_equal(unit: str, parts: int) -> None:
    """13 ms is 0.013, as 13,000,000 ns / 1e9 is, not the 0.013000000000000001 of a float product."""
    assert all(parse_seconds(f"{n}{unit}") == n / parts for n in range(2000))


@pytest.mark.parametrize(
    ("text", "tokens"), [(512, 512), ("512", 512), ("1k", 1024), ("32K", 32768), ("1.5k", 1536), (3.0, 3), ("010", 10)]
)
def test_tokens(text: object, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "share"), [(0.95, 0.95), ("95%", 0.95), ("99.9%", 0.999), ("99.99999 %", 0.9999999), (1, 1.0), ("0%", 0.0)]
)
def test_shares_are_exact_in_decimal(text: object, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize(("text", "whole"), [(7, 7), ("7", 7), ("1e6", 1_000_000), (2.0, 2), ("-3", -3)])
def test_whole_numbers(text: object, whole: int) -> None:
    assert parse_whole(text) == whole


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, [], {}, b"1", "", " ", "x", "1 parsec", "1;2", "1 2", "--1", "1..2", "0x10", "1_000"),
        *(math.inf, -math.inf, math.nan, "inf", "nan", "1e999999999", "1e-999999999", "9" * 5000, "1" + "0" * 400),
        *("٣", "1:30", "ms", "%", "1s2", "1e", "e3"),
    ],
)
def test_refuses_everything_else(parse: object, value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parse", "value"),
    [
        (parse_seconds, "5min"),
        (parse_seconds, "5S"),
        (parse_seconds, "5%"),
        (parse_seconds, "1e400"),
        (parse_tokens, 1.5),
        (parse_tokens, "1.0001k"),
        (parse_tokens, "2kb"),
        (parse_tokens, "3s"),
        (parse_tokens, 2**31 + 1),
        (parse_share, 95),
        (parse_share, "100.1%"),
        (parse_share, -0.1),
        (parse_share, "5s"),
        (parse_number, "4/s"),
        (parse_number, "1e400"),
        (parse_whole, 1.5),
        (parse_whole, "1k"),
        (parse_whole, 2**63 + 1),
    ],
)
def test_refuses_what_belongs_to_another_quantity(parse: object, value: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0.0, "0 µs"),
        (4e-5, "40 µs"),
        (0.00099961, "1 ms"),
        (0.0123456, "12.3 ms"),
        (0.25, "250 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.0, "1 s"),
        (2.5, "2.5 s"),
        (60.0, "60 s"),
        (119.96, "2 min"),
        (120.0, "2 min"),
        (3600.0, "60 min"),
        (7199.0, "2 h"),
        (86400.0, "24 h"),
        (2_592_000.0, "720 h"),
        (1e8, "27778 h"),
        (-0.25, "-250 ms"),
    ],
)
def test_lengths_of_time_for_people(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text


@given(seconds=st.floats(1e-6, 3e6))
def test_a_length_of_time_is_shown_to_three_digits(seconds: float) -> None:
    number, unit = format_seconds(seconds).split()
    shown = float(number) * {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}[unit]
    assert shown == pytest.approx(seconds, rel=0.0051)
    assert "e" not in number


@given(tokens=st.integers(0, 1 << 31))
def test_token_counts_read_back(tokens: int) -> None:
    assert parse_tokens(format_tokens(tokens)) == tokens


@given(value=st.text(max_size=12) | st.integers() | st.floats() | st.none())
def test_any_value_is_read_or_refused(value: object) -> None:
    for parse in PARSERS:
        with contextlib.suppress(ValueError):
            assert math.isfinite(parse(value))
