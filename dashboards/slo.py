"""One SLO in depth: how much budget is left, how fast it goes, when it is gone, and who sees it, engine or client.

Reads the records of `cliffwatch slo compile`; limits and forecast are the SLO service's own metrics.
"""

from __future__ import annotations

from grafanalib import core

from cliffwatch.slo.burn import STANDARD_PAIRS, WindowPair
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.promql import window_text
from dashboards.frame import framed
from dashboards.panels import AMBER, GREEN, RED, WITHIN_BUCKET, Layout, Query, stat, time_series
from dashboards.promises import Promises, promises
from dashboards.variables import choice_variable

ONE = 'slo="$slo",objective="$objective"'
TARGET = f"cliffwatch_slo:target:ratio{{{ONE}}}"
LEFT = f"cliffwatch_slo:budget_left:ratio{{{ONE}}}"
BUDGET = f"on (slo, objective) group_left () (1 - {TARGET})"
NO_RECORDS = "no records: load the rules of `cliffwatch slo compile`"
NO_SERVICE = "not known: needs `cliffwatch serve --watch`"
GROUPED = "__auto"  # Grafana names a series by the labels that tell it apart: the groups of `watch.group_by`


def board(of: Promises | None = None) -> core.Dashboard:
    """The dashboard, panels placed."""
    of = of or promises()
    layout = Layout()
    _now(layout)
    _budget(layout)
    _burning(layout)
    _client_and_engine(layout)
    slo = choice_variable("slo", "SLO", "cliffwatch_slo:target:ratio", "slo", of.name)
    objective = choice_variable(
        "objective", "Objective", 'cliffwatch_slo:target:ratio{slo="$slo"}', "objective", of.objective
    )
    return framed(
        "slo",
        "SLO in depth",
        "One objective: budget left, burn rates against the limits of its alerts, when the budget is gone.",
        layout,
        [slo, objective],
        tags=["slo"],
        span="24h",
        refresh="30s",
    )


def _now(layout: Layout) -> None:
    cards = [
        stat(
            "Budget left",
            Query(LEFT, GROUPED, instant=True),
            unit="percentunit",
            steps=((RED, None), (AMBER, 0), (GREEN, 0.25)),
            no_value=NO_RECORDS,
            description="Share of the period's error budget. Under 25 %: stop risky changes. Below 0 the promise is "
            "broken for this period: work on reliability first.",
        ),
        stat(
            "Attainment over the period",
            Query(f"1 - (1 - {LEFT}) * {BUDGET}", GROUPED, instant=True),
            unit="percentunit",
            decimals=3,
            no_value=NO_RECORDS,
            description="Share of good events over the whole period. Compare it with the target beside it.",
        ),
        stat(
            "Target",
            Query(TARGET, "{{period}}", instant=True),
            unit="percentunit",
            decimals=3,
            no_value=NO_RECORDS,
            description="What the SLO file promises, and over which period. Change the file, compile it, reload.",
        ),
        stat(
            "Events in the last hour (n)",
            Query(f"sum(cliffwatch_slo:events:rate1h{{{ONE}}}) * 3600", instant=True),
            unit="short",
            no_value=NO_RECORDS,
            description="How much the shares rest on. With fewer than a hundred, wait before you act on a percentage.",
        ),
        stat(
            "Alerts firing",
            Query(f'count(ALERTS{{alertstate="firing",{ONE}}}) or 0 * {TARGET}', instant=True),
            unit="short",
            steps=((GREEN, None), (RED, 1)),
            no_value=NO_RECORDS,
            description="Alerts of this objective that Prometheus fires. Over 0: the burn rates below say since when, "
            "the engine's board why.",
        ),
        stat(
            "Budget lasts",
            Query(f"min(cliffwatch_slo_budget_lasts_seconds{{{ONE}}})", instant=True),
            unit="dtdurations",
            steps=((RED, None), (AMBER, 86_400), (GREEN, 7 * 86_400)),
            no_value="does not run out",
            description="At the burn of the last hour. Less than a day: act now. Nothing runs out where the burn is 0; "
            f"without the SLO service it is {NO_SERVICE}.",
        ),
    ]
    layout.section("Now")
    layout.spread(5, cards, 6)


