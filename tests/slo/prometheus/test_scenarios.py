"""When alerts must fire: scenarios against times worked out by hand and those of the SRE Workbook's alerts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.slo.burn import DAY_S, MONTH_S, STANDARD_PAIRS, burn_alert, error_budget
from cliffwatch.slo.prometheus.scenarios import Check, Scenario, scenarios
from cliffwatch.slo.prometheus.terms import Part, Terms, enough_events


def terms(target: str = "0.999", period_s: int = MONTH_S, *, failures_counted: bool = True) -> Terms:
    alerts = tuple(burn_alert(pair, Decimal(target), period_s) for pair in STANDARD_PAIRS)
    return Terms(alerts, error_budget(Decimal(target)), enough_events(alerts, 5), failures_counted, True, True)


def named(name: str, of: Terms) -> Scenario:
    (found,) = [one for one in scenarios(of) if one.name == name]
    return found


def around(name: str, alert: str) -> list[tuple[int, bool]]:
    """Minutes after the onset at which an alert must be silent and firing."""
    scenario = named(name, terms())
    return [(check.minute - scenario.onset, check.firing) for check in scenario.checks if check.alert == alert]


@pytest.mark.parametrize(
    ("name", "alert", "silent", "firing"),
    [
        ("100 % bad, SloBurn1h", "SloBurn1h", 0, 1),  # 0.0144 of an hour: 51.84 s
        ("2 % bad, SloBurn1h", "SloBurn1h", 42, 44),  # 0.0144 / 0.02 of an hour: 43.2 min
        ("1 % bad, SloBurn6h", "SloBurn6h", 210, 220),  # 0.006 / 0.01 of 6 h: 216 min, in steps of 5
        ("1 % bad, SloBurn1d", "SloBurn1d", 420, 440),  # 0.003 / 0.01 of 24 h: 432 min, in steps of 20
        ("1 % bad, SloBurn3d", "SloBurn3d", 420, 480),  # 0.001 / 0.01 of 72 h: 432 min, in steps of 60
    ],
)
def test_an_alert_turns_between_two_evaluations(name: str, alert: str, silent: int, firing: int) -> None:
    assert around(name, alert) == [(silent, False), (firing, True)]


def test_what_never_fires_is_asked_where_every_window_holds_the_share() -> None:
    """1 % of 99.9 % is 10 times too fast: under 14.4, over 6, 3 and 1."""
    for_ever = named("1 % bad, for ever", terms())
    assert {check.alert: check.firing for check in for_ever.checks} == {
        "SloBurn1h": False, "SloBurn6h": True, "SloBurn1d": True, "SloBurn3d": True,
    }  # fmt: skip


def test_on_a_threshold_nothing_is_claimed() -> None:
    """At 95 % the slowest alert's threshold is 5 % itself."""
    for_ever = named("5 % bad, for ever", terms("0.95"))
    assert [check.alert for check in for_ever.checks] == ["SloBurn1h", "SloBurn6h", "SloBurn1d"]


def test_recovery_ends_with_the_short_window() -> None:
    """5 minutes less 1.44 % of them: 4.93 min after the end, by one sample of five more or less."""
    recovery = named("recovery", terms())
    assert recovery.onset == 67
    assert [(check.minute - 67, check.firing) for check in recovery.checks] == [(0, True), (3, True), (6, False)]


def test_slices_are_bad_as_a_whole() -> None:
    """Slices of 5 minutes that allow 5 %: at 20 % one is bad after 75 s; 14.4 % of an hour is 8.64 min."""
    of = replace(terms("0.99"), parts=(Part(slices=(5, Decimal("0.05"))),))
    fast = of.alerts[0]
    assert of.fires_after_s(Decimal("0.2"), fast) == pytest.approx(8.64 * 60 + 75)
    assert of.fires_after_s(Decimal("0.04"), fast) is None
    assert of.compared(Decimal("0.05"), fast) == 0
    assert [of.counted(Decimal(share)) for share in ("0.04", "0.2")] == [0, 1]


def test_failures_that_are_no_series_of_their_own_need_no_scenario() -> None:
    assert "no failure yet" in {one.name for one in scenarios(terms())}
    assert "no failure yet" not in {one.name for one in scenarios(terms(failures_counted=False))}


@pytest.mark.parametrize(("least", "bad"), [(1, None), (2, 1), (5, 2), (1_000_000, 500_000)])
def test_few_failures_are_half_of_what_an_alert_needs(least: int, bad: int | None) -> None:
    found = [one for one in scenarios(replace(terms(), min_bad_events=least)) if one.name == "few failures"]
    assert [sum(phase.bad for phase in one.pods[0].phases) for one in found] == ([] if bad is None else [bad])
    assert not any(check.firing for one in found for check in one.checks)


@settings(max_examples=15, deadline=None)
@given(
    target=st.decimals("0.5", "0.999999", places=6),
    days=st.integers(1, 90),
)
def test_every_scenario_is_whole_whatever_is_promised(target: Decimal, days: int) -> None:
    """Whole events that a float holds exactly, nothing asked after the end, no alert both ways at a minute."""
    found = scenarios(terms(str(target), days * DAY_S))
    assert len({one.name for one in found}) == len(found)
    for one in found:
        for each in (phase for pod in one.pods for phase in pod.phases):
            assert each.bad == each.bad.to_integral_value() <= each.events
            assert each.events * 10_000 < 2**53
            assert each.minutes > 0
        asked = {(each.minute, each.alert): each.firing for each in one.checks if isinstance(each, Check)}
        assert len(asked) == len(set(one.checks))
        assert all(each.minute <= one.minutes and each.minute % one.step == 0 for each in one.expected)
