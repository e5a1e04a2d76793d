"""`cliffwatch surface grid`: table, JSON and CSV of the same cells, and what it says to wrong input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import Command
from tests.records.synthetic import SyntheticRun, make_run


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return make_run(tmp_path_factory.mktemp("grid") / "run", 600, gaps=False)


def test_table_json_and_csv_have_the_same_cells(run: SyntheticRun, command: Command) -> None:
    asked = ("surface", "grid", run.dir, "--statistic", "p50", "--facet", "cache")
    told, listed, table = command(*asked, "--json"), command(*asked, "--csv"), command(*asked)
    assert (told.code, listed.code, table.code) == (0, 0, 0)
    rows = list(csv.DictReader(io.StringIO(listed.out)))
    cells = [{**cell, "facet": grid["facet"]} for grid in json.loads(told.out)["grids"] for cell in grid["cells"]]
    assert [(one["facet"], int(one["row"]), int(one["n"])) for one in rows] == [
        (one["facet"], one["row"], one["n"]) for one in cells
    ]
    tokens, batch = run.table["input_tokens"].to_numpy(), run.table["batch"].to_numpy()
    words = {name: np.array(run.table[name].to_pylist()) for name in ("phase", "outcome", "cache")}
    inside = (tokens >= 16_384) & (batch == 1) & (words["phase"] == "measured") & (words["outcome"] == "ok")
    inside &= words["cache"] == "none"
    ttft = (np.array(run.table["first_token_ns"].to_pylist(), float) - run.table["sent_ns"].to_numpy()) / 1e9
    (mine,) = [one for one in rows if (one["facet"], one["row"], one["column"]) == ("none", "16384", "1")]
    assert float(mine["value"]) == pytest.approx(np.median(ttft[inside]))
    assert (int(mine["n"]), mine["row_end"], mine["column_end"]) == (inside.sum(), "32768", "")
    assert f"n {inside.sum()}" in table.out
    assert "octaves" in table.out and "cache prefix" in table.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "RUN: needs one source"),
        (("RUN", "--prometheus", "http://127.0.0.1:9"), "RUN: needs one source"),
        (("RUN", "--json", "--csv"), "--json, --csv"),
        (("RUN", "--rows", "tokens"), "rows: unknown rows"),
        (("RUN", "--statistic", "attainment"), "threshold: goes with attainment"),
        (("RUN", "--statistic", "attainment", "--threshold", "soon"), "--threshold: is no length of time"),
        (("RUN", "--column-bins", "log:99"), "column_bins: are no bins"),
        (("--prometheus", "http://127.0.0.1:9", "--engine", "x"), "engine: is no engine of the catalog"),
        (("--prometheus", "http://127.0.0.1:9", "--last", "0s"), "--last: must be over 0"),
    ],
)
def test_wrong_input_is_said(run: SyntheticRun, command: Command, arguments: tuple[str, ...], said: str) -> None:
    ended = command("surface", "grid", *(run.dir if one == "RUN" else one for one in arguments))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_prometheus_that_does_not_answer_is_code_4(command: Command) -> None:
    assert command("surface", "grid", "--prometheus", "http://127.0.0.1:9").code == 4


def test_an_empty_grid_says_so(run: SyntheticRun, command: Command, tmp_path: Path) -> None:
    ended = command("surface", "grid", run.dir, "--columns", "tenant")
    assert ended.code == 0
    assert "no request has that figure and these dimensions" in ended.out
    assert "lack one of the dimensions and are in no cell" in ended.out
