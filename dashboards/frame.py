"""What all boards share around their panels: identity, links from board to board, marks of what happened when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafanalib import core

from dashboards.panels import DATASOURCE, Layout
from dashboards.variables import datasource_variable

UID_PREFIX = "cliffwatch-"
TAG = "cliffwatch"


def framed(
    name: str,
    title: str,
    description: str,
    layout: Layout,
    variables: Sequence[core.Template],
    *,
    tags: Sequence[str] = (),
    span: str = "1h",
    refresh: str = "10s",
) -> core.Dashboard:
    """The board `cliffwatch-NAME`: panels as laid out, the time shown `span` long until now."""
    return core.Dashboard(
        uid=UID_PREFIX + name,
        title=f"Cliffwatch {title}",
        description=description,
        tags=[TAG, "llm", *tags],
        time=core.Time(f"now-{span}", "now"),
        refresh=refresh,
        timezone="browser",
        graphTooltip=1,
        links=[_other_boards()],
        annotations=core.Annotations(list=[*(_from_prometheus(*row) for row in HAPPENINGS), DEPLOYS]),
        templating=core.Templating(list=[datasource_variable(), *variables]),
        panels=layout.panels,
    )


def _other_boards() -> core.DashboardLink:
    """A menu of all boards of this project, with the time and the variables kept."""
    return core.DashboardLink(
        title="Boards", type="dashboards", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True
    )


# name, colour, query (a series is marked as long as it is there), title of the mark
HAPPENINGS = (
    ("Load tests", "blue", 'max by (run) (cliffwatch_client_run_state{state="running"}) > 0', "load test {{run}}"),
    (
        "Restarts",
        "purple",
        "max by (instance) (changes(process_start_time_seconds[$__rate_interval])) > 0",
        "restart of {{instance}}",
    ),
    ("Pages", "red", 'max by (alertname, slo) (ALERTS{alertstate="firing", severity="page"})', "{{alertname}} {{slo}}"),
)
# Whoever deploys says so to Grafana's own annotations: POST /api/annotations with the tag `deploy`.
DEPLOYS: dict[str, Any] = {
    "name": "Deploys",
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "iconColor": "green",
    "target": {"type": "tags", "tags": ["deploy"], "matchAny": False, "limit": 100},
}


def _from_prometheus(name: str, colour: str, expr: str, title: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": colour,
        "expr": expr,
        "step": "15s",
        "titleFormat": title,
    }
