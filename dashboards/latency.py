"""Latency as load tests see it: over time, and by prompt length and batch with what breaks the promise in red.

Both come from the load generator's histograms, whose edges include every threshold of the run's SLO file.
"""

from __future__ import annotations

from grafanalib import core

from cliffwatch.slo.sli import Sli
from dashboards.frame import framed
from dashboards.panels import WITHIN_BUCKET, Layout, heatmap, matrix
from dashboards.promises import Promise, Promises, promises
from dashboards.variables import run_variable

CELL = 'run=~"$run",phase="measured",outcome="ok"'
FIGURES = (Sli.TTFT, Sli.ITL, Sli.E2E)
UNPROMISED = Promise(1.0, 0.95)


def board(of: Promises | None = None) -> core.Dashboard:
    """The dashboard, panels placed."""
    of = of or promises()
    layout = Layout()
    layout.section("Over time")
    layout.spread(9, [_over_time(sli) for sli in FIGURES], 3)
    layout.section("By prompt length and batch")
    layout.spread(10, [_by_shape(sli, of.of(sli, UNPROMISED).threshold_s) for sli in FIGURES], 3)
    return framed(
        "latency",
        "latency",
        "Where latency lies over time, and at which prompt length and batch it leaves the promise.",
        layout,
        [run_variable("cliffwatch_client_run_info")],
        tags=["load"],
        span="30m",
    )


def _over_time(sli: Sli) -> core.Panel:
    buckets = f'cliffwatch_client_{sli.value}_seconds_bucket{{run=~"$run",outcome="ok"}}'
    return heatmap(
        sli.value.upper(),
        f"sum by (le) (increase({buckets}[$__rate_interval]))",
        unit="s",
        description="Requests in each bucket. Two bands: two kinds of requests or a cache that helps only some, split "
        "them below. A band that climbs: a queue that grows.",
    )


def _by_shape(sli: Sli, threshold_s: float) -> core.Panel:
    buckets = (
        f"sum by (input_tokens, batch, le) (increase(cliffwatch_client_{sli.value}_seconds_bucket{{{CELL}}}[$__range]))"
    )
    return matrix(
        f"{sli.value.upper()} p95, tokens of a prompt by batch",
        f"histogram_quantile(0.95, {buckets})",
        "input_tokens",
        "batch",
        unit="s",
        limit=threshold_s,
        description=f"Red from {threshold_s:g} s, the promise of the SLO file the board was built from. The step from "
        "green to red is where to cap length or batch; `cliffwatch surface cliffs` says whether it is a cliff and why. "
        f"A cell may rest on few requests. {WITHIN_BUCKET}",
    )
