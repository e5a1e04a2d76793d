"""Each rule of the linter finds its own bad example and nothing in a good one; the project's boards are clean."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cliffwatch.errors import InputError
from dashboards import command, export
from dashboards.lint import lint

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GOOD: dict[str, Any] = {
    "templating": {"list": [{"name": "datasource"}, {"name": "model"}]},
    "panels": [
        {
            "title": "TTFT",
            "type": "timeseries",
            "description": "How long people wait.",
            "datasource": SOURCE,
            "fieldConfig": {"defaults": {"unit": "s"}},
            "targets": [{"datasource": SOURCE, "expr": 'sum by (pod) (rate(ttft_sum{m="$model"}[$__rate_interval]))'
                        ' / sum by (pod) (rate(ttft_count{m="$model"}[$__rate_interval]))'}],
        }
    ],
}  # fmt: skip
M = '{m="$model"}'
BAD_QUERIES = {
    "undivided-sum": f"sum(rate(queue_seconds_sum{M}[$__rate_interval]))",
    "averaged-quantile": f"avg(histogram_quantile(0.9, sum by (le, pod) (rate(ttft_bucket{M}[$__rate_interval]))))",
    "interval": f"sum(rate(requests_total{M}[$__interval]))",
    "unaggregated-rate": f"rate(requests_total{M}[$__rate_interval]) > 0",
}


def rules(board: dict[str, Any]) -> list[str]:
    return [finding.rule for finding in lint(board)]


def test_a_good_board_has_no_finding() -> None:
    assert lint(GOOD) == []


@pytest.mark.parametrize("rule", BAD_QUERIES)
def test_a_bad_query_breaks_its_own_rule_alone(rule: str) -> None:
    board = copy.deepcopy(GOOD)
    board["panels"][0]["targets"][0]["expr"] = BAD_QUERIES[rule]
    assert rules(board) == [rule]


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("missing-description", {"description": ""}),
        ("missing-unit", {"fieldConfig": {"defaults": {}}}),
        ("fixed-data-source", {"datasource": {"type": "prometheus", "uid": "abc"}}),
        ("fixed-data-source", {"datasource": "Prometheus"}),
    ],
)
def test_a_bad_panel_breaks_its_own_rule_alone(rule: str, change: dict[str, Any]) -> None:
    board = copy.deepcopy(GOOD)
    board["panels"][0] |= change
    assert rules(board) == [rule]


def test_a_variable_that_no_query_uses() -> None:
    board = copy.deepcopy(GOOD)
    board["templating"]["list"].append({"name": "agg_method"})
    assert [(one.place, one.rule) for one in lint(board)] == [("$agg_method", "unused-variable")]


@pytest.mark.parametrize("name", sorted(command.BOARDS))
def test_our_own_boards_are_clean(name: str) -> None:
    assert lint(export.board_json(command.BOARDS[name]())) == []


def test_the_command_ends_with_1_and_names_the_panel(tmp_path: Path) -> None:
    board = copy.deepcopy(GOOD)
    board["panels"][0]["description"] = ""
    (tmp_path / "bad.json").write_text(json.dumps(board))
    result = CliRunner().invoke(command.app, ["lint", str(tmp_path / "bad.json"), "--json"])
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)
    assert (finding["place"], finding["rule"]) == ("TTFT", "missing-description")
    assert CliRunner().invoke(command.app, ["lint"]).exit_code == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"panels": 3}', '{"panels": [3]}'])
def test_what_is_no_board_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(text)
    result = CliRunner().invoke(command.app, ["lint", str(tmp_path / "odd.json")])
    assert isinstance(result.exception, InputError)
    assert "odd.json" in str(result.exception)
