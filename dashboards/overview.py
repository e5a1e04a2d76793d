"""The overview board: are the promises kept, how long do people wait, and is the engine full.

Written for vLLM's metric names. Shares of good events are ratios of event counts on a bucket edge, which is exact;
percentiles are interpolated inside a bucket, and every such panel says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafanalib.core import Dashboard

from dashboards.frame import framed
from dashboards.panels import AMBER, GREEN, RED, WITHIN_BUCKET, Layout, Query, heatmap, stat, time_series
from dashboards.variables import edge_variable, model_variable

MODEL = 'model_name=~"$model"'
TARGET = 0.95


@dataclass(frozen=True)
class Latency:
    """One latency histogram: its metric, the variable that holds its threshold, what it counts."""

    name: str
    metric: str
    variable: str
    default_edge: str
    counts: str

    def good_share(self, window: str) -> str:
        """Share of events at or under the threshold; nothing, not NaN, where there were none."""
        return (
            f'sum(rate({self.metric}_bucket{{{MODEL}, le="${self.variable}"}}[{window}]))'
            f" / (sum(rate({self.metric}_count{{{MODEL}}}[{window}])) > 0)"
        )

    def percentile(self, share: float) -> str:
        """Percentile over time, by model."""
        buckets = f"sum by (model_name, le) (rate({self.metric}_bucket{{{MODEL}}}[$__rate_interval]))"
        return f"histogram_quantile({share:g}, {buckets})"

    def mean(self) -> str:
        """Mean over time, by model."""
        parts = (
            f"sum by (model_name) (rate({self.metric}_{part}{{{MODEL}}}[$__rate_interval]))"
            for part in ("sum", "count")
        )
        return " / ".join(parts)

    def buckets(self) -> str:
        """Events in each bucket, for a heatmap."""
        return f"sum by (le) (increase({self.metric}_bucket{{{MODEL}}}[$__rate_interval]))"


TTFT = Latency("TTFT", "vllm:time_to_first_token_seconds", "ttft_edge", "2.5", "requests")
ITL = Latency("ITL", "vllm:inter_token_latency_seconds", "itl_edge", "0.05", "gaps between tokens")
E2E = Latency("E2E", "vllm:e2e_request_latency_seconds", "e2e_edge", "30.0", "finished requests")
QUEUE = Latency("Queue", "vllm:request_queue_time_seconds", "", "", "finished requests")
LATENCIES = (TTFT, ITL, E2E)


def board() -> Dashboard:
    """The dashboard, panels placed."""
    layout = Layout()
    _attainment(layout)
    _latency(layout)
    _heatmaps(layout)
    _queue_and_cache(layout)
    _throughput(layout)
    return framed(
        "overview",
        "overview",
        "P95 attainment, latency, queue and KV cache of LLM inference servers.",
        layout,
        [
            model_variable(f"{TTFT.metric}_count"),
            *(
                edge_variable(item.variable, f"{item.name} within (s)", item.metric, item.default_edge)
                for item in LATENCIES
            ),
        ],
        tags=["slo"],
        span="15m",
        refresh="5s",
    )


def _attainment(layout: Layout) -> None:
    layout.section("P95 attainment")
    cards = [
        stat(
            f"{item.name} within ${{{item.variable}}} s",
            Query(item.good_share("$__range"), instant=True),
            unit="percentunit",
            target=TARGET,
            description=f"Share of {item.counts} at or under the threshold over the time shown. "
            f"P95 meets the threshold when this is at least {TARGET:.0%}. Exact, since it lies on a bucket edge.",
        )
        for item in LATENCIES
    ]
    requests = stat(
        "Requests (n)",
        Query(f"sum(increase({TTFT.metric}_count{{{MODEL}}}[$__range]))", instant=True),
        unit="short",
        description="First tokens counted over the time shown: how much the shares on the left rest on. "
        "Prometheus extrapolates to the ends of the range, so it may differ by a few.",
    )
    alerts = stat(
        "Pages that fire",
        Query('count(ALERTS{severity="page", alertstate="firing"}) or vector(0)', instant=True),
        unit="short",
        steps=((GREEN, None), (RED, 1)),
        description="Alerts of the severity page. The SLO service's page shows which, each links to its runbook.",
    )
    layout.line(5, [(5, cards[0]), (5, cards[1]), (5, cards[2]), (5, requests), (4, alerts)])
    queries = [Query(item.good_share("$__rate_interval"), item.name) for item in LATENCIES]
    over_time = time_series(
        "Attainment over time",
        queries,
        unit="percentunit",
        target=TARGET,
        maximum=1,
        description=f"The same shares in each step; the dashed line is the target, {TARGET:.0%}. A gap is no traffic.",
    )
    layout.line(8, [(24, over_time)])


def _latency(layout: Layout) -> None:
    layout.section("Latency over time")
    charts = [
        time_series(
            item.name,
            [Query(item.percentile(share), f"p{share * 100:g} {{{{model_name}}}}") for share in (0.5, 0.95, 0.99)],
            unit="s",
            description=f"Over {item.counts}. {WITHIN_BUCKET}",
        )
        for item in LATENCIES
    ]
    layout.line(8, [(8, chart) for chart in charts])


def _heatmaps(layout: Layout) -> None:
    layout.section("Latency distribution")
    maps = [
        heatmap(
            f"{item.name} heatmap",
            item.buckets(),
            unit="s",
            description=f"How many {item.counts} fell in each bucket, over time.",
        )
        for item in (TTFT, E2E)
    ]
    layout.line(9, [(12, panel) for panel in maps])


def _queue_and_cache(layout: Layout) -> None:
    layout.section("Queue and KV cache")
    requests = time_series(
        "Requests in the engine",
        [
            Query(f"sum(vllm:num_requests_running{{{MODEL}}})", "running"),
            Query(f"sum(vllm:num_requests_waiting{{{MODEL}}})", "waiting"),
        ],
        unit="short",
        description="Waiting that grows while running stays flat is the cliff: the engine takes no more at once.",
    )
    queue_time = time_series(
        "Queue time",
        [Query(QUEUE.percentile(0.95), "p95 {{model_name}}"), Query(QUEUE.mean(), "mean {{model_name}}")],
        unit="s",
        description=f"From arrival in the queue to the first time scheduled, over {QUEUE.counts}. {WITHIN_BUCKET}",
    )
    cache = time_series(
        "KV cache in use",
        [Query(f"max by (model_name, engine) (vllm:kv_cache_usage_perc{{{MODEL}}})", "{{model_name}} {{engine}}")],
        unit="percentunit",
        maximum=1,
        description="Share of KV blocks taken. At 100 % requests wait or are preempted.",
    )
    preemptions = stat(
        "Preemptions",
        Query(f"sum(increase(vllm:num_preemptions_total{{{MODEL}}}[$__range]))", instant=True),
        unit="short",
        steps=((GREEN, None), (AMBER, 1)),
        description="Requests thrown out of the cache and computed again over the time shown.",
    )
    hits, queries = (
        f"sum(increase(vllm:prefix_cache_{part}_total{{{MODEL}}}[$__range]))" for part in ("hits", "queries")
    )
    prefix = stat(
        "Prefix cache hits",
        Query(f"{hits} / ({queries} > 0)", instant=True),
        unit="percentunit",
        description="Share of prompt tokens found in the prefix cache, over the time shown.",
    )
    layout.line(8, [(8, requests), (8, queue_time), (8, cache)])
    layout.line(4, [(12, preemptions), (12, prefix)])


def _throughput(layout: Layout) -> None:
    layout.section("Throughput")
    finished = time_series(
        "Finished requests",
        [
            Query(
                f"sum by (finished_reason) (rate(vllm:request_success_total{{{MODEL}}}[$__rate_interval]))",
                "{{finished_reason}}",
            )
        ],
        unit="reqps",
        description="By reason. vLLM's counter is named success, yet counts every end but a client's leaving.",
    )
    tokens = time_series(
        "Tokens",
        [
            Query(f"sum(rate(vllm:{kind}_tokens_total{{{MODEL}}}[$__rate_interval]))", kind)
            for kind in ("prompt", "generation")
        ],
        unit="short",
        description="Tokens per second: prompt tokens taken in (cached ones included), tokens generated.",
    )
    layout.line(8, [(12, finished), (12, tokens)])
