"""The generated boards are in the form that current Grafana reads, and say what they show."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cliffwatch.errors import InputError
from dashboards import command, export, panels
from dashboards.panels import Layout, Query

CHECKED_IN = Path(__file__).resolve().parents[2] / "deploy/grafana/dashboards"
BUILT_IN = {"__range", "__rate_interval"}
PANEL_TYPES = {"row", "stat", "table", "timeseries", "heatmap"}


@pytest.fixture(params=sorted(command.BOARDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def board(name: str) -> dict[str, Any]:
    return export.board_json(command.BOARDS[name]())


def data_panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def test_the_checked_in_file_is_what_the_code_builds(name: str) -> None:
    text = (CHECKED_IN / f"{name}.json").read_text()
    assert text == export.board_text(command.BOARDS[name]()), "run `cliffwatch dashboards build`"


def test_no_file_is_checked_in_that_no_board_builds() -> None:
    assert {path.stem for path in CHECKED_IN.iterdir()} == set(command.BOARDS)


def test_identity(board: dict[str, Any], name: str) -> None:
    assert board["uid"] == f"cliffwatch-{name}"
    assert len(board["uid"]) <= 40  # Grafana's limit
    assert board["schemaVersion"] >= 39
    assert board["title"]
    assert board["description"]
    assert "id" not in board  # a number of one Grafana's database


def test_panels_have_their_own_ids_and_do_not_overlap(board: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = set(
            itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
        )
        assert place["x"] + place["w"] <= panels.COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_panel_explains_itself_and_has_a_unit(board: dict[str, Any]) -> None:
    for panel in data_panels(board):
        assert panel["type"] in PANEL_TYPES
        assert panel["title"]
        assert panel["description"], panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        unit = panel["options"]["yAxis"]["unit"] if panel["type"] == "heatmap" else defaults["unit"]
        assert unit, panel["title"]
        assert panel["type"] == "heatmap" or defaults["noValue"], panel["title"]


def test_interpolated_percentiles_say_so(board: dict[str, Any]) -> None:
    for panel in data_panels(board):
        if "histogram_quantile" in json.dumps(panel["targets"]):
            assert "interpolated" in panel["description"], panel["title"]


def test_queries_have_reference_ids_and_the_chosen_data_source(board: dict[str, Any]) -> None:
    for panel in data_panels(board):
        references = [target["refId"] for target in panel["targets"]]
        assert all(references)
        assert len(set(references)) == len(references)
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_windows_follow_the_scrape_interval_or_the_range(board: dict[str, Any]) -> None:
    """`$__interval` may be shorter than two scrapes, and then every rate is empty."""
    for panel in data_panels(board):
        for target in panel["targets"]:
            windows = set(re.findall(r"\[([^]]+)\]", target["expr"]))
            allowed = {"$__range"} if target["instant"] else {"$__rate_interval"}
            assert windows <= allowed, target["expr"]
            assert target["range"] is not target["instant"]


def test_both_sides_of_a_division_are_aggregated_alike(board: dict[str, Any]) -> None:
    for panel in data_panels(board):
        for target in panel["targets"]:
            sides = [re.sub(r"^\(", "", side.strip()) for side in target["expr"].split(" / ")]
            found = [re.match(r"(sum(?: by \([^)]*\))?)", side) for side in sides if len(sides) > 1]
            grouping = {one.group() for one in found if one}
            assert len(grouping) <= 1, target["expr"]


def test_variables_are_defined_and_used(board: dict[str, Any]) -> None:
    variables = board["templating"]["list"]
    text = json.dumps([board["panels"], [variable.get("datasource") for variable in variables]])
    used = {first or second for first, second in re.findall(r"\$(?:\{(\w+)\}|(\w+))", text)} - BUILT_IN
    assert used == {variable["name"] for variable in variables}
    for variable in variables:
        assert variable["label"]
        assert variable["current"]["value"], variable["name"]


def test_thresholds_start_without_a_lower_end(board: dict[str, Any]) -> None:
    for panel in data_panels(board):
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        values = [step["value"] for step in steps]
        assert values[:1] in ([], [None]), panel["title"]
        assert all(isinstance(value, int | float) for value in values[1:])


def test_nothing_of_an_older_grafana_is_left(board: dict[str, Any]) -> None:
    dead = {"rows", "style", "gnetId", "sharedCrosshair", "hideControls", "__inputs"}
    assert not dead & set(board)
    for panel in board["panels"]:
        assert not {"span", "minSpan", "height", "error", "editable", "cacheTimeout"} & set(panel)
        for target in panel.get("targets", ()):
            assert not {"intervalFactor", "step", "metric", "target", "query"} & set(target)
        assert isinstance(panel.get("options", {}), dict)
        assert not {"cards", "dataFormat", "xAxis"} & set(panel)


def test_build_writes_every_board_and_names_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(command.app, ["build", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0
    for name in command.BOARDS:
        path = tmp_path / "new" / f"{name}.json"
        assert str(path) in result.output
        assert json.loads(path.read_text())["uid"]


def test_diff_shows_a_changed_file_and_a_missing_one_and_nothing_else(tmp_path: Path) -> None:
    run = CliRunner().invoke
    run(command.app, ["build", "--out", str(tmp_path)])
    same = run(command.app, ["diff", "--against", str(tmp_path)])
    assert (same.exit_code, same.output) == (0, "")
    changed = tmp_path / "slo.json"
    changed.write_text(changed.read_text().replace('"Burn-down"', '"Burned"'))
    (tmp_path / "load.json").unlink()
    result = run(command.app, ["diff", "--against", str(tmp_path)])
    assert result.exit_code == 1
    assert '-      "title": "Burned"' in result.output
    assert '+  "uid": "cliffwatch-load"' in result.output
    assert "overview.json" not in result.output


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = CliRunner().invoke(command.app, ["build", "--out", str(tmp_path / "taken")])
    assert isinstance(result.exception, InputError)
    assert "taken" in str(result.exception)


def test_a_line_of_panels_must_fill_the_width() -> None:
    panel = panels.stat("one", Query("up"), unit="short", description="d")
    with pytest.raises(ValueError, match="24 wide"):
        Layout().line(4, [(12, panel)])
