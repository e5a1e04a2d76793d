"""When an attainment is enough to say met or missed."""

from __future__ import annotations

from cliffwatch.slo.judgement import ObjectiveResult, Status

# A single failure among 17 already puts the Wilson interval under 99 %, which chance does in one run of six.
MIN_BAD = 3


def decide(
    *, good: int, n: int, target: float, low: float | None, high: float | None, needed: int
) -> tuple[Status, bool]:
    """Status of an objective, and whether its interval lies wholly on one side of the target.

    From `needed` requests (ceil(10 / (1 - target)), so that about ten misses are allowed) the attainment decides; under
    it only such an interval does, and a miss needs `MIN_BAD` bad requests as well.
    """
    if not n or low is None or high is None:
        return Status.TOO_FEW_DATA, False
    confident = low >= target or (high < target and n - good >= MIN_BAD)
    if not confident and n < needed:
        return Status.TOO_FEW_DATA, False
    return (Status.MET if good / n >= target else Status.MISSED), confident


def overall(results: tuple[ObjectiveResult, ...], *, ok: int, failed: int) -> tuple[Status, str]:
    """The status of a whole judgement and the sentence that says why."""
    missed = [one for one in results if one.status is Status.MISSED]
    unsure = [one for one in results if one.status is Status.TOO_FEW_DATA]
    if missed:
        return Status.MISSED, f"{len(missed)} of {_objectives(len(results))} missed"
    if not ok and failed >= MIN_BAD:
        return Status.MISSED, f"no request succeeded, {failed:,} failed"
    if unsure:
        return Status.TOO_FEW_DATA, f"too few requests to decide {len(unsure)} of {_objectives(len(results))}"
    return Status.MET, f"all {_objectives(len(results))} met" if len(results) > 1 else "the objective is met"


def _objectives(count: int) -> str:
    return f"{count} objective" if count == 1 else f"{count} objectives"
