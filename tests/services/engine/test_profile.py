"""Profiles: read, refused, and true to what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cliffwatch.errors import InputError
from scripts import fit_profile as fitting
from services.engine.profile import DEFAULT_PROFILE, PROFILES, load_profile

PROFILE = load_profile(DEFAULT_PROFILE)
THETA: dict[str, float] = {**PROFILE.intake.model_dump(), **PROFILE.step_time.model_dump()}


@pytest.mark.parametrize("name", sorted(path.stem for path in PROFILES.glob("*.yaml")))
def test_shipped_profiles_load_and_say_where_they_come_from(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.source.errors
    assert profile.limits.max_model_len <= profile.limits.kv_cache_tokens


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="h200-llama3-8b"):
        load_profile("h900")


def test_a_profile_file_with_a_wrong_figure_is_refused_by_field(tmp_path: Path) -> None:
    text = (PROFILES / f"{DEFAULT_PROFILE}.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("decode_base_s: ", "decode_base_s: -"), encoding="utf-8")
    with pytest.raises(InputError, match=r"step_time\.decode_base_s"):
        load_profile(str(path))


# Input tokens, batch, prefix cached; measured TTFT of the slowest prompt and mean ITL, seconds; how far TTFT is off.
MEASURED = [
    (512, 1, False, 0.024, 0.0048, 0.25),  # the two repeats were 18 and 24 ms
    (8192, 1, False, 0.218, 0.0051, 0.05),
    (32768, 1, False, 1.24, 0.0058, 0.05),
    (32768, 8, False, 9.8, 0.075, 0.05),
    (32768, 1, True, 0.048, 0.0059, 0.45),  # the worst cell: 67 ms simulated
    (32768, 8, True, 0.309, 0.0095, 0.3),
]


@pytest.mark.parametrize(("length", "batch", "cached", "ttft_s", "itl_s", "tolerance"), MEASURED)
def test_known_points_of_the_measured_engine(
    length: int, batch: int, cached: bool, ttft_s: float, itl_s: float, tolerance: float
) -> None:
    cell = fitting.Cell(cached, length, batch, 64, np.empty((batch, 3)))
    simulated = fitting.play_cell(PROFILE, THETA, cell)
    assert simulated[-1, 0] == pytest.approx(ttft_s, rel=tolerance)
    assert simulated[:, 1].mean() == pytest.approx(itl_s, rel=0.05)


def test_errors_on_unseen_cells_are_as_the_profile_says(shared_dir: Path) -> None:
    folder = shared_dir / "measured" / "h200-vllm-0.24" / "llama3-8b"
    if not folder.is_dir():
        pytest.skip(f"measured grids are not here: {folder}")
    _, unseen = fitting.split(fitting.read_cells(folder))
    errors: dict[str, Any] = fitting.relative_errors(PROFILE, THETA, unseen)
    for name, stated in PROFILE.source.errors.items():
        found = errors[name]
        assert (len(found), float(np.median(found)), float(np.percentile(found, 95))) == (
            stated.n,
            pytest.approx(stated.median, abs=0.001),
            pytest.approx(stated.p95, abs=0.001),
        ), name


def test_open_loop_of_the_measured_engine_is_reproduced(shared_dir: Path) -> None:
    """Poisson arrivals at 1 to 4 requests/s, the last beyond capacity: TTFT p50 and p95 within a tenth."""
    path = shared_dir / "measured" / "h200-vllm-0.24" / "llama3-8b" / "open_longtail.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the measured open loop is not here: {path}")
    for rate, simulated, measured in fitting.play_open_loop(PROFILE, THETA, path):
        for p in (50, 95):
            assert np.percentile(simulated, p) == pytest.approx(np.percentile(measured, p), rel=0.1), rate
