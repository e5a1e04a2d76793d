"""The API's figures, each against one worked out from the rows with numpy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from cliffwatch.records.manifest import RunState
from cliffwatch.records.schema import Outcome
from cliffwatch.slo.spec import parse_slo
from services.slo.app import create_app
from services.slo.store import RunStore
from tests.records.synthetic import SyntheticRun, make_manifest, make_run
from tests.services.slo.conftest import named_run

FIGURES = ("attainment", "percentiles", "heatmap", "timeline", "outcomes")


def get(client: TestClient, path: str, status: int = 200) -> Any:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert "NaN" not in answer.text
    return answer.json()


def measured(table: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """Columns of the measured phase: floats with NaN for null; outcome as text."""
    phase = np.array(table["phase"].to_pylist())
    columns = {
        name: np.array([np.nan if value is None else value for value in table[name].to_pylist()], float)[
            phase == "measured"
        ]
        for name in ("input_tokens", "batch", "intended_ns", "sent_ns", "first_token_ns", "itl_s")
    }
    columns["outcome"] = np.array(table["outcome"].to_pylist())[phase == "measured"]
    columns["ttft_user_s"] = (columns["first_token_ns"] - columns["intended_ns"]) / 1e9
    return columns


def test_health_and_choices(client: TestClient) -> None:
    assert get(client, "/healthz")["status"] == "ok"
    choices = get(client, "/v1/metrics")
    assert {"ttft_user_s", "itl_s", "e2e_s"} <= {one["name"] for one in choices["metrics"]}
    assert "p95" in choices["statistics"]


def test_empty_folder_lists_nothing(client: TestClient) -> None:
    assert get(client, "/v1/runs") == {"total": 0, "runs": []}


def test_list_is_newest_first_and_names_damage(root: Path, client: TestClient, run: SyntheticRun) -> None:
    named_run(root, "newer", 10)
    (root / "broken").mkdir()
    (root / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    (root / "logs").mkdir()
    listed = get(client, "/v1/runs")
    assert listed["total"] == 3
    assert {one["id"]: one["state"] for one in listed["runs"]} == {
        "broken": "damaged", "newer": "complete", "closed": "complete",
    }  # fmt: skip
    names = [one["id"] for one in listed["runs"]]
    assert names.index("newer") < names.index("closed")
    problem = next(one["problem"] for one in listed["runs"] if one["id"] == "broken")
    assert "damaged" in problem
    assert str(root) not in problem
    assert get(client, "/v1/runs?limit=1") == {"total": 3, "runs": listed["runs"][:1]}


def test_detail_counts_rows(client: TestClient, run: SyntheticRun) -> None:
    detail = get(client, "/v1/runs/closed")
    assert detail["rows"] == 4000
    assert detail["phases"] == {"measured": 3960, "warmup": 40}
    assert detail["elapsed_s"] == pytest.approx(max(run.table["ended_ns"].to_pylist()) / 1e9)
    assert detail["accounting"]["issued"] == 4000
    assert detail["state"] == "complete"
    assert detail["note"] is None


def test_attainment_equals_counting(client: TestClient, run: SyntheticRun) -> None:
    judgement = get(client, "/v1/runs/closed/attainment")["judgement"]
    rows = measured(run.table)
    ok = rows["outcome"] == Outcome.OK
    good = int(np.sum(ok & (rows["ttft_user_s"] <= 0.060)))
    # made to fail at 120 s, so every first-token time-out is over the threshold; stalled rows have no first token
    censored = int(np.sum(np.isin(rows["outcome"], [Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED])))
    first = judgement["objectives"][0]
    assert first["good"] == good
    assert first["n"] == int(ok.sum()) + first["censored"]
    assert first["censored"] <= censored
    assert first["attainment"] == pytest.approx(good / first["n"])
    itl = judgement["objectives"][2]
    assert itl["good"] == int(np.sum(ok & (rows["itl_s"] <= 0.020)))
    availability = judgement["objectives"][3]
    assert (availability["good"], availability["n"]) == (int(ok.sum()), 3960)


def test_percentiles_equal_numpy(client: TestClient, run: SyntheticRun) -> None:
    answer = get(client, "/v1/runs/closed/percentiles?metric=ttft_user_s")
    values = measured(run.table)["ttft_user_s"]
    values = values[~np.isnan(values)]
    assert answer["n"] == values.size
    assert answer["mean"] == pytest.approx(values.mean())
    for one in answer["percentiles"]:
        assert one["value"] == pytest.approx(np.quantile(values, one["p"]))
    assert [one["few"] for one in answer["percentiles"]] == [False, False, False, False, True]  # 0.999 needs 10,000


def test_heatmap_cells_equal_numpy(client: TestClient, run: SyntheticRun) -> None:
    answer = get(client, "/v1/runs/closed/heatmap?metric=ttft_user_s&statistic=p50")
    rows = measured(run.table)
    known = ~np.isnan(rows["ttft_user_s"])
    spans = answer["rows"]["spans"]
    for r, (low, high) in enumerate(spans):
        last = r == len(spans) - 1
        for c, batch in enumerate(answer["columns"]["keys"]):
            inside = (rows["input_tokens"] >= low) & (
                (rows["input_tokens"] <= high) if last else (rows["input_tokens"] < high)
            )
            cell = rows["ttft_user_s"][known & inside & (rows["batch"] == int(batch))]
            assert answer["counts"][r][c] == cell.size
            assert answer["few"][r][c] == (cell.size < 20)
            if cell.size >= 2:
                assert answer["values"][r][c] == pytest.approx(np.quantile(cell, 0.5))
            else:
                assert answer["values"][r][c] is None
    assert answer["n"] == int(known.sum())


def test_timeline_bins_equal_numpy(client: TestClient, run: SyntheticRun) -> None:
    answer = get(client, "/v1/runs/closed/timeline?metric=ttft_user_s&bins=20")
    rows = measured(run.table)
    bins = np.floor(rows["intended_ns"] / 1e9 / answer["width_s"]).astype(int)
    assert len(answer["start_s"]) <= 21
    assert sum(answer["requests"]) == 3960
    for i, start_s in enumerate(answer["start_s"]):
        here = bins == round(start_s / answer["width_s"])
        values = rows["ttft_user_s"][here & ~np.isnan(rows["ttft_user_s"])]
        assert answer["requests"][i] == here.sum()
        assert answer["counts"][i] == values.size
        assert answer["failed"][i] == int(np.sum(here & (rows["outcome"] != Outcome.OK)))
        assert answer["p95"][i] == (pytest.approx(np.quantile(values, 0.95)) if values.size >= 20 else None)


def test_outcomes_are_all_there(client: TestClient, run: SyntheticRun) -> None:
    answer = get(client, "/v1/runs/closed/outcomes")
    names, counts = np.unique(measured(run.table)["outcome"], return_counts=True)
    assert {one["outcome"]: one["n"] for one in answer["outcomes"]} == dict(zip(names, counts.tolist(), strict=True))
    assert sum(one["share"] for one in answer["outcomes"]) == pytest.approx(1)
    assert answer["errors"][0]["message"] == "made to fail"


def test_phase_chooses_the_rows(client: TestClient, run: SyntheticRun) -> None:
    assert get(client, "/v1/runs/closed/outcomes?phase=warmup")["n"] == 40
    cold = get(client, "/v1/runs/closed/percentiles?phase=cold")
    assert (cold["n"], cold["note"], cold["mean"]) == (0, "no data yet", None)


@pytest.mark.parametrize("part", FIGURES)
def test_run_without_rows_says_so(root: Path, client: TestClient, part: str) -> None:
    named_run(root, "empty", 0, state=RunState.RUNNING)
    assert get(client, f"/v1/runs/empty/{part}")["note"] == "no data yet"
    assert get(client, "/v1/runs/empty")["note"] == "no data yet"


def test_live_run_grows_with_its_parts(root: Path, client: TestClient, live: SyntheticRun) -> None:
    before = get(client, "/v1/runs/live/outcomes")["n"]
    tag = client.get("/v1/runs/live/outcomes").headers["etag"]
    more = make_run(root.parent / "more", 500, state=RunState.RUNNING, parts=1, workers=1, manifest=make_manifest())
    new = next((more.dir / "shards").glob("*.parquet"))
    new.rename(root / "live" / "shards" / "worker-007.part-0000.parquet")
    answer = client.get("/v1/runs/live/outcomes", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.json()["n"] == before + 495  # the first 1 % of the new rows is warm-up


def test_unchanged_run_is_a_304(client: TestClient, run: SyntheticRun) -> None:
    for path in ("/v1/runs", "/v1/runs/closed", *(f"/v1/runs/closed/{part}" for part in FIGURES)):
        tag = client.get(path).headers["etag"]
        again = client.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == tag


def test_closed_run_changed_by_hand_is_read_anew(root: Path, client: TestClient, run: SyntheticRun) -> None:
    assert get(client, "/v1/runs/closed/outcomes")["n"] > 0
    (root / "closed" / "shards" / "worker-001.parquet").unlink()
    answer = client.get("/v1/runs/closed/outcomes")
    assert answer.status_code == 409
    assert (answer.json()["file"], answer.json()["detail"]) == ("worker-001.parquet", "is missing: it held 2000 rows")


def test_without_slo_file_nothing_is_judged(root: Path, client: TestClient) -> None:
    named_run(root, "plain", 100, slo=None)
    answer = get(client, "/v1/runs/plain/attainment")
    assert answer["judgement"] is None
    assert "--slo" in answer["note"]


def test_given_slo_file_judges_every_run(root: Path, run: SyntheticRun) -> None:
    slo = parse_slo("name: strict\nobjectives: [{sli: availability, target: 50%}]", source="test")
    with TestClient(create_app(RunStore(root), slo)) as client:
        judgement = get(client, "/v1/runs/closed/attainment")["judgement"]
    assert judgement["slo"] == "strict"
    assert len(judgement["objectives"]) == 1


def test_a_folder_that_is_a_run_is_served_alone(root: Path, run: SyntheticRun) -> None:
    with TestClient(create_app(RunStore(root / "closed"))) as client:
        assert [one["id"] for one in get(client, "/v1/runs")["runs"]] == ["closed"]
        assert get(client, "/v1/runs/closed")["rows"] == 4000


def test_json_is_plain(client: TestClient, run: SyntheticRun) -> None:
    for part in FIGURES:
        json.loads(client.get(f"/v1/runs/closed/{part}").text, parse_constant=pytest.fail)
