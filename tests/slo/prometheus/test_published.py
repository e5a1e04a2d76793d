"""The same SLO (99.9 % over 30 days) against what the SRE Workbook and Sloth publish: windows, shares, factors."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from tests.slo.prometheus.test_compile import compiled, rules

PROMISE = "{sli: availability, target: 99.9%}"

# Site Reliability Workbook, chapter 5, table 5-8, and the pair of a day that stands in its configuration beside them.
WORKBOOK = [
    ("page", "1h", "5m", "14.4"), ("page", "6h", "30m", "6"), ("ticket", "1d", "2h", "3"), ("ticket", "3d", "6h", "1"),
]  # fmt: skip
# Sloth's catalogue of windows, the same for its periods of 30 and of 28 days: percent of the budget in the long window.
SLOTH = [
    ("page", "1h", "5m", "2"), ("page", "6h", "30m", "5"), ("ticket", "1d", "2h", "10"), ("ticket", "3d", "6h", "10"),
]  # fmt: skip
HOURS = {"1h": 1, "6h": 6, "1d": 24, "3d": 72}


def alerts(period: str) -> list[tuple[str, str, str, Decimal]]:
    """Severity, windows and threshold of each burn alert, read off its expression."""
    found = []
    for rule in rules(compiled(PROMISE, period=period)):
        if rule.get("alert", "").startswith("SloBurn"):
            (long, above), (short, other) = re.findall(r"bad:ratio(\w+)\{[^}]*\} > ([0-9.]+)", rule["expr"])
            assert above == other
            found.append((rule["labels"]["severity"], long, short, Decimal(above)))
    return found


def test_windows_and_factors_are_the_workbooks() -> None:
    budget = Decimal("0.001")
    expected = [(severity, long, short, Decimal(factor) * budget) for severity, long, short, factor in WORKBOOK]
    assert alerts("30d") == expected


@pytest.mark.parametrize("days", [28, 30])
def test_windows_and_factors_are_sloths(days: int) -> None:
    """Its factor is the share of the budget times the period over the long window: 13.44 for an hour of 28 days."""
    expected = [
        (severity, long, short, Decimal(percent) / 100 * days * 24 / HOURS[long] * Decimal("0.001"))
        for severity, long, short, percent in SLOTH
    ]
    assert alerts(f"{days}d") == expected


def test_a_budget_is_the_decimal_where_sloth_writes_a_float() -> None:
    """Its output has `14.4 * 0.0009999999999999432` and `vector(0.9990000000000001)`: the same to 13 digits."""
    exact = {above for _, _, _, above in alerts("30d")}
    floats = {float(factor) * 0.0009999999999999432 for *_, factor in WORKBOOK}
    assert sorted(map(float, exact)) == pytest.approx(sorted(floats), rel=1e-12)
    assert {str(above) for above in exact} == {"0.0144", "0.006", "0.003", "0.001"}
