"""Figures as people read them; `assets/charts.js` writes them alike. Unknown is `–`, never 0."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

from cliffwatch.cost.price import Price
from cliffwatch.records.calibration import Error
from cliffwatch.records.manifest import CheckResult
from cliffwatch.report.clients import Cancellations, Retries
from cliffwatch.report.replicas import ReplicasSummary
from cliffwatch.report.settling import Settling
from cliffwatch.slo.judgement import Quantile, Status
from cliffwatch.units import format_seconds, format_share

UNKNOWN = "–"
FEW = "†"
FEW_NOTE = f"{FEW} few samples: fewer than 10 / (1 - p) for percentile p; under 1 / (1 - p) it is not shown (–)"
INTERVAL_NOTE = (
    "under a percentile: its 95 % interval, allowing for correlation between requests; – where n is too small"
)
SETTLING_NOTE = "by MSER-5, of warm-up and measured requests; nothing was cut by it"
STATUS = {Status.MET: "met", Status.MISSED: "missed", Status.TOO_FEW_DATA: "too few data"}
MAX_PLACES = 7


def share(value: float | None, rounding: str = ROUND_HALF_UP) -> str:
    """A share as a percentage, with as many places as its distance to 0 or 100 % needs, so that it is never either."""
    if value is None:
        return UNKNOWN
    near = min(value, 1 - value)
    if near <= 0:
        return f"{value * 100:.0f} %"
    places = min(MAX_PLACES, max(1, math.ceil(-math.log10(near * 10) - 1e-9)))
    percent = Decimal(f"{value * 100:.12g}")
    return f"{percent.quantize(Decimal(1).scaleb(-places), rounding):f} %"


def attained(value: float | None) -> str:
    """An attainment, rounded down: what is just under a target must not read as if it were on it."""
    return share(value, ROUND_FLOOR)


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares, rounded outwards: `98.51–99.83 %`."""
    return UNKNOWN if low is None else f"{share(low, ROUND_FLOOR).removesuffix(' %')}–{share(high, ROUND_CEILING)}"


def target(value: float) -> str:
    """A target as it was written: 0.95 is `95 %`."""
    return format_share(value)


def quantile(value: Quantile | None) -> str:
    """A latency with the mark of few samples."""
    if value is None or value.value is None:
        return UNKNOWN
    return f"{format_seconds(value.value)}{FEW if value.few else ''}"


def seconds_interval(low: float | None, high: float | None) -> str:
    """An interval of times: `1.02–1.1 s`, `980 ms–1.1 s`; `–` where there is none."""
    if low is None or high is None:
        return UNKNOWN
    first, last = format_seconds(low), format_seconds(high)
    unit = last.rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}')}–{last}"


def settling(one: Settling) -> str:
    """What MSER-5 says of one latency over time, in a sentence."""
    if one.warmup_cut is None:
        return f"too few requests to tell (n {one.n:,})"
    parts = [_warmup(one)]
    if one.cooldown_cut:
        parts.append(f"it would also leave out the last {one.cooldown_cut:,}")
    if one.steady is not None:
        drift = f"{one.change:+.0%} from the first quarter to the last" if one.change is not None else "change unknown"
        parts.append("no drift" if one.steady else f"not steady: {drift}")
    return "; ".join(parts)


def _warmup(one: Settling) -> str:
    if not one.settled:
        return "no end of the warm-up found in the first half of the run: it never settled, or was too short"
    if not one.warmup_cut:
        return "settled from the start"
    cut = f"settled after {one.warmup_cut:,} requests ({format_seconds(one.warmup_s)})"
    if one.covered:
        return f"{cut}, which the warm-up covers" + (f" but for {one.measured_cut:,}" if one.measured_cut else "")
    return f"{cut}, {one.measured_cut:,} of them measured: the configured warm-up is too short"


def retries(one: Retries) -> str:
    """How often requests were tried again, in a sentence."""
    again = f", {one.retried_ok:,} of them answered in the end" if one.retried else ""
    return f"{one.retried:,} of {one.n:,} requests were tried again{again}; {one.attempts:,} attempts in all"


def cancellations(one: Cancellations) -> str:
    """How many users were to leave, and did, in a sentence."""
    parts = [f"{one.left:,} left", f"{one.ended_ok:,} had their answer before"]
    if one.ended_otherwise:
        parts.append(f"{one.ended_otherwise:,} failed before, or were stopped with the run")
    return f"the users of {one.planned:,} of {one.n:,} requests were to leave: {', '.join(parts)}"


def replicas(one: ReplicasSummary) -> str:
    """How requests were spread over replicas, in a sentence."""
    counted = f"{one.seen:,} replica{'' if one.seen == 1 else 's'}"
    seen = counted if one.expected is None else f"{one.seen:,} of {one.expected:,} expected replicas"
    told = f"{one.n:,} of {one.answers:,} answers said in {one.header} who gave them"
    even = "" if one.skew is None else f"; the busiest had {one.skew:.2f} times its even share"
    return f"{seen} answered ({told}){even}"


def bias(error: Error) -> str:
    """The client's own error of a figure: `client bias +0.1 ms, P99 0.7 ms`."""
    sign = "-" if error.p50_s < 0 else "+"
    return f"client bias {sign}{format_seconds(abs(error.p50_s))}, P99 {format_seconds(error.p99_s)}"


def checked(value: float | None, unit: str) -> str:
    """A value or threshold of a check of trust, in its unit."""
    if unit == "s":
        return format_seconds(value)
    return share(value) if unit == "share" else number(value)


def limit(value: float | None, one: CheckResult) -> str:
    """A threshold of a check: the first bad value, or the first good one where low values are bad."""
    return UNKNOWN if value is None else f"{'<' if one.below else '≥'} {checked(value, one.unit)}"


def trusted(one: CheckResult) -> str:
    """The state of a check, or why it could not be made."""
    return f"not checked: {one.message}" if one.state is None else one.state.value


def number(value: float | None, unit: str = "") -> str:
    """Three significant digits, thousands in groups, with a unit where given."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{Decimal(f'{value:.3g}'):f}"
    return f"{text} {unit}".rstrip()


def usd(value: float | None) -> str:
    """Money, three significant digits: 0.000683 USD."""
    return UNKNOWN if value is None else f"{number(value)} USD"


def printable(text: str) -> str:
    """Text that came from a server, without what could steer a terminal."""
    return "".join(character if character.isprintable() else "�" for character in text)


def price_figures(price: Price) -> tuple[tuple[str, float | None, str], ...]:
    """Prices of a run: what each is for, the money, the key of `Price.undefined` that says why there is none."""
    return (
        ("per request", price.usd_per_request, "usd_per_request"),
        ("per million input tokens", price.usd_per_million_input_tokens, "usd_per_million_input_tokens"),
        ("per million output tokens", price.usd_per_million_output_tokens, "usd_per_million_output_tokens"),
    )
