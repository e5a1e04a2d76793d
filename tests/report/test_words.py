"""Figures as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.report import words
from cliffwatch.slo.judgement import Quantile


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.5, "50.0 %"), (0.95, "95.0 %"), (0.9949, "99.49 %"),
        (0.9995, "99.950 %"), (0.99999, "99.9990 %"), (0.0017, "0.17 %"), (0.25, "25.0 %"),
    ],
)  # fmt: skip
def test_share(value: float | None, text: str) -> None:
    assert words.share(value) == text


def test_what_is_just_under_a_target_does_not_read_as_on_it() -> None:
    assert words.share(0.9496) == "95.0 %"
    assert words.attained(0.9496) == "94.9 %"
    assert words.attained(0.95) == "95.0 %"
    assert words.interval(0.98991, 1.0) == "98.9–100 %"
    assert words.interval(0.5, 0.9491) == "50.0–95.0 %"
    assert words.interval(None, None) == "–"


@given(good=st.integers(0, 1_000_000), bad=st.integers(0, 1_000_000))
def test_a_share_reads_as_all_or_nothing_only_when_it_is(good: int, bad: int) -> None:
    if good + bad == 0:
        return
    text = words.share(good / (good + bad))
    assert (float(text.removesuffix(" %")) == 100) == (bad == 0)
    assert (float(text.removesuffix(" %")) == 0) == (good == 0)


@pytest.mark.parametrize(
    ("value", "text"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.5, "50 %"), (0.9999999, "99.99999 %")]
)
def test_targets_read_as_they_were_written(value: float, text: str) -> None:
    assert words.target(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.000682667, "0.000683 USD"),
        (3.1725, "3.17 USD"),
        (1234.5, "1,234 USD"),
        (0, "0 USD"),
        (2e-9, "0.000000002 USD"),
    ],
)
def test_money_has_no_exponent(value: float | None, text: str) -> None:
    assert words.usd(value) == text


def test_unknown_and_few_are_marked() -> None:
    assert words.quantile(Quantile(value=None, n=3, few=True)) == "–"
    assert words.quantile(Quantile(value=0.25, n=30, few=True)) == "250 ms†"
    assert words.quantile(Quantile(value=0.25, n=300, few=False)) == "250 ms"
    assert words.quantile(None) == "–"
    assert words.number(None) == "–"
