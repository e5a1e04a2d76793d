"""Replicas that are expected, and those that answered."""

from __future__ import annotations

from typing import Any

import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.manifest import CheckResult, VerdictState
from cliffwatch.records.replicas import Replicas
from tests.records.test_verdict import judge, rows


def answered(**counts: int) -> list[Any]:
    made: list[Any] = []
    for name, count in counts.items():
        made += rows(count, len(made), replica=name)
    return made


def check(sample: list[Any], **asked: Any) -> CheckResult:
    facts = {"replicas": {"header": "X-Served-By", **asked}} if asked else {}
    return next(one for one in judge(sample, **facts).checks if one.check == "unseen replicas")


def test_a_replica_that_gave_no_answer_makes_the_run_degraded() -> None:
    two = answered(a=150, b=100)
    assert (check(two, expected=2).state, check(two, expected=2).n) == (VerdictState.VALID, 250)
    missing = check(two, expected=3)
    assert (missing.state, missing.value, missing.n) == (VerdictState.DEGRADED, 1.0, 250)
    assert missing.message is not None and "(2 of 3 answered)" in missing.message
    named = check(two, expected=3, names=["a", "c", "d"])
    assert (named.value, named.message and "(c, d)" in named.message) == (2.0, True)


def test_only_the_measured_phase_counts() -> None:
    warm = rows(50, 300, replica="c", phase="warmup")
    assert check([*answered(a=150, b=100), *warm], expected=3).value == 1.0


@pytest.mark.parametrize(
    ("sample", "asked", "message"),
    [
        (rows(), {}, "not known: cliffwatch run --replica-header NAME --replicas N"),
        (rows(), {"expected": 2}, "no answer had a header X-Served-By"),
        (answered(a=300), {"expected": None}, "how many there are was not said: --replicas"),
        # 8 x (7/8)^50 = 1.0 % by chance, (7/8)^51 x 8 = 0.88 %
        (answered(a=50), {"expected": 8}, "too few answers to tell it from chance"),
    ],
)
def test_what_is_not_known_is_said_and_changes_nothing(sample: list[Any], asked: Any, message: str) -> None:
    found = check(sample, **asked)
    assert (found.state, found.value, found.message) == (None, None, message)


def test_one_answer_more_tells_it_from_chance() -> None:
    assert check(answered(a=51), expected=8).value == 7.0


def test_options_are_a_number_or_names() -> None:
    assert Replicas.of(None) is None
    assert Replicas.of("x-replica") == Replicas(header="x-replica")
    assert Replicas.of("x-replica", "12") == Replicas(header="x-replica", expected=12)
    assert Replicas.of("x-replica", "10.0.0.1:8000, b") == Replicas(
        header="x-replica", expected=2, names=("10.0.0.1:8000", "b")
    )


@pytest.mark.parametrize(
    ("header", "replicas", "field"),
    [
        (None, "3", "--replicas"), ("x: y", None, "--replica-header"), ("x\r\ny", "2", "--replica-header"),
        *(("x", bad, "--replicas") for bad in ("0", "-1", "1.5", "1001", "a,a", "a,,b", ",", "a\x1bb", "b" * 101)),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_by_name(header: str | None, replicas: str | None, field: str) -> None:
    with pytest.raises(InputError) as refused:
        Replicas.of(header, replicas)
    assert refused.value.field == field
