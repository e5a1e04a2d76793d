"""The preview: every figure against the schedule itself."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from rich.console import Console

from cliffwatch.errors import InputError
from cliffwatch.workload.picture import render
from cliffwatch.workload.preview import Preview, preview
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload, load_workload, preset_names, with_changes
from tests.workload.test_schedule import WORKLOADS


def drawn(figures: Preview, width: int = 80) -> str:
    console = Console(width=width, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(render(figures))
    return capture.get()


def test_figures_are_those_of_the_schedule() -> None:
    workload = load_workload("longtail")
    plans, figures = list(schedule(workload)), preview(workload, shards=3)
    assert figures.complete
    assert figures.n == figures.expected_requests == len(plans)
    assert (figures.duration_s, figures.rate_asked) == (60.0, 4.0)
    gaps = np.diff([plan.intended_ns for plan in plans])
    assert figures.gaps is not None
    assert figures.gaps.n == len(plans) - 1
    assert figures.gaps.cv == pytest.approx(np.std(gaps, ddof=1) / np.mean(gaps))
    assert figures.rate_achieved == pytest.approx(1e9 / np.mean(gaps))
    windows = np.bincount([plan.intended_ns // 1_250_000_000 for plan in plans], minlength=48)  # 5 arrivals at 4/s
    assert figures.gaps.dispersion == pytest.approx(np.var(windows, ddof=1) / np.mean(windows))
    assert (figures.gaps.bins, figures.gaps.bin_s) == (48, 1.25)
    lengths = [plan.input_tokens for plan in plans]
    assert (figures.input_tokens.min, figures.input_tokens.max) == (min(lengths), max(lengths))
    assert figures.input_tokens.p95 == pytest.approx(np.quantile(lengths, 0.95))
    assert figures.total_input_tokens == sum(plan.input_tokens * plan.batch for plan in plans)
    assert figures.total_output_tokens == sum(plan.output_tokens * plan.batch for plan in plans)
    assert figures.prompts == sum(plan.batch for plan in plans)
    assert figures.by_batch == {size: sum(plan.batch == size for plan in plans) for size in figures.by_batch}
    assert figures.by_phase == {
        name: sum(plan.phase == name for plan in plans) for name in ("cold", "warmup", "measured")
    }
    assert figures.by_endpoint["chat"] == figures.by_batch[1]
    assert figures.prefix_requests == sum(plan.cache == "prefix" for plan in plans)
    assert figures.shared_input_tokens == sum(plan.prefix_tokens * plan.batch for plan in plans)
    parts = [list(schedule(workload, shard=shard, shards=3)) for shard in range(3)]
    assert [part.requests for part in figures.shards] == [len(part) for part in parts]
    assert [part.input_tokens for part in figures.shards] == [
        sum(plan.input_tokens * plan.batch for plan in part) for part in parts
    ]


@settings(max_examples=25, deadline=None)
@given(workload=WORKLOADS)
def test_any_workload_has_a_preview_that_adds_up(workload: Workload) -> None:
    assume(next(schedule(workload), None) is not None)  # a second at one a second may hold none, and is refused
    figures = preview(workload, shards=2)
    assert sum(figures.by_batch.values()) == sum(figures.by_endpoint.values()) == figures.n
    assert sum(sum(row.by_batch.values()) for row in figures.grid) == figures.n
    assert sum(part.requests for part in figures.shards) == figures.n
    assert sum(figures.arrivals_over_time) in {0, figures.n}
    assert figures.by_phase is None or sum(figures.by_phase.values()) == figures.n
    assert f"{figures.n:,}" in drawn(figures)


def test_two_requests_after_a_long_silence_have_no_dispersion() -> None:
    bursty = {"kind": "gamma", "rate": 1.0, "burstiness": 0.015625}
    figures = preview(Workload.model_validate({"seed": 2, "requests": 2, "arrivals": bursty}))
    assert figures.n == 2
    assert figures.gaps is not None
    assert figures.gaps.dispersion is None


def test_a_million_requests_are_previewed_at_once_and_more_are_not() -> None:
    million = with_changes(load_workload("longtail"), duration=None, requests=1_000_000)
    began = time.perf_counter()
    figures = preview(million)
    taken = time.perf_counter() - began
    assert (figures.complete, figures.n) == (True, 1_000_000)
    assert taken < 20  # about 0.4 s on an idle core
    more = preview(with_changes(million, requests=1_000_001))
    assert (more.complete, more.n, more.expected_requests) == (False, 1_000_000, 1_000_001)
    assert "Only the first 1,000,000 requests are previewed" in drawn(more)


def test_a_load_that_time_ends_says_about_how_many() -> None:
    figures = preview(with_changes(load_workload("longtail"), duration="1h"), limit=1000)
    assert (figures.complete, figures.n, figures.expected_requests) == (False, 1000, 14_400)
    assert figures.duration_s is not None
    assert figures.duration_s < 600
    assert "about 14,400" in drawn(figures)


def test_a_closed_loop_shows_what_is_known() -> None:
    figures = preview(load_workload("closed"), shards=3)
    assert (figures.n, figures.complete, figures.expected_requests) == (10_000, False, None)
    assert (figures.gaps, figures.rate_asked, figures.rate_achieved, figures.by_phase) == (None, None, None, None)
    assert [part.users for part in figures.shards] == [3, 3, 2]
    text = drawn(figures)
    assert "as many as fit" in text
    assert "8 users" in text
    assert "decided while running" in text
    counted = preview(with_changes(load_workload("closed"), duration=None, requests=50, warmup={"requests": 5}))
    assert (counted.n, counted.complete, counted.duration_s) == (50, True, None)
    assert counted.by_phase == {"cold": 1, "warmup": 5, "measured": 44}


@pytest.mark.parametrize("requests", [2, 3])
def test_figures_that_too_few_requests_do_not_have_are_null(requests: int) -> None:
    figures = preview(with_changes(load_workload("smoke"), requests=requests))
    assert figures.gaps is not None
    assert figures.gaps.dispersion is None
    assert figures.gaps.cv == (None if requests == 2 else 0.0)
    assert "dispersion     –" in drawn(figures)


def test_a_single_request_has_no_rate() -> None:
    figures = preview(with_changes(load_workload("smoke"), requests=1, cold_start={"requests": 0}))
    assert (figures.rate_achieved, figures.gaps, figures.arrivals_over_time) == (None, None, ())
    assert "–" in drawn(figures)


def test_a_load_that_ends_before_its_first_request_is_refused() -> None:
    arrivals = {"kind": "poisson", "rate": 0.001}
    with pytest.raises(InputError, match="duration: ends before its first request"):
        preview(with_changes(load_workload("longtail"), arrivals=arrivals, duration="10ms", warmup={}))


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_preset_fits_the_terminal(name: str, width: int) -> None:
    assert max(len(line) for line in drawn(preview(load_workload(name), shards=2), width).splitlines()) <= width


def test_a_name_is_no_markup() -> None:
    text = drawn(preview(with_changes(load_workload("smoke"), name="[bold]x[/nope]", description="[/]")))
    assert "[bold]x[/nope]" in text


def test_no_figure_of_a_million_requests_is_cut_at_80_columns() -> None:
    assert "…" not in drawn(preview(with_changes(load_workload("longtail"), duration=None, requests=1_000_000)))


def test_a_changing_rate_is_previewed_by_its_mean() -> None:
    ramp = {"kind": "ramp", "shape": "steps", "end_rate": 3, "stages": 6, "over": 600}
    figures = preview(Workload.model_validate({"duration": 600, "arrivals": ramp}))
    assert figures.rate_asked == pytest.approx(1.75)  # (0.5 + 1 + 1.5 + 2 + 2.5 + 3) / 6
    assert figures.rate_achieved == figures.n / 600
    parts = figures.arrivals_over_time
    assert sum(parts[50:]) > 3 * sum(parts[:10])  # 3/s against 0.5/s
    limited = with_changes(Workload.model_validate({"duration": 600, "arrivals": ramp}), duration=300)
    assert preview(limited, limit=10).expected_requests == pytest.approx(300)  # 100 s each of 0.5, 1, 1.5
