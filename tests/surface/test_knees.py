"""Knees for a picture: points with intervals, corners of the pieces, the axis that varies, moves between runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.foreign import read_foreign
from cliffwatch.surface.knee import Break, Knee
from cliffwatch.surface.knees import Knees, knees, moves
from cliffwatch.surface.words import said_knee
from tests.cli.test_surface_along import measured


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Knees:
    """Batches of 1 to 64, flat up to 16 (tests.cli.test_surface_along.measured)."""
    return knees(read_foreign(measured(tmp_path_factory.mktemp("knees") / "a.jsonl", 16)), "ttft_s")


def test_points_and_corners(found: Knees) -> None:
    assert (found.axis, found.by) == ("batch", "input_tokens")
    (curve,) = [one for one in found.curves if one.of == "1k"]
    assert [(point.x, point.n) for point in curve.points] == [(x, 6) for x in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)]
    corners = np.array(curve.corners)
    (knee,) = curve.knee.breaks
    assert corners[:, 0].tolist() == [1, knee.at, 64]
    assert corners[:, 1] == pytest.approx([0.02, 0.02, 0.02 * (1 + 0.1 * 48)], rel=0.1)
    # 10 points of 6 values, noise 0.03: t of 50 degrees is 2.009, so the factor is exp(2.009 x 0.03 / sqrt(6)) = 1.025
    first = curve.points[0]
    assert first.low is not None and first.high is not None
    assert first.high / first.value == pytest.approx(1.025, abs=0.008)
    assert first.value / first.low == pytest.approx(first.high / first.value)


def test_the_surest_curve_has_the_narrowest_interval(found: Knees) -> None:
    widths = {one.of: one.knee.breaks[0].high / one.knee.breaks[0].low for one in found.curves}
    assert found.surest is not None and found.surest.of == min(widths, key=lambda of: widths[of])
    assert Knees("ttft_s", "batch", "input_tokens", ()).surest is None


def test_the_first_axis_that_varies_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "input_tokens,batch,ttft\n" + "".join(f"{512 * 2**k},1,{0.01 * 2**k}\n" for k in range(6) for _ in "ab")
    )
    along = knees(read_foreign(path), "ttft_s")
    assert (along.axis, along.by, [one.of for one in along.curves]) == ("input_tokens", "batch", ["1"])
    few = knees(read_foreign(path), "ttft_s", "batch")
    assert all(one.knee.too_few is not None and one.corners == () for one in few.curves)
    with pytest.raises(InputError, match="unknown metric"):
        knees(read_foreign(path), "speed")


def test_how_far_knees_moved(found: Knees, tmp_path: Path) -> None:
    other = knees(read_foreign(measured(tmp_path / "b.jsonl", 8, seed=2)), "ttft_s")
    told = dict(moves(found, other))
    assert len(told) == 8  # lengths
    assert all(0.3 < one.ratio < 0.75 and one.high < 1 and one.shown for one in told.values())
    assert moves(found, Knees("ttft_s", "batch", "input_tokens", ())) == ()


def test_pieces_that_are_alike_say_which_is_steeper() -> None:
    both = Break(4.0, 3.0, 5.0), Break(16.0, 12.0, 20.0)
    said = said_knee(Knee(both, (1.0, 4.0, 2.0), (1.0, 4.0, 52.0, 148.0), 9, 9, 0.0), "ttft_s")
    assert "at 4 (95 %: 3 to 5) and 16 (95 %: 12 to 20): growing, then growing faster, then growing more slowly" in said
