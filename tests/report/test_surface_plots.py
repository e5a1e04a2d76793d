"""Pictures of surfaces for the report: knees with their pieces, against another run, and the use of the hardware."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.reader import RunReader
from cliffwatch.report.surface_plots import knee, used
from cliffwatch.roofline.hardware import load_hardware
from cliffwatch.roofline.model import load_model
from cliffwatch.roofline.step import Deployment
from tests.slo.rows import run_of, served

ON = Deployment(hardware=load_hardware("h200"), model=load_model("llama-3-8b"))


def bent(folder: Path, place: int) -> RunReader:
    """Batches 1 to 32 at one length: TTFT 20 ms up to `place`, then 5 ms a prompt more."""
    rows = [
        served(number, batch=batch, ttft=(0.02 + 0.005 * max(0, batch - place)) * (1 + number % 5 / 100))
        for number, batch in enumerate([1, 2, 4, 6, 8, 12, 16, 24, 32] * 10)
    ]
    return run_of(folder, rows)


def test_the_surest_knee_is_drawn_with_its_pieces(tmp_path: Path) -> None:
    drawn = knee(bent(tmp_path / "run", 8).connect(), "TTFT", "ttft_s", None)
    assert drawn is not None
    (each,) = drawn.plot["breaks"]
    assert (drawn.plot["kind"], drawn.plot["columns"], drawn.plot["x"]) == (
        "curves",
        ["TTFT"],
        [1, 2, 4, 6, 8, 12, 16, 24, 32],
    )
    assert each["low"] <= 8 <= each["high"]
    assert len(drawn.plot["pieces"][0]["corners"]) == 3
    assert drawn.title.startswith("TTFT along batch") and "flat, then growing" in drawn.says
    few = run_of(tmp_path / "few", [served(number) for number in range(20)])
    assert knee(few.connect(), "TTFT", "ttft_s", None) is None


def test_against_another_run_both_are_drawn_and_the_move_is_told(tmp_path: Path) -> None:
    mine, theirs = bent(tmp_path / "mine", 8), bent(tmp_path / "theirs", 16)
    drawn = knee(mine.connect(), "TTFT", "ttft_s", theirs)
    assert drawn is not None
    name = theirs.manifest.run_id
    assert drawn.plot["columns"] == ["this run", name]
    assert {each["c"] for each in drawn.plot["breaks"]} == {0, 1}
    assert f"from {name}" in drawn.says and "Moved by -" in drawn.says
    flat = run_of(tmp_path / "flat", [served(number) for number in range(20)])
    drawn = knee(mine.connect(), "TTFT", "ttft_s", flat)
    assert drawn is not None and "No knee in both runs" in drawn.says


def test_use_of_the_hardware_is_a_heatmap_a_part(tmp_path: Path) -> None:
    reader = bent(tmp_path / "run", 8)
    decode, prefill = used(reader, ON, None)
    assert decode.title == "Memory bandwidth used, decode, by itl_s, cache none"
    assert prefill.plot["unit"] == "share" and prefill.plot["columns"][-1] == "×32"
    cell = prefill.plot["cells"][0][0]
    assert cell["n"] == 10 and cell["low"] < cell["value"] < cell["high"]
    assert "989 TFLOP/s" in prefill.says
    with pytest.raises(InputError, match="was not measured"):
        used(run_of(tmp_path / "none", []), ON, None)
