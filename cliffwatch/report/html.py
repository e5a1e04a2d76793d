"""The report as one HTML file that needs nothing else: styles, uPlot and binned data are in it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cliffwatch import __version__
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Phase
from cliffwatch.report import words
from cliffwatch.report.plots import (
    Cached,
    Distribution,
    Heatmap,
    Timeline,
    cached,
    distribution,
    latency_heatmap,
    mostly_known,
    timeline,
)
from cliffwatch.report.summary import Report
from cliffwatch.report.surface_plots import knee, used
from cliffwatch.roofline.step import Deployment
from cliffwatch.slo.beside import table as beside
from cliffwatch.slo.judgement import ObjectiveResult
from cliffwatch.surface.drill import Slow
from cliffwatch.units import format_seconds

ROOM = Path(__file__).parent
ASSETS = ROOM / "assets"
EMBEDDED = (
    "uplot/uPlot.min.css", "cliffwatch.css", "uplot/uPlot.iife.min.js", "charts.js", "heatmap.js", "curves.js",
    "attainment.js", "report.js",
)  # fmt: skip
# label, figure of an open-loop run, figure of a closed-loop run
PLOTTED = {
    "ttft": ("TTFT", "ttft_user_s", "ttft_s"),
    "itl": ("ITL", "itl_s", "itl_s"),
    "e2e": ("E2E", "e2e_user_s", "e2e_s"),
}
DISTRIBUTIONS = ("ttft", "itl")
TIMELINES = ("ttft", "e2e")
HEATMAPS = (("ttft", "p95"), ("ttft", "p50"), ("itl", "p95"), ("e2e", "p95"))
KNEES = ("ttft", "itl")
TOKENS = {"ttft": "p50", "itl": "p99"}


@dataclass(frozen=True, slots=True)
class Extras:
    """What else a report may show.

    Attributes:
        against: a run whose knees this one's are compared with.
        deployment: the model on the hardware that was measured, for the shares of it that were used.
        cached: the cache state that these are of; needed where the run has both.
    """

    against: RunReader | None = None
    deployment: Deployment | None = None
    cached: bool | None = None


def render(
    reader: RunReader, report: Report, *, phase: Phase | None = Phase.MEASURED, extras: Extras | None = None
) -> str:
    """The whole file. `report` is of the same reader and phase.

    Raises:
        RunError: damaged shards.
        InputError: shares of the hardware are asked for and cannot be told.
    """
    extras = extras or Extras()
    objectives = report.judgement.objectives if report.judgement else ()
    figures = {
        key: (label, opened if report.manifest.open_loop else closed)
        for key, (label, opened, closed) in PLOTTED.items()
    }
    with reader.session() as connection:
        distributions = {key: distribution(connection, *figures[key], phase) for key in DISTRIBUTIONS}
        timelines = {key: timeline(connection, *figures[key], phase) for key in TIMELINES}
        heatmaps = {
            f"{key}-{statistic}": latency_heatmap(connection, *figures[key], statistic, phase, objectives)
            for key, statistic in HEATMAPS
        }
        states = cached(connection, figures["ttft"][1], phase)
        knees = [knee(connection, *figures[key], extras.against) for key in KNEES]
        pictures = [one for one in knees if one is not None]
        pictures += used(connection, extras.deployment, extras.cached) if extras.deployment else []
    if not mostly_known(heatmaps["ttft-p95"]):  # the first one is shown; medians need fewer requests
        heatmaps = {"ttft-p50": heatmaps["ttft-p50"]} | heatmaps
    template = _environment().get_template("template.html.j2")
    return template.render(
        report=report,
        distributions=distributions,
        timelines=timelines,
        heatmaps=heatmaps,
        cached=states,
        pictures=pictures,
        plots=_plots(objectives, distributions, timelines, heatmaps)
        | {f"picture-{number}": one.plot for number, one in enumerate(pictures)}
        | ({"cached": _curves(states)} if states else {}),
        assets={name: _asset(name) for name in EMBEDDED},
        version=__version__,
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(ROOM), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "share": words.share,
        "attained": words.attained, "target": words.target, "quantile": words.quantile, "number": words.number,
        "usd": words.usd, "seconds": format_seconds, "script": script_json, "yaml": _yaml, "utc": _utc,
        "count": lambda value: f"{value:,}",
    }  # fmt: skip
    environment.globals |= {
        "interval": words.interval, "seconds_interval": words.seconds_interval, "settling": words.settling,
        "retries": words.retries, "cancellations": words.cancellations, "replicas": words.replicas,
        "INTERVAL_NOTE": words.INTERVAL_NOTE, "SETTLING_NOTE": words.SETTLING_NOTE,
        "price_figures": words.price_figures, "bias": words.bias, "checked": words.checked, "trusted": words.trusted,
        "limit": words.limit, "beside": beside, "STATUS": words.STATUS,
        "FEW_NOTE": words.FEW_NOTE, "zip": zip,
    }  # fmt: skip
    return environment


def _asset(name: str) -> Markup:
    """A style or script of this project, to stand inside its element as it is."""
    return Markup((ASSETS / name).read_text(encoding="utf-8"))  # noqa: S704  our own files; a test forbids end tags


def script_json(value: Any) -> Markup:
    """JSON that may stand in a script element: no `<`, `>`, `&` and no line separators of JavaScript in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)


