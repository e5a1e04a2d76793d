"""Fits: what a known workload sends is fitted back to it, and the figures of nearness are right ones."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.config import parse_config
from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.fitting import Fit, distance, fit
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload


def trace_of(path: Path, rows: list[dict[str, object]]) -> TraceArrivals:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return TraceArrivals(kind="trace", file=str(path))


def fitted(path: Path, **fields: object) -> Fit:
    """The fit to what a workload with these fields sends, written as a trace."""
    lengths = {"input_tokens": {"kind": "lognormal", "median": 500, "sigma": 1, "min": 1, "max": 9000}}
    workload = Workload.model_validate({"seed": 9, "batch": {"sizes": [1]}, **lengths, **fields})
    rows = [
        {"time_ns": plan.intended_ns, "input_tokens": plan.input_tokens, "output_tokens": plan.output_tokens}
        for plan in schedule(workload)
    ]
    spec = trace_of(path, rows)
    return fit(spec.model_copy(update={"columns": None, "time_unit": "ns", "format": "plain"} | NAMED))


NAMED = {
    "columns": TraceArrivals.model_validate({"kind": "trace", "file": "-", "columns": {"time": "time_ns"}}).columns
}


@pytest.mark.parametrize(
    ("arrivals", "kind", "burstiness"),
    [
        ({"kind": "constant", "rate": 50}, "constant", None),
        ({"kind": "poisson", "rate": 50}, "poisson", None),
        ({"kind": "gamma", "rate": 50, "burstiness": 0.25}, "gamma", 0.25),
        ({"kind": "gamma", "rate": 50, "burstiness": 9}, "gamma", 9),
    ],
)
def test_steady_arrivals_are_found_again(
    tmp_path: Path, arrivals: dict[str, object], kind: str, burstiness: float | None
) -> None:
    found = fitted(tmp_path / "t", arrivals=arrivals, requests=20_000)
    assert found.workload.arrivals.kind == kind
    assert found.workload.rate == pytest.approx(50, rel=0.05)
    # 20,000 gaps of CV 2 tell it to 1 % or so, and its square to twice that
    assert getattr(found.workload.arrivals, "burstiness", None) == (burstiness and pytest.approx(burstiness, rel=0.1))
    assert found.fidelity.score > 0.97
    assert found.fidelity.cv.fitted == pytest.approx(found.fidelity.cv.trace, rel=0.05, abs=0.001)
    assert found.notes == found.repairs == ()


@pytest.mark.parametrize(
    ("arrivals", "burstiness"),
    [
        ({"kind": "diurnal", "low": 5, "high": 60, "period": 300}, None),
        ({"kind": "ramp", "start_rate": 2, "end_rate": 60, "over": 900}, None),
        ({"kind": "ramp", "start_rate": 2, "end_rate": 60, "over": 900, "burstiness": 0.3}, 0.3),
    ],
)
def test_rates_that_change_become_a_curve_and_keep_their_burstiness(
    tmp_path: Path, arrivals: dict[str, object], burstiness: float | None
) -> None:
    found = fitted(tmp_path / "t", arrivals=arrivals, duration=900)
    model = found.workload.arrivals
    assert model.kind == "curve"
    assert getattr(model, "burstiness", None) == (burstiness and pytest.approx(burstiness, rel=0.15))
    assert found.fidelity.gaps < 0.05
    assert found.fidelity.dispersion.fitted == pytest.approx(found.fidelity.dispersion.trace, rel=0.25)
    true = Workload.model_validate({"duration": 900, "arrivals": arrivals})
    for at in (300, 600, 900):
        assert found.workload.expected_requests(at) == pytest.approx(true.expected_requests(at), rel=0.05)


def test_bursts_are_met_by_a_finer_curve(tmp_path: Path) -> None:
    found = fitted(tmp_path / "t", arrivals={"kind": "bursts", "on": 1, "off": 9, "on_rate": 100}, duration=900)
    assert found.workload.arrivals.kind == "curve"
    assert found.fidelity.gaps < 0.15
    assert found.fidelity.dispersion.fitted == pytest.approx(found.fidelity.dispersion.trace, rel=0.3)


def test_lengths_are_kept_to_half_a_percent_and_the_longest_nearly(tmp_path: Path) -> None:
    found = fitted(tmp_path / "t", arrivals={"kind": "poisson", "rate": 100}, requests=50_000)
    assert found.fidelity.input_tokens < 0.005 + found.fidelity.noise
    assert found.workload.input_tokens.bounds[1] > 8000
    assert found.workload.output_tokens.bounds[1] == 512
    assert len(found.text) < 30_000


def test_few_lengths_are_kept_as_they_are(tmp_path: Path) -> None:
    lengths = {"kind": "empirical", "values": [64, 512], "weights": [3, 1]}
    found = fitted(
        tmp_path / "t",
        arrivals={"kind": "constant", "rate": 9},
        requests=1000,
        input_tokens=lengths,
        output_tokens={"kind": "fixed", "value": 7},
    )
    assert found.workload.input_tokens.model_dump()["values"] == (64, 512)
    assert found.workload.output_tokens.model_dump() == {"kind": "fixed", "value": 7}
    assert found.fidelity.length_correlation.trace == 0


def test_prefix_sharing_is_kept_by_tokens_share_and_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows: list[dict[str, object]] = []
    for index in range(4000):
        shares = rng.random() < 0.6
        ids = [int(rng.integers(5)) * 10 + place for place in range(1)] * shares
        ids = [*ids, *([100 + ids[0]] if shares else []), *range(1000 + index * 9, 1000 + index * 9 + 4 - 2 * shares)]
        rows.append({"timestamp": index * 20, "input_length": 512 * len(ids), "output_length": 9, "hash_ids": ids})
    found = fit(trace_of(tmp_path / "t", rows))
    cache = found.workload.cache
    assert cache.groups == 5
    assert cache.prefix_share == pytest.approx(0.6, abs=0.03)
    assert cache.prefix_fraction == pytest.approx(0.5, abs=0.01)  # two blocks of four
    assert found.fidelity.shared_input.fitted == pytest.approx(found.fidelity.shared_input.trace, abs=0.02)


def test_the_file_holds_no_request(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 7 * index, "input_length": 600, "output_length": 9, "hash_ids": [77_777_001, 88_888_000 + index]}
        for index in range(50)
    ]
    found = fit(trace_of(tmp_path / "private.jsonl", rows))
    assert found.workload.name == "private"
    assert not any(secret in found.text for secret in ("77777", "88888", "hash", str(tmp_path)))
    assert parse_config(found.text, Workload, source="t") == found.workload


def test_a_coarse_clock_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    times = np.sort(rng.integers(0, 1000, 6000)) * 3000
    rows = [{"timestamp": int(at), "input_length": 9, "output_length": 9} for at in times]
    found = fit(trace_of(tmp_path / "t", rows))
    assert found.workload.arrivals.kind == "poisson"
    assert "coarse clock" in found.notes[0]
    assert found.fidelity.gaps > 0.5


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 0),
        ([1, 2], [3, 4], 1),
        ([1, 2, 3, 4], [3, 4, 5, 6], 0.5),
        ([0, 0, 1], [0, 1, 1], 1 / 3),
    ],
)
def test_the_distance_is_smirnovs(one: list[int], two: list[int], expected: float) -> None:
    assert distance(np.array(one), np.array(two)) == pytest.approx(expected)


@pytest.mark.parametrize("times", [[0] * 20, [0, 1]])
def test_too_little_to_fit_is_refused(tmp_path: Path, times: list[int]) -> None:
    rows: list[dict[str, object]] = [{"timestamp": at, "input_length": 9, "output_length": 9} for at in times]
    with pytest.raises(InputError, match="too few requests to fit"):
        fit(trace_of(tmp_path / "t", rows))


def test_a_trace_of_just_under_30_days_that_would_take_more_is_refused(tmp_path: Path) -> None:
    """Ten gaps of 3 days less 0.1 s end 1 s before the 30 days; eleven requests at that pace take 33."""
    times = [number * (3 * 86_400_000 - 100) for number in range(11)]
    rows: list[dict[str, object]] = [{"timestamp": at, "input_length": 9, "output_length": 9} for at in times]
    with pytest.raises(InputError, match="30 days"):
        fit(trace_of(tmp_path / "t.jsonl", rows))


@settings(max_examples=60, deadline=None)
@given(
    gaps=st.lists(st.integers(0, 10**9) | st.integers(0, 3), min_size=10, max_size=300),
    lengths=st.lists(st.integers(1, 1 << 24), min_size=1, max_size=20),
)
def test_any_trace_is_fitted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], lengths: list[int]
) -> None:
    times = np.cumsum([0, *gaps])
    rows: list[dict[str, object]] = [
        {"timestamp": int(at), "input_length": lengths[index % len(lengths)], "output_length": 1 + index % 7}
        for index, at in enumerate(times)
    ]
    try:
        found = fit(trace_of(tmp_path_factory.getbasetemp() / "any.jsonl", rows))
    except InputError as error:
        assert "too few" in str(error) or "30 days" in str(error)
    else:
        assert 0 <= found.fidelity.score <= 1
        assert all(math.isfinite(value) for value in (found.fidelity.cv.fitted, found.fidelity.dispersion.fitted))


@pytest.mark.parametrize(
    ("file", "score", "shared"),
    [
        ("azure-2023/AzureLLMInferenceTrace_conv.csv", 0.97, 0),
        ("azure-2023/AzureLLMInferenceTrace_code.csv", 0.78, 0),
        ("mooncake-fast25/synthetic_trace.jsonl.gz", 0.96, 0.65),
    ],
)
def test_published_traces_are_met(shared_dir: Path, file: str, score: float, shared: float) -> None:
    found = fit(TraceArrivals(kind="trace", file=str(shared_dir / "traces" / file)))
    assert found.fidelity.score > score
    assert found.fidelity.shared_input.trace == pytest.approx(shared, abs=0.02)
    assert found.fidelity.shared_input.fitted == pytest.approx(shared, abs=0.03)
    assert found.fidelity.dispersion.fitted == pytest.approx(found.fidelity.dispersion.trace, rel=0.25)
