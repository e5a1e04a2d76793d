"""The few panel shapes that all boards share, in the JSON of current Grafana.

grafanalib gives the classes and their composition; where it still writes what Grafana no longer reads (heatmaps, query
reference ids, dead keys), the subclasses here write the current form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from grafanalib import core

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
NO_DATA = "no traffic"
WITHIN_BUCKET = "Percentiles are interpolated inside a histogram bucket: read them as somewhere between its edges."
COLUMNS = 24
GREEN, AMBER, RED = "green", "orange", "red"


@dataclass(frozen=True)
class Query:
    """One PromQL expression and the name of its series; `instant` gives one value over the whole range."""

    expr: str
    legend: str = ""
    instant: bool = False


class _Target(core.Target):  # type: ignore[misc]  # grafanalib has no types
    def to_json_data(self) -> dict[str, Any]:
        return {
            "datasource": self.datasource,
            "editorMode": "code",
            "expr": self.expr,
            "format": self.format,
            "instant": self.instant,
            "legendFormat": self.legendFormat,
            "range": not self.instant,
            "refId": self.refId,
        }


def _targets(queries: Sequence[Query], form: str = "time_series") -> list[_Target]:
    return [
        _Target(
            expr=query.expr,
            legendFormat=query.legend,
            instant=query.instant,
            format=form,
            refId=letter,
            datasource=DATASOURCE,
        )
        for letter, query in zip(ascii_uppercase, queries, strict=False)
    ]


class _Heatmap(core.Panel):  # type: ignore[misc]
    """A heatmap over a classic histogram's buckets (grafanalib's own is of a Grafana that is gone)."""

    def to_json_data(self) -> Any:
        return self.panel_json(
            {
                "type": "heatmap",
                "fieldConfig": {
                    "defaults": {"custom": {"scaleDistribution": {"type": "linear"}}},
                    "overrides": [],
                },
                "options": {
                    "calculate": False,
                    "cellGap": 1,
                    "color": {
                        "mode": "scheme",
                        "scheme": "Oranges",
                        "steps": 64,
                        "scale": "exponential",
                        "exponent": 0.5,
                    },
                    "exemplars": {"color": "rgba(255,0,255,0.7)"},
                    "filterValues": {"le": 1e-9},
                    "legend": {"show": True},
                    "rowsFrame": {"layout": "auto"},
                    "tooltip": {"mode": "single", "yHistogram": True},
                    "yAxis": {"axisPlacement": "left", "reverse": False},
                },
            }
        )


def time_series(
    title: str,
    queries: Sequence[Query],
    *,
    unit: str,
    description: str,
    target: float | None = None,
    maximum: int | None = None,
    stacked: bool = False,
    no_value: str = NO_DATA,
) -> core.TimeSeries:
    """Lines over time; `target` draws a dashed line at the objective, `stacked` lays parts of a whole on each other."""
    steps = [{"color": RED, "value": None}, {"color": GREEN, "value": target}] if target is not None else []
    return core.TimeSeries(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries),
        unit=unit,
        valueMin=None if target is not None else 0,
        valueMax=maximum,
        fillOpacity=30 if stacked else 0 if len(queries) > 1 or target is not None else 10,
        showPoints="never",
        maxDataPoints=None,
        stacking={"mode": "normal" if stacked else "none", "group": "A"},
        legendDisplayMode="list",
        tooltipMode="multi",
        tooltipSort="desc",
        thresholds=steps,
        thresholdsStyleMode="off" if target is None else "dashed",
        extraJson={"fieldConfig": {"defaults": {"noValue": no_value}}},
    )


def stat(
    title: str,
    query: Query,
    *,
    unit: str,
    description: str,
    target: float | None = None,
    steps: Sequence[tuple[str, float | None]] = (),
    no_value: str = NO_DATA,
    decimals: int | None = None,
) -> core.Stat:
    """One number; green from `target` up, or coloured by `steps` of (colour, from value)."""
    if target is not None:
        steps = ((RED, None), (GREEN, target))
    return core.Stat(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets([query]),
        format=unit,
        noValue=no_value,
        decimals=decimals,
        reduceCalc="lastNotNull",
        graphMode="none",
        colorMode="value",
        maxDataPoints=None,
        color={"mode": "thresholds"},
        thresholds=[{"color": color, "value": value} for color, value in steps or ((GREEN, None),)],
    )


def heatmap(title: str, expr: str, *, unit: str, description: str) -> _Heatmap:
    """Count of events in each bucket over time; `expr` must keep the label `le`."""
    return _Heatmap(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets([Query(expr, "{{le}}")], "heatmap"),
        maxDataPoints=None,
        extraJson={"options": {"yAxis": {"unit": unit}}},
    )


@dataclass
class Layout:
    """Places panels from left to right, row under row."""

    panels: list[Any] = field(default_factory=list)
    _y: int = 0

    def section(self, title: str) -> None:
        """A titled line across the board."""
        self.panels.append(core.RowPanel(title=title, gridPos=core.GridPos(h=1, w=COLUMNS, x=0, y=self._y)))
        self._y += 1

    def line(self, height: int, panels: Iterable[tuple[int, Any]]) -> None:
        """One line of (width in 24ths, panel). Raises ValueError when the widths do not fill it."""
        x = 0
        for width, panel in panels:
            panel.gridPos = core.GridPos(h=height, w=width, x=x, y=self._y)
            self.panels.append(panel)
            x += width
        if x != COLUMNS:
            raise ValueError(f"a line is {COLUMNS} wide, these panels are {x}")
        self._y += height

    def spread(self, height: int, panels: Sequence[Any], per_line: int) -> None:
        """Panels in lines of at most `per_line`, lines alike in number and panels alike in width."""
        lines = -(-len(panels) // per_line)
        for line in range(lines):
            row = panels[line * len(panels) // lines : (line + 1) * len(panels) // lines]
            widths = [COLUMNS * (place + 1) // len(row) - COLUMNS * place // len(row) for place in range(len(row))]
            self.line(height, zip(widths, row, strict=True))


class _Matrix(core.Panel):  # type: ignore[misc]
    """A table whose rows and columns are two labels (grafanalib's table has the keys of a Grafana that is gone)."""

    def to_json_data(self) -> Any:
        return self.panel_json(
            {
                "type": "table",
                "fieldConfig": {
                    "defaults": {
                        "color": {"mode": "thresholds"},
                        "custom": {"cellOptions": {"type": "color-background"}},
                    },
                    "overrides": [],
                },
                "options": {"showHeader": True, "cellHeight": "sm"},
            }
        )


def matrix(title: str, expr: str, rows: str, columns: str, *, unit: str, description: str, limit: float) -> _Matrix:
    """One value for each pair of two labels, red from `limit` on and amber from half of it."""
    steps = ((GREEN, None), (AMBER, limit / 2), (RED, limit))
    return _Matrix(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets([Query(expr, instant=True)], "table"),
        maxDataPoints=None,
        transformations=[
            {"id": "groupingToMatrix", "options": {"rowField": rows, "columnField": columns, "valueField": "Value"}}
        ],
        extraJson={"fieldConfig": {"defaults": {"unit": unit, "noValue": NO_DATA}}},
        thresholds=[{"color": color, "value": value} for color, value in steps],
    )
