"""Variables of a board: which Prometheus, which models, and thresholds that can only be bucket edges."""

from __future__ import annotations

from typing import Any

from grafanalib.core import REFRESH_ON_TIME_RANGE_CHANGE, SORT_ALPHA_DESC, SORT_NUMERIC_ASC, Template

ALL = {"selected": True, "text": ["All"], "value": ["$__all"]}


def datasource_variable() -> Template:
    """The Prometheus to read; every panel refers to it."""
    return Template(name="datasource", label="Data source", type="datasource", query="prometheus", default="prometheus")


def model_variable(metric: str, label: str = "model_name") -> Template:
    """Any of the models that `metric` has in its label, several at once."""
    return _of_any("model", "Model", metric, label)


def instance_variable(metric: str) -> Template:
    """Any of the replicas that expose `metric`, several at once."""
    return _of_any("instance", "Replica", metric, "instance")


def run_variable(metric: str) -> Template:
    """Any of the runs that expose `metric`, the newest first in the list."""
    variable = _of_any("run", "Run", metric, "run")
    variable.sort = SORT_ALPHA_DESC
    return variable


def edge_variable(name: str, label: str, histogram: str, default: str) -> Template:
    """A threshold out of the edges that `histogram` really has: on an edge the share of good events is exact."""
    variable = _label_values(name, label, f"{histogram}_bucket", "le", default=default)
    variable.regex = "/^[0-9.e+-]+$/"  # leaves out +Inf
    variable.sort = SORT_NUMERIC_ASC
    return variable


def choice_variable(name: str, label: str, metric: str, of: str, default: str) -> Template:
    """One of the values that `metric` has in its label `of`."""
    return _label_values(name, label, metric, of, default=default)


def _of_any(name: str, label: str, metric: str, of: str) -> Template:
    variable = _label_values(name, label, metric, of)
    variable.includeAll = variable.multi = True
    variable.allValue = ".+"
    variable._current = ALL  # grafanalib offers no other way to preset "All"
    return variable


def _label_values(name: str, label: str, metric: str, of: str, default: str | None = None) -> Template:
    query = f"label_values({metric},{of})"
    return Template(
        name=name,
        label=label,
        dataSource={"type": "prometheus", "uid": "${datasource}"},
        query={"label": of, "metric": metric, "qryType": 1, "query": query, "refId": "StandardVariableQuery"},
        refresh=REFRESH_ON_TIME_RANGE_CHANGE,
        default=default,
    )


def definition(variable: dict[str, Any]) -> str | None:
    """What Grafana shows in the list of variables."""
    query = variable.get("query")
    return query["query"] if isinstance(query, dict) else None