def _utc(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _plots(
    objectives: tuple[ObjectiveResult, ...],
    distributions: dict[str, Distribution],
    timelines: dict[str, Timeline],
    heatmaps: dict[str, Heatmap],
) -> dict[str, dict[str, Any]]:
    """What `report.js` hands to the renderers, by the name of the element: the renderer and its data."""
    plots = {f"objective-{number}": _attainment(one) for number, one in enumerate(objectives)}
    plots |= {f"distribution-{key}": _histogram(key, one, objectives) for key, one in distributions.items()}
    plots |= {f"timeline-{key}": _lines(one, objectives) for key, one in timelines.items()}
    plots["failures"] = _failures(timelines[TIMELINES[0]])
    plots |= {f"heatmap-{key}": _heatmap(one) for key, one in heatmaps.items()}
    return plots


def _attainment(one: ObjectiveResult) -> dict[str, Any]:
    fields = {"label", "attainment", "low", "high", "target", "status"}
    return {"kind": "attainment", **one.model_dump(mode="json", include=fields)}


def _thresholds(figure: str, objectives: tuple[ObjectiveResult, ...]) -> list[dict[str, Any]]:
    return [
        {"at": one.threshold_s, "label": f"objective {format_seconds(one.threshold_s)}"}
        for one in objectives
        if one.figure == figure and one.input_tokens is None
    ]


def _histogram(key: str, one: Distribution, objectives: tuple[ObjectiveResult, ...]) -> dict[str, Any]:
    return {
        "kind": "histogram",
        "label": f"Histogram of {one.label} over {one.n:,} successful requests, logarithmic",
        "edges": one.edges,
        "counts": one.counts,
        "token": TOKENS[key],
        "xLabel": f"{one.label}, logarithmic",
        "unit": "s",
        "thresholds": _thresholds(one.figure, objectives),
        "empty": "No request succeeded.",
    }


def _lines(one: Timeline, objectives: tuple[ObjectiveResult, ...]) -> dict[str, Any]:
    return {
        "kind": "lines",
        "label": f"P50 and P95 of {one.label} by the time at which requests were due",
        "x": [bin_.start_s for bin_ in one.bins],
        "series": [
            {"label": "P50", "token": "p50", "values": [None if bin_.p50.few else bin_.p50.value for bin_ in one.bins]},
            {"label": "P95", "token": "p95", "values": [bin_.p95.value for bin_ in one.bins]},
        ],
        "band": [1, 0],
        "xLabel": "time into the run",
        "xUnit": "clock",
        "yLabel": one.label,
        "unit": "s",
        "sync": "time",
        "thresholds": _thresholds(one.figure, objectives),
        "empty": "No bin has enough successful requests.",
    }


def _failures(one: Timeline) -> dict[str, Any]:
    failed = [bin_.failed for bin_ in one.bins]
    return {
        "kind": "lines",
        "label": "Failed requests by the time at which they were due",
        "x": [bin_.start_s for bin_ in one.bins],
        "series": [{"label": "failed", "token": "errors", "values": failed if any(failed) else []}],
        "bars": True,
        "height": 130,
        "xLabel": "time into the run",
        "xUnit": "clock",
        "yLabel": "failed",
        "unit": "count",
        "sync": "time",
        "empty": "No request failed.",
    }


def _heatmap(one: Heatmap) -> dict[str, Any]:
    return {
        "kind": "heatmap",
        "caption": f"{one.label} by input tokens a prompt (rows) and batch size (columns)",
        "corner": "input",
        "rows": one.rows,
        "columns": [f"×{name}" for name in one.columns],
        "cells": [[asdict(cell) for cell in line] for line in one.cells],
        "thresholds": one.thresholds_s,
        "jumps": [{"kind": kind, "r": r, "c": c} for kind, r, c in one.jumps],
        "says": one.says,
        "unit": "s",
        "label": one.label,
        "slowest": [[[_short(slow) for slow in cell] for cell in line] for line in one.slowest],
    }


def _short(one: Slow) -> tuple[Any, ...]:
    """As `report.js` reads it; there are hundreds of them, and times are shown with three digits."""
    told = one.request_id, round(one.time_s, 1), float(f"{one.metric:.4g}"), one.input_tokens, one.output_tokens
    return told if one.replica is None else (*told, one.replica)


def _curves(one: Cached) -> dict[str, Any]:
    return {
        "kind": "curves",
        "label": f"Median TTFT over input tokens at batch {one.batch}, by cache state",
        "x": one.middles,
        "xLabels": one.rows,
        "xLabel": "input tokens",
        "columns": one.columns,
        "cells": [[asdict(cell) for cell in line] for line in one.cells],
        "unit": "s",
        "yLabel": "TTFT",
    }
