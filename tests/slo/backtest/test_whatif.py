"""Cases of the what-if table: which there are, what is asked once for several, what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cliffwatch.errors import InputError
from cliffwatch.slo.backtest.whatif import MAX_CASES, Options, cases, outcome, own_case
from cliffwatch.slo.burn import STANDARD_PAIRS, Severity
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from tests.slo.backtest.past import history, steady

OBJECTIVE = Objective(sli="ttft", threshold="2.5s", target="99%")
AVAILABILITY = Objective(sli="availability", target="99%")


def test_one_history_serves_all_targets_and_windows() -> None:
    options = Options.read("99%, 95%", "1s,2.5s", "standard,page:30m/5m:1%")
    found = list(cases(OBJECTIVE, options))
    assert [asked.threshold for asked, _ in found] == [1.0, 2.5]
    for asked, several in found:
        assert {one.objective.threshold for one in several} == {asked.threshold}
        assert [(one.objective.target, one.windows) for one in several] == [
            (0.99, "standard"),
            (0.99, "page:30m/5m:1%"),
            (0.95, "standard"),
            (0.95, "page:30m/5m:1%"),
        ]


def test_what_has_no_threshold_has_no_case_of_one() -> None:
    ((asked, several),) = cases(AVAILABILITY, Options.read("", "1s,2.5s", ""))
    assert asked == AVAILABILITY
    assert several == (own_case(AVAILABILITY),)


def test_pairs_of_windows_as_they_are_written() -> None:
    windows = Options.read("", "", "standard,page:1h/5m:2%+ticket:3d/6h:10%").windows or {}
    assert windows["standard"] == STANDARD_PAIRS
    assert windows["page:1h/5m:2%+ticket:3d/6h:10%"] == (STANDARD_PAIRS[0], STANDARD_PAIRS[3])


@pytest.mark.parametrize(
    ("targets", "thresholds", "windows", "says"),
    [
        ("100%", "", "", "--targets: must be above 0 %"),
        ("99", "", "", "--targets"),
        ("", "0s", "", "--thresholds: must be longer than nothing"),
        ("", "fast", "", "--thresholds"),
        ("", "", "page", "--windows: must be standard, or pairs"),
        ("", "", "page:5m/1h:2%", "--windows: must have a short window under a long one"),
        ("", "", "page:1h/10s:2%", "whole minutes, 5m to 7d"),
        ("", "", "page:1h/5m:200%", "--windows"),
        ("", "", "alarm:1h/5m:2%", "--windows: must be standard, or pairs"),
    ],
)
def test_options_that_cannot_be_are_refused(targets: str, thresholds: str, windows: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Options.read(targets, thresholds, windows)
    assert says in str(caught.value)


def test_too_many_cases_are_refused() -> None:
    targets = ",".join(f"{90 + at / 10}%" for at in range(MAX_CASES + 1))
    with pytest.raises(InputError, match="make too many cases"):
        list(cases(OBJECTIVE, Options.read(targets, "", "")))


def test_a_looser_target_pages_less_and_has_more_budget_left() -> None:
    """4 % bad for a day: of 1 % four budgets, 3 overspent; of 10 % 0.4, 60 % left. 2 % of a day's budget in an hour are
    a factor of 0.48: 4.8 % bad, which is not reached; 5 % in six hours are 0.2."""
    events, bad = steady(1500, 0.04)
    groups = {(): history(events, bad)}
    watch = Watch(engine="vllm", period="1d")
    tight, loose = (
        outcome(own_case(OBJECTIVE.model_copy(update={"target": target})), groups, watch, (), 0.0)
        for target in (0.99, 0.9)
    )
    assert tight.budget_left == pytest.approx(-3)
    assert loose.budget_left == pytest.approx(0.6)
    assert {one.alert for one in tight.of(Severity.PAGE)} == {"SloBurn1h", "SloBurn6h"}
    assert {one.alert for one in loose.of(Severity.PAGE)} == {"SloBurn6h"}
    assert tight.scores is None


def test_the_budget_of_several_groups_is_known_where_each_is() -> None:
    events, bad = steady(1500, 0.04)
    short = events.copy()
    short[:100] = float("nan")
    groups = {(("instance", "a"),): history(events, bad), (("instance", "b"),): history(short, bad)}
    done = outcome(own_case(OBJECTIVE), groups, Watch(engine="vllm", period="1d"), (), 0.0)
    assert done.budget_left is None
    assert len(done.groups) == 2


def test_targets_stay_decimal() -> None:
    assert own_case(OBJECTIVE).promise(Watch(engine="vllm")).target == Decimal("0.99")
