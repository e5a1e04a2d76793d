"""A grafanalib dashboard as the JSON that current Grafana stores."""

from __future__ import annotations

import json
from typing import Any

from grafanalib.core import Dashboard

from dashboards.variables import definition

# Grafana does not migrate dashboards older than 13 and stops applying old fixes at the version that is declared:
# what declares 41 must be in the form of 41.
SCHEMA_VERSION = 41

# Keys that grafanalib writes and current Grafana has not.
_DEAD_OF_DASHBOARD = ("__inputs", "gnetId", "hideControls", "id", "rows", "sharedCrosshair", "style", "version")
_DEAD_OF_PANEL = ("cacheTimeout", "editable", "error", "height", "hideTimeOverride", "minSpan", "span", "timeShift")
_DEAD_OF_VARIABLE = ("auto", "auto_count", "auto_min", "tagValuesQuery", "tagsQuery", "useTags")


def board_json(dashboard: Dashboard) -> dict[str, Any]:
    """The board as plain data, panels numbered, dead keys and unset values left out."""
    board: dict[str, Any] = _plain(dashboard.auto_panel_ids())
    for key in _DEAD_OF_DASHBOARD:
        board.pop(key, None)
    for panel in board["panels"]:
        _clean_panel(panel)
    for variable in board["templating"]["list"]:
        for key in _DEAD_OF_VARIABLE:
            variable.pop(key, None)
        variable["current"].pop("tags", None)
        if text := definition(variable):
            variable["definition"] = text
    board["schemaVersion"] = SCHEMA_VERSION
    return board


def board_text(dashboard: Dashboard) -> str:
    """The board as a file: sorted keys, so that a change of the code shows as a small change of the file."""
    return json.dumps(board_json(dashboard), indent=2, sort_keys=True, allow_nan=False) + "\n"


def _clean_panel(panel: dict[str, Any]) -> None:
    for key in _DEAD_OF_PANEL:
        panel.pop(key, None)
    if panel["type"] == "row":
        for key in ("fieldConfig", "links", "maxDataPoints", "targets", "transformations", "transparent"):
            panel.pop(key, None)
        return
    defaults = panel["fieldConfig"]["defaults"]
    steps = defaults["thresholds"]["steps"]
    # The first step has no lower end, which Grafana writes as null; `_plain` has left it out.
    if steps:
        steps[0]["value"] = None
    else:
        del defaults["thresholds"]


def _plain(value: Any) -> Any:
    """Objects as plain data; unset (None) entries of mappings left out."""
    if hasattr(value, "to_json_data"):
        return _plain(value.to_json_data())
    if isinstance(value, dict):
        return {key: plain for key, item in value.items() if (plain := _plain(item)) is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
