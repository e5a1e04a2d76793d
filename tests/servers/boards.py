"""A board's queries and variables, put to a Prometheus as Grafana would."""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from tests.servers.monitoring import query
from tests.servers.processes import Server, get_text

_WINDOWS = {"__rate_interval": "15s", "__range": "2m"}  # 15 scrapes, where there is one each second


def check_queries(server: Server, board: dict[str, Any], given: Mapping[str, str] | None = None) -> None:
    """Every query answers with numbers, `given` variables in place of their presets. Raises AssertionError."""
    values = {**chosen(board), **(given or {})}
    checked = 0
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            promql = filled(target["expr"], values)
            result = query(server, promql)
            assert result, f"{panel['title']}: nothing for {promql}"
            numbers = [float(series["value"][1]) for series in result]
            assert not all(math.isnan(number) for number in numbers), f"{panel['title']}: only NaN for {promql}"
            checked += 1
    assert checked >= 6


def check_variables(server: Server, board: dict[str, Any]) -> None:
    """Every variable has values, and its preset is one of them. Raises AssertionError."""
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        found = _values(variable, server, chosen(board))
        assert found, variable["name"]
        preset = variable["current"]["value"]
        assert preset == ["$__all"] or preset in found, (variable["name"], preset, found)


def chosen(board: dict[str, Any]) -> dict[str, str]:
    """Each variable's preset value, as Grafana would put it into a query."""
    values = dict(_WINDOWS)
    for variable in board["templating"]["list"]:
        current = variable["current"]["value"]
        values[variable["name"]] = variable["allValue"] if current == ["$__all"] else current
    return values


def filled(text: str, values: Mapping[str, str]) -> str:
    """Variables replaced by their values, as Grafana does."""
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values[match[1]], text)


def _values(variable: dict[str, Any], server: Server, values: Mapping[str, str]) -> list[str]:
    """What Grafana's drop-down would hold."""
    wanted = variable["query"]
    match = urllib.parse.quote(filled(wanted["metric"], values))
    answer = json.loads(get_text(f"{server.url}/api/v1/label/{wanted['label']}/values?match[]={match}"))
    pattern = variable.get("regex", "").strip("/")
    return [value for value in answer["data"] if re.search(pattern, value)]
