"""What may differ between two runs, what is said, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cliffwatch.compare.comparable import check_comparable
from cliffwatch.errors import InputError
from cliffwatch.records.manifest import Manifest, Reason, RunState, Verdict, VerdictState
from tests.records.synthetic import make_manifest

VALID = Verdict(state=VerdictState.VALID)


def run(**changes: Any) -> Manifest:
    return make_manifest(**({"state": RunState.COMPLETE, "verdict": VALID} | changes))


def test_like_runs_have_no_remark() -> None:
    assert check_comparable(run(run_id="a"), run(run_id="b", name="other")) == ()


@pytest.mark.parametrize(
    ("key", "changes", "text"),
    [
        ("workload", {"workload": {"arrivals": {"kind": "poisson", "rate": 9}}}, "arrivals.rate 4 against 9"),
        ("workload", {"schedule_hash": "f" * 64}, "schedule 000000000000 against ffffffffffff"),
        ("model", {"model": "other"}, "'synthetic-8b' against 'other'"),
        ("endpoint", {"endpoint": "chat"}, "'auto' against 'chat'"),
        ("loop", {"open_loop": False}, "True against False"),
    ],
)
def test_another_experiment_is_refused_by_name_unless_meant(key: str, changes: dict[str, Any], text: str) -> None:
    base = run(workload={"name": "x", "arrivals": {"kind": "poisson", "rate": 4}})
    new = run(**({"workload": base.workload} | changes))
    with pytest.raises(InputError) as caught:
        check_comparable(base, new)
    assert text in str(caught.value)
    assert f"--allow {key}" in str(caught.value)
    (remark,) = check_comparable(base, new, [key])
    assert text in remark


def test_all_that_differs_is_named_at_once() -> None:
    with pytest.raises(InputError, match=r"the model.*the endpoint.*--allow model --allow endpoint"):
        check_comparable(run(), run(model="b", endpoint="chat"))
    with pytest.raises(InputError, match="the endpoint") as caught:
        check_comparable(run(), run(model="b", endpoint="chat"), ["model"])
    assert "--allow model" not in str(caught.value)


def test_another_seed_or_name_of_one_workload_is_one_workload() -> None:
    first, second = ({"name": name, "seed": seed, "requests": 5} for name, seed in (("a", 1), ("b", 2)))
    remarks = check_comparable(run(workload=first), run(workload=second, seed=2, schedule_hash="e" * 64))
    assert remarks == ("seed differs: 7 against 2",)


def test_what_may_explain_a_difference_is_said() -> None:
    new = run(
        engine="sglang",
        target="http://other:1",
        versions={"engine": "0.7"},
        state=RunState.PARTIAL,
        partial_reason="stopped by SIGTERM",
        verdict=Verdict(
            state=VerdictState.DEGRADED,
            reasons=(Reason(check="send lag", state=VerdictState.DEGRADED, message="sent late"),),
        ),
    )
    remarks = "\n".join(check_comparable(run(versions={"engine": "0.6"}), new))
    for text in (
        "engine differs: 'vllm' against 'sglang'", "target differs", "versions differ: engine '0.6' against '0.7'",
        "new: the run is partial (stopped by SIGTERM)", "new is DEGRADED: sent late",
    ):  # fmt: skip
        assert text in remarks
    assert "no verdict yet" in "\n".join(check_comparable(run(), run(verdict=None, state=RunState.RUNNING)))
