"""Burn-rate arithmetic against figures worked out by hand and those of the SRE Workbook (99.9 %, 30 days)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cliffwatch.slo.burn import (
    DAY_S,
    HOUR_S,
    MONTH_S,
    STANDARD_PAIRS,
    budget_left,
    burn_alert,
    burn_rate,
    error_budget,
    exhausted_after_s,
    least_target,
)

THREE_NINES = Decimal("0.999")
FAST, SLOW, DAY, THREE_DAYS = STANDARD_PAIRS


def test_a_budget_is_exact() -> None:
    assert str(error_budget(THREE_NINES)) == "0.001"
    assert str(error_budget(Decimal("0.9999999"))) == "1E-7"


@pytest.mark.parametrize("target", ["0", "1", "-1", "1.005"])
def test_what_leaves_no_budget_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        error_budget(Decimal(target))


def test_the_workbooks_factors() -> None:
    assert [burn_alert(pair, THREE_NINES).factor for pair in STANDARD_PAIRS] == [Decimal("14.4"), 6, 3, 1]
    assert [str(burn_alert(pair, THREE_NINES).ratio.normalize()) for pair in STANDARD_PAIRS] == [
        "0.0144", "0.006", "0.003", "0.001",
    ]  # fmt: skip


def test_factors_follow_the_period() -> None:
    """2 % of 7 days in an hour is a burn rate of 3.36, of 90 days 43.2."""
    assert burn_alert(FAST, THREE_NINES, 7 * DAY_S).factor == Decimal("3.36")
    assert burn_alert(FAST, THREE_NINES, 90 * DAY_S).factor == Decimal("43.2")


def test_when_alerts_fire() -> None:
    fast, slow = burn_alert(FAST, THREE_NINES), burn_alert(SLOW, THREE_NINES)
    assert fast.fires_after_s(1.0) == pytest.approx(51.84)
    assert fast.fires_after_s(0.02) == pytest.approx(43.2 * 60)
    assert fast.fires_after_s(0.014) is None
    assert slow.fires_after_s(0.014) == pytest.approx(2.571428 * HOUR_S, rel=1e-6)
    assert burn_alert(THREE_DAYS, THREE_NINES).fires_after_s(0.001) is None


def test_an_alert_ends_with_its_short_window() -> None:
    """At 100 % bad the short window falls under 0.0144 when 98.56 % of it is past."""
    assert burn_alert(FAST, THREE_NINES).resolves_after_s(1.0) == pytest.approx(300 * 0.9856)


def test_a_factor_that_can_never_fire_is_replaced_and_said() -> None:
    """At 90 % the greatest burn rate is 10. 14.4 is out of reach; half of the events bad is a rate of 5."""
    alert = burn_alert(FAST, Decimal("0.9"))
    assert alert.mended_from == Decimal("14.4")
    assert (alert.factor, alert.ratio) == (5, Decimal("0.5"))
    assert alert.fires_after_s(1.0) == HOUR_S / 2
    assert burn_alert(SLOW, Decimal("0.9")).mended_from is None
    assert burn_alert(DAY, Decimal("0.9")).mended_from is None


def test_the_target_where_14_4_ends() -> None:
    assert round(least_target(Decimal("14.4")), 4) == Decimal("0.9306")
    assert burn_alert(FAST, Decimal("0.9305")).mended_from is not None
    assert burn_alert(FAST, Decimal("0.9306")).mended_from is None


def test_budgets_are_weighted_by_events() -> None:
    """Half an hour at 1 a minute all bad, then half an hour at 999 a minute all good: 30 of 30,000 are bad."""
    assert budget_left(30, 30_000, THREE_NINES) == pytest.approx(0.0, abs=1e-12)
    assert budget_left(0, 30_000, THREE_NINES) == 1
    assert budget_left(60, 30_000, THREE_NINES) == pytest.approx(-1)
    assert budget_left(0, 0, THREE_NINES) is None


def test_exhaustion() -> None:
    assert exhausted_after_s(0.001, THREE_NINES) == pytest.approx(MONTH_S)
    assert exhausted_after_s(1.0, THREE_NINES) == pytest.approx(43.2 * 60)
    assert exhausted_after_s(0.02, THREE_NINES, left=0.5) == pytest.approx(MONTH_S / 40)
    assert exhausted_after_s(0.0, THREE_NINES) is None
    assert exhausted_after_s(0.1, THREE_NINES, left=-0.2) == 0


@given(
    st.sampled_from(STANDARD_PAIRS),
    st.decimals("0.001", "0.99999", places=5),
    st.integers(7, 90),
    st.floats(1e-6, 1.0),
)
def test_every_alert_can_fire_and_only_above_its_rate(pair, target, days, bad) -> None:  # type: ignore[no-untyped-def]
    alert = burn_alert(pair, target, days * DAY_S)
    assert 0 < alert.ratio < 1
    assert alert.fires_after_s(1.0) is not None
    after_s = alert.fires_after_s(bad)
    assume(abs(burn_rate(bad, target) / float(alert.factor) - 1) > 1e-9)
    assert (after_s is not None) == (burn_rate(bad, target) > float(alert.factor))
    if after_s is not None and alert.mended_from is None:  # by then it has spent its share of the budget, no more
        assert after_s <= pair.long_s
        spent = after_s / exhausted_after_s(bad, target, days * DAY_S)
        assert spent == pytest.approx(float(pair.budget_share))