def _budget(layout: Layout) -> None:
    layout.section("Budget")
    burn_down = time_series(
        "Burn-down",
        [Query(LEFT, GROUPED)],
        unit="percentunit",
        target=0,
        description="Budget left over time; the dashed line is the end of it. A cliff is an incident, a slope is the "
        "normal miss rate: if the slope ends below the line, the target and the service do not fit.",
    )
    lasts = time_series(
        "Budget lasts",
        [Query(f"cliffwatch_slo_budget_lasts_seconds{{{ONE}}}", GROUPED)],
        unit="dtdurations",
        no_value="does not run out at these rates",
        description="Forecast at the burn of the hour before. A line that falls faster than time passes is getting "
        "worse; gaps are times without bad events. From the SLO service.",
    )
    traffic = time_series(
        "Events and bad events",
        [
            Query(f"sum(cliffwatch_slo:events:rate5m{{{ONE}}})", "events"),
            Query(f"sum(cliffwatch_slo:bad:rate5m{{{ONE}}})", "bad"),
        ],
        unit="cps",
        no_value=NO_RECORDS,
        description="What the shares are made of, each second over 5 minutes. Bad events without more traffic: the "
        "engine got worse. Both together: it is overloaded.",
    )
    layout.spread(9, [burn_down, lasts, traffic], 3)


def _burning(layout: Layout) -> None:
    layout.section("Burn rates: an alert fires while both its windows are above its limit")
    layout.spread(8, [_pair(pair) for pair in STANDARD_PAIRS], 2)


def _pair(pair: WindowPair) -> core.TimeSeries:
    name = alert_name(pair)
    long, short = window_text(pair.long_s), window_text(pair.short_s)
    lines = [Query(f"cliffwatch_slo:bad:ratio{window}{{{ONE}}} / {BUDGET}", window) for window in (long, short)]
    limit = Query(f'max(cliffwatch_slo_burn_limit{{{ONE},alert="{name}"}})', "limit")
    return time_series(
        f"{name} ({pair.severity}): {long} and {short}",
        [*lines, limit],
        unit="short",
        no_value=NO_RECORDS,
        description="How many times too fast the budget goes; 1 spends it in exactly the period. At the limit "
        f"{float(pair.budget_share):.0%} of it goes in {long}. Only {short} over it: it just began; only {long}: it "
        "has ended. The limit is from the SLO service.",
    )


# engine's histogram by figure, vLLM's, TensorRT-LLM's, SGLang's: of one model the first that is there
_ENGINES = {
    "ttft": ("vllm:time_to_first_token", "trtllm_time_to_first_token", "sglang:time_to_first_token"),
    "e2e": ("vllm:e2e_request_latency", "trtllm_e2e_request_latency", "sglang:e2e_request_latency"),
}


def _client_and_engine(layout: Layout) -> None:
    layout.section("Client against engine, while a load test runs")
    layout.spread(8, [_both(figure) for figure in _ENGINES], 2)


def _both(figure: str) -> core.TimeSeries:
    inside = " or ".join(
        f"sum by (model_name, le) (rate({name}_seconds_bucket[$__rate_interval]))" for name in _ENGINES[figure]
    )
    outside = f'rate(cliffwatch_client_{figure}_seconds_bucket{{outcome="ok"}}[$__rate_interval])'
    return time_series(
        f"{figure.upper()}, p95",
        [
            Query(f"histogram_quantile(0.95, {inside})", "engine {{model_name}}"),
            Query(f"histogram_quantile(0.95, sum by (model, le) ({outside}))", "client {{model}}"),
        ],
        unit="s",
        description="Of vLLM, TensorRT-LLM or SGLang, and as the load's users see it, from the time they meant "
        "to ask. Client far above engine: the time goes in network, proxy or an overloaded front end. "
        f"{WITHIN_BUCKET}",
    )
