"""The load board: does the load generator send what was asked, and what does it see.

All metrics carry their run's id, so the totals of a run are its last values; shares lie on a bucket edge and are exact.
"""

from __future__ import annotations

from grafanalib.core import Dashboard

from dashboards.frame import framed
from dashboards.panels import GREEN, RED, WITHIN_BUCKET, Layout, Query, stat, time_series
from dashboards.variables import edge_variable, run_variable

PREFIX = "cliffwatch_client"
RUN = 'run=~"$run"'
MEASURED = f'{RUN}, phase="measured"'
LATENCIES = {"TTFT": f"{PREFIX}_ttft_seconds", "ITL": f"{PREFIX}_itl_seconds", "E2E": f"{PREFIX}_e2e_seconds"}


def board() -> Dashboard:
    """The dashboard, panels placed."""
    layout = Layout()
    _run(layout)
    _sending(layout)
    _latency(layout)
    return framed(
        "load",
        "load",
        "A running load test: rate asked and achieved, outcomes, latency as users see it.",
        layout,
        [
            run_variable(f"{PREFIX}_run_info"),
            edge_variable("ttft_edge", "TTFT within (s)", LATENCIES["TTFT"], "2.5"),
        ],
        tags=["load"],
        span="15m",
        refresh="5s",
    )


def _total(metric: str, labels: str) -> str:
    """The last values of runs in the time shown, those that are over included."""
    return f"sum(last_over_time({metric}{{{labels}}}[$__range]))"


def _run(layout: Layout) -> None:
    layout.section("The run")
    within = _total(f"{LATENCIES['TTFT']}_bucket", f'{MEASURED}, outcome="ok", le="$ttft_edge"')
    measured = _total(f"{LATENCIES['TTFT']}_count", f'{MEASURED}, outcome="ok"')
    cards = [
        stat(
            "TTFT within $ttft_edge s",
            Query(f"{within} / ({measured} > 0)", instant=True),
            unit="percentunit",
            description="Share of the measured requests that ended ok, from when they were due. Exact, since it lies "
            "on a bucket edge; the report also counts failed ones that are known to have taken longer.",
        ),
        stat(
            "Requests (n)",
            Query(_total(f"{PREFIX}_requests_total", RUN), instant=True),
            unit="short",
            description="Requests that ended, of all phases and outcomes, in the runs chosen.",
        ),
        stat(
            "Not ok",
            Query(_total(f"{PREFIX}_requests_total", f'{RUN}, outcome!="ok"') + " or vector(0)", instant=True),
            unit="short",
            steps=((GREEN, None), (RED, 1)),
            description="Requests that failed, were late, lost or cancelled.",
        ),
        stat(
            "Workers that died",
            Query(_total(f"{PREFIX}_workers", f'{RUN}, state="dead"') + " or vector(0)", instant=True),
            unit="short",
            steps=((GREEN, None), (RED, 1)),
            description="What they had told of stays counted.",
        ),
    ]
    layout.line(5, [(6, card) for card in cards])


def _sending(layout: Layout) -> None:
    layout.section("What is sent")
    rate = time_series(
        "Rate",
        [
            Query(f"sum({PREFIX}_asked_requests_per_second{{{RUN}}})", "asked"),
            Query(f"sum(rate({PREFIX}_issued_total{{{RUN}}}[$__rate_interval]))", "issued"),
        ],
        unit="reqps",
        description="What the workload asks for (closed loops and replays ask for none), and requests whose time came.",
    )
    outcomes = time_series(
        "Outcomes",
        [Query(f"sum by (outcome) (rate({PREFIX}_requests_total{{{RUN}}}[$__rate_interval]))", "{{outcome}}")],
        unit="reqps",
        description="Requests that ended, by how.",
    )
    lag = f"sum by (le) (rate({PREFIX}_send_lag_seconds_bucket{{{RUN}}}[$__rate_interval]))"
    lags = time_series(
        "Send lag",
        [Query(f"histogram_quantile({share:g}, {lag})", f"p{share * 100:g}") for share in (0.5, 0.99)],
        unit="s",
        description=f"How late the load generator itself was. {WITHIN_BUCKET}",
    )
    flight = time_series(
        "In flight",
        [Query(f"sum({PREFIX}_in_flight{{{RUN}}})", "requests")],
        unit="short",
        description="Requests issued and not ended. In an open loop it grows when the server falls behind.",
    )
    layout.line(8, [(8, rate), (8, outcomes), (8, lags)])
    layout.line(7, [(24, flight)])


def _latency(layout: Layout) -> None:
    layout.section("Latency of requests that ended ok")
    charts = []
    for name, metric in LATENCIES.items():
        buckets = f'sum by (le) (rate({metric}_bucket{{{RUN}, outcome="ok"}}[$__rate_interval]))'
        charts.append(
            time_series(
                name,
                [
                    Query(f"histogram_quantile({share:g}, {buckets})", f"p{share * 100:g}")
                    for share in (0.5, 0.95, 0.99)
                ],
                unit="s",
                description=f"As users see it; ITL is a mean of each request. {WITHIN_BUCKET}",
            )
        )
    layout.line(8, [(8, chart) for chart in charts])
