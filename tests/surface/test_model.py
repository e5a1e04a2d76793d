"""The surface model: what it says between measured cells, how wrong it is there, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.surface.hull import Hull
from cliffwatch.surface.measured import MeasuredCells, read_cells
from cliffwatch.surface.model import COVERAGE, Surface
from cliffwatch.surface.model_candidates import CANDIDATES
from cliffwatch.surface.model_check import checkerboard, leave_cell_out
from cliffwatch.surface.source import open_source

LENGTHS = np.exp2(np.arange(9, 16))
BATCHES = np.exp2(np.arange(0, 7))
Law = Callable[[float, float], float]


def law_s(tokens: float, batch: float) -> float:
    """A prefill: 5 ms, 20 us a token, 0.5 ns a pair."""
    return 5e-3 + 2e-5 * tokens * batch + 5e-10 * tokens**2 * batch


def measured(
    seed: int = 0, noise: float = 0.0, repeats: int = 1, most: float = 262_144, law: Law = law_s
) -> MeasuredCells:
    random = np.random.default_rng(seed)
    places = [(n, b) for b in BATCHES for n in LENGTHS if n * b <= most]
    values = tuple(law(n, b) * np.exp(random.normal(0, noise, repeats)) for n, b in places)
    lengths, batches = np.array(places).T
    return MeasuredCells("ttft_s", "none", lengths, batches, np.full(len(lengths), np.nan), values)


@pytest.mark.parametrize("name", CANDIDATES)
def test_each_model_is_near_the_law_at_cells_held_out(name: str) -> None:
    for way in (leave_cell_out, checkerboard):
        held = way(measured(), CANDIDATES[name])
        assert np.median(held.relative) < 0.05 and held.log_errors.size >= 30


def test_repeats_of_a_cell_are_held_out_together() -> None:
    cells = measured(noise=0.1, repeats=3)
    seen: list[int] = []

    def fit(places: np.ndarray, logs: np.ndarray):  # type: ignore[no-untyped-def]
        seen.append(len(places))
        return CANDIDATES["work"](places, logs)

    leave_cell_out(cells, fit)
    assert set(seen) == {len(cells.n) - 1}


def test_between_cells_it_says_what_the_law_says() -> None:
    answer = Surface(measured()).at(24 * 1024, 4)
    assert answer.value_s == pytest.approx(law_s(24 * 1024, 4), rel=0.01)
    assert answer.low_s <= answer.value_s <= answer.high_s and not answer.extrapolated
    # Within an octave of 24k x 4: lengths 16k and 32k; batches 2, 4 and 8.
    assert (answer.near_cells, answer.near_n, answer.cells) == (6, 6, 43)


def cliff_s(tokens: float, batch: float) -> float:
    """The same with a second step from 8,192 tokens on: half as much again, all at once."""
    return law_s(tokens, batch) * (1.5 if tokens * batch >= 8192 else 1.0)


@pytest.mark.parametrize(("law", "least"), [(law_s, 16), (cliff_s, 14)])
def test_intervals_hold_as_many_new_cells_as_they_say(law: Law, least: int) -> None:
    """24 surfaces by the model that is shipped, one new cell each.

    At a coverage of 0.9 fewer than 16 of 24 have a chance below 0.1 %. Along a cliff errors of neighbouring cells hang
    together: there 0.85 is asked for (fewer than 14: below 0.1 %).
    """
    random = np.random.default_rng(7)
    inside = 0
    for seed in range(24):
        tokens, batch = int(2 ** random.uniform(9.5, 12)), int(2 ** random.integers(0, 6))
        answer = Surface(measured(seed, noise=0.05, law=law)).at(tokens, batch)
        inside += answer.low_s <= law(tokens, batch) * np.exp(random.normal(0, 0.05)) <= answer.high_s
    assert COVERAGE == 0.9
    assert inside >= least


def test_p95_is_the_centre_times_the_spread_of_repeats() -> None:
    """Log-normal repeats of sigma 0.1: P95 over the median is exp(1.645 x 0.1); 430 repeats tell it to some 2 %."""
    surface = Surface(measured(noise=0.1, repeats=10), "work")
    ratio = surface.at(8192, 4, statistic="p95").value_s / surface.at(8192, 4).value_s
    assert ratio == pytest.approx(np.exp(0.1645), rel=0.03)


@pytest.mark.parametrize(
    ("tokens", "batch", "said"),
    [(65_536, 1, "nearest measured: 32k x 1"), (32_768, 64, "is outside"), (256, 1, "nearest measured: 512 x 1"),
     (0, 1, "1 or more")],
)  # fmt: skip
def test_outside_what_was_measured_it_refuses(tokens: int, batch: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Surface(measured()).at(tokens, batch)


def test_an_extrapolation_is_marked_and_wider_the_further_it_is() -> None:
    surface = Surface(measured(noise=0.05))
    inside, near, far = (surface.at(n, 1, extrapolate=True) for n in (32_768, 65_536, 131_072))
    assert (inside.extrapolated, near.extrapolated, far.extrapolated) == (False, True, True)
    widths = [np.log(one.high_s / one.low_s) for one in (inside, near, far)]
    assert widths[1:] == pytest.approx([2 * widths[0], 3 * widths[0]])
    with pytest.raises(InputError, match="too far outside what was measured"):
        surface.at(2**18 + 1, 1, extrapolate=True)  # over three octaves from 32k


def test_repeats_too_few_for_a_percentile_are_said() -> None:
    with pytest.raises(InputError, match="asks for 20 repeats of cells, 0 were measured"):
        Surface(measured()).at(8192, 4, statistic="p95")
    with pytest.raises(InputError, match="unknown statistic"):
        Surface(measured()).at(8192, 4, statistic="p42")


def test_too_few_cells_are_said() -> None:
    with pytest.raises(InputError, match="batch: has too few measured values"):
        Surface(measured().without(measured().batch > 2))
    with pytest.raises(InputError, match="too few cells lie between others"):
        Surface(measured().without((measured().batch > 4) | (measured().input_tokens > 2048)))


def test_a_hole_is_not_within_what_was_measured() -> None:
    cells = measured(most=np.inf)
    gone = (cells.input_tokens > 512) & (cells.input_tokens < 16_384)
    hull = Hull(cells.without(gone).places)
    assert not hull.holds(np.log2([4096, 4])) and hull.holds(np.log2([24_000, 4]))


@settings(max_examples=40, deadline=None)
@given(st.floats(8, 16), st.floats(-1, 7))
def test_the_hull_is_where_the_grid_was(length: float, batch: float) -> None:
    """In octaves the measured grid is a rectangle with one corner cut off at length x batch = 2 ** 18."""
    place = np.array([length, batch])
    edges = np.array([length - 9, 15 - length, batch, 6 - batch, 18 - length - batch])
    if np.abs(edges).min() > 1e-4:
        assert Hull(measured().places).holds(place) == bool((edges > 0).all())


def test_the_measured_engine_between_its_cells(shared_dir: Path) -> None:
    """Errors at held-out cells, as benchmarks/surface_models.py has them; TTFT with the prefix cached is left out: it
    was measured once a cell, and misses the aim."""
    folder = shared_dir / "measured" / "h200-vllm-0.24" / "llama3-8b"
    asked = {"grid_none": ("ttft_s", "itl_s", "e2e_s"), "grid_prefix": ("itl_s", "e2e_s")}
    for name, metrics in asked.items():
        source = open_source(folder / f"{name}.jsonl.gz")
        for metric in metrics:
            held = Surface(read_cells(source, metric)).held
            assert np.median(held.relative) <= 0.05 and np.quantile(held.relative, 0.95) <= 0.15
