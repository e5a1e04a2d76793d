"""Comparisons: false alarms and found changes over many pairs, and each result on pairs made for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cliffwatch.compare import Change, Comparison, compare
from cliffwatch.compare.compare import Rule, judge_pairs
from cliffwatch.compare.metrics import METRICS, choose
from cliffwatch.errors import InputError
from cliffwatch.records.folder import SLO_FILE
from cliffwatch.records.manifest import RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome
from tests.compare.pairs import Run, independent, pair_of, queued
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served

SLO = "name: own\nobjectives: [{sli: ttft, threshold: 1s, target: 95%}]\n"


@pytest.mark.parametrize(("law", "n"), [(independent, 2000), (queued, 4000)])
def test_equal_runs_are_called_changed_at_most_as_often_as_said(
    law: Callable[[np.random.Generator, int], Run], n: int
) -> None:
    # 200 pairs: any of eleven figures significant in either direction. At a true 5 % more than 22 such pairs come up
    # once in 2,000; a regression by the threshold as well is rarer still.
    rng = np.random.default_rng(11)
    changed = regressed = 0
    for _ in range(200):
        found = judge_pairs(pair_of(law(rng, n), law(rng, n)), Rule())
        changed += any(one.adjusted_p is not None and one.adjusted_p <= 0.05 for one in found)
        regressed += any(one.change is Change.REGRESSED for one in found)
    assert changed <= 22
    assert regressed <= 10


def test_a_tenth_more_is_found_where_there_are_enough_requests() -> None:
    rng = np.random.default_rng(12)
    found = dict.fromkeys(("ttft_p50", "itl_p50", "itl_p95", "e2e_p50"), 0)
    better = 0
    for _ in range(25):
        base, slow = independent(rng, 3000), independent(rng, 3000, slower=1.1)
        changes = {one.metric: one.change for one in judge_pairs(pair_of(base, slow), Rule())}
        for name in found:
            found[name] += changes[name] is Change.REGRESSED
        back = {one.metric: one.change for one in judge_pairs(pair_of(slow, base), Rule())}
        better += back["e2e_p50"] is Change.IMPROVED
    assert min(found.values()) >= 24
    assert better >= 24


def of(comparison: Comparison, metric: str) -> Any:
    return next(one for one in comparison.figures if one.metric == metric)


def test_figures_are_those_of_the_rows(tmp_path: Path) -> None:
    first = make_run(tmp_path / "base", 1500, rate=50, gaps=False)
    second = make_run(tmp_path / "new", 1500, rate=50, gaps=False, seed=8, failures=0.1)
    compared = compare(RunReader(first.dir), RunReader(second.dir))
    columns = first.table.to_pydict()
    ok = [place for place in range(1500) if columns["outcome"][place] == "ok" and columns["phase"][place] == "measured"]
    ttft = np.array([columns["first_token_ns"][place] - columns["intended_ns"][place] for place in ok]) / 1e9
    shown = of(compared, "ttft_p95").base
    assert (shown.n, shown.value) == (len(ok), pytest.approx(np.quantile(ttft, 0.95)))
    assert shown.low < shown.value < shown.high
    measured = [place for place in range(1500) if columns["phase"][place] == "measured"]
    first_due, last_due = (end([columns["intended_ns"][place] for place in measured]) for end in (min, max))
    in_time = [place for place in ok if columns["ended_ns"][place] <= last_due]
    rate = of(compared, "throughput").base
    assert (rate.n, rate.value) == (len(in_time), pytest.approx(len(in_time) / (last_due - first_due) * 1e9))
    tokens = of(compared, "output_tokens").base.value
    assert tokens == pytest.approx(
        sum(columns["output_tokens"][place] for place in in_time) / (last_due - first_due) * 1e9
    )
    errors = of(compared, "error_rate")
    assert errors.base.value == pytest.approx(1 - len(ok) / len(measured))
    assert errors.change is Change.REGRESSED
    assert errors.relative.value is None


def test_both_a_threshold_and_significance_are_needed(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", [served(n, ttft=0.1 + n % 50 / 1e5) for n in range(400)])
    slower = run_of(tmp_path / "new", [served(n, ttft=0.104 + n % 50 / 1e5) for n in range(400)])
    small = of(compare(base, slower, metrics=["ttft_p50"]), "ttft_p50")
    assert (small.change, small.ruled_out) == (Change.NO_CHANGE_SHOWN, True)
    assert small.adjusted_p < 0.001
    assert (
        of(compare(base, slower, metrics=["ttft_p50"], rule=Rule(threshold=0.03)), "ttft_p50").change
        is Change.REGRESSED
    )
    assert (
        of(compare(slower, base, metrics=["ttft_p50"], rule=Rule(threshold=0.03)), "ttft_p50").change is Change.IMPROVED
    )


def test_too_little_data(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", [served(n) for n in range(150)])
    new = run_of(tmp_path / "new", [served(n, ttft=0.9) for n in range(150)])
    compared = compare(base, new)
    assert of(compared, "ttft_p50").change is Change.REGRESSED
    assert of(compared, "ttft_p95").change is Change.TOO_FEW_DATA  # needs 200
    assert of(compared, "ttft_p99").p_value is None
    assert of(compared, "ttft_p99").base.high is None


def test_runs_in_which_nothing_succeeded(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", [refused(n, Outcome.CONNECT) for n in range(120)])
    new = run_of(tmp_path / "new", [served(n) for n in range(120)])
    compared = compare(base, new)
    assert of(compared, "ttft_p50").base.model_dump() == {"value": None, "low": None, "high": None, "n": 0}
    assert of(compared, "ttft_p50").change is Change.TOO_FEW_DATA
    assert of(compared, "error_rate").change is Change.IMPROVED
    assert of(compared, "throughput").relative.value is None  # the base's is 0


def test_odd_runs_compare_without_a_wrong_number(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / "empty", []),
        run_of(tmp_path / "one", [served(0)]),
        run_of(tmp_path / "zero", [served(n, ttft=0, itl=0) for n in range(300)]),
        run_of(tmp_path / "instant", [served(n, intended_ns=0, sent_ns=0) for n in range(300)]),
        run_of(tmp_path / "unknown", [served(n, output_tokens=None) for n in range(300)]),
        RunReader(make_run(tmp_path / "live", 900, state=RunState.RUNNING, parts=2).dir),
    ]
    for base, new in zip(runs + runs, runs[1:] + runs[:1] + runs[2:] + runs[:2], strict=True):
        text = compare(base, new).model_dump_json()
        assert "NaN" not in text
        assert "Infinity" not in text
    assert of(compare(runs[2], runs[4]), "output_tokens").new.value is None


def test_goodput_is_by_the_given_slo_or_the_common_one(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", [served(n) for n in range(200)], slo=SLO)
    new = run_of(tmp_path / "new", [served(n, ttft=2 if n % 10 == 0 else 0.1) for n in range(200)], slo=SLO)
    compared = compare(base, new, metrics=["goodput_share"])
    shown = of(compared, "goodput_share")
    assert (shown.base.value, shown.new.value, shown.change) == (1, 0.9, Change.REGRESSED)
    assert compared.slo == "own"
    (new.dir / SLO_FILE).write_text(SLO.replace("1s", "3s"))
    other = compare(base, new)
    assert other.slo is None
    assert any("SLO files differ" in remark for remark in other.remarks)
    assert all(not one.metric.startswith("goodput") for one in other.figures)


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    reader = run_of(tmp_path / "run", [served(0)])
    with pytest.raises(InputError, match="both runs"):
        compare(reader, RunReader(tmp_path / "." / "run"))


def test_metrics_are_chosen_by_name_or_kind() -> None:
    assert choose([]) == METRICS
    assert [one.name for one in choose(["throughput", "itl"])] == ["itl_p50", "itl_p95", "itl_p99", "throughput"]
    with pytest.raises(InputError, match="error_rate"):
        choose(["latency"])
