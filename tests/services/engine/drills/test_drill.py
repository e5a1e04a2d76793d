"""Faults in time, by a clock that the test turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.errors import InputError
from services.engine.drills.conditions import WELL, Break, Conditions, Refusal
from services.engine.drills.drill import MAX_FAULTS, Drill, DrillFile, load_drill
from services.engine.drills.kinds import Fault


def faults(*written: dict[str, object]) -> tuple[Fault, ...]:
    return DrillFile.model_validate({"faults": written}).faults


def drill(*written: dict[str, object]) -> Drill:
    return Drill(faults(*written))


def test_nothing_is_wrong_without_faults() -> None:
    idle = Drill()
    assert idle.advance(5).conditions == WELL
    assert idle.next_event_s(5) == float("inf")


def test_a_fault_begins_and_ends() -> None:
    slow = drill({"kind": "slow-gpu", "at": "2s", "lasts": "3s", "factor": 4})
    seen = [slow.advance(now_s).conditions.slowness for now_s in (0, 1.99, 2, 4.99, 5, 100)]
    assert seen == [1, 1, 4, 4, 1, 1]
    assert [slow.next_event_s(now_s) for now_s in (0, 2, 5)] == [2, 5, float("inf")]


def test_it_begins_once() -> None:
    crash = drill({"kind": "crash", "at": 1})
    assert [len(crash.advance(now_s).began) for now_s in (0.5, 1, 1.1, 50)] == [0, 1, 0, 0]


def test_without_an_end_it_stays_until_it_is_cleared() -> None:
    hung = drill({"kind": "hang"})
    assert hung.advance(1e6).conditions == Conditions(hung=True)
    assert hung.next_event_s(1e6) == float("inf")
    assert hung.clear(7) == 0
    assert hung.clear(1) == 1
    assert hung.advance(1e6).conditions == WELL


def test_faults_at_once_add_up() -> None:
    both = drill(
        {"kind": "slow-gpu", "factor": 2},
        {"kind": "slow-gpu", "factor": 5, "at": 1},
        {"kind": "errors", "share": "10%", "status": 503},
        {"kind": "stream-errors", "share": 0.5, "after_tokens": 3},
        {"kind": "dropped-connections", "share": 1, "after_tokens": 0},
    )
    found = both.advance(2).conditions
    assert found.slowness == 10
    assert found.refusals == (Refusal(0.1, 503),)
    assert found.breaks == (Break(0.5, 3, "error"), Break(1.0, 0, "cut"))


def test_a_leak_grows_with_its_age() -> None:
    leak = drill({"kind": "memory-leak", "blocks_per_minute": 120, "at": 10, "lasts": "1m"})
    assert [leak.advance(now_s).conditions.lost_blocks for now_s in (9, 10, 11, 40, 69.9, 70)] == [0, 0, 2, 60, 119, 0]
    assert leak.next_event_s(11) == 11.5  # two blocks a second
    fast = drill({"kind": "memory-leak", "blocks_per_minute": 1e6})
    assert fast.next_event_s(3) == pytest.approx(3.1)


def test_a_crash_is_down_then_loads_then_is_slow() -> None:
    crash = drill({"kind": "crash", "at": 1, "down": 2, "load": 3, "warm_up": 4, "warm_up_factor": 5})
    states = [crash.advance(now_s).conditions for now_s in (0, 1, 2.9, 3, 5.9, 6, 9.9, 10)]
    assert [state.down for state in states] == [False, True, True, False, False, False, False, False]
    assert [state.loading for state in states] == [False, False, False, True, True, False, False, False]
    assert [state.slowness for state in states] == [1, 1, 1, 1, 1, 5, 5, 1]
    assert [crash.next_event_s(now_s) for now_s in (0, 1, 3, 6, 10)] == [1, 3, 6, 10, float("inf")]


def test_an_end_of_loading_that_takes_no_time() -> None:
    start = drill({"kind": "cold-start", "load": 0, "warm_up": 0})
    turn = start.advance(0)
    assert (turn.conditions, len(turn.began)) == (WELL, 1)


def test_a_new_process_hangs_no_more_and_leaks_anew() -> None:
    three = drill(
        {"kind": "hang"},
        {"kind": "memory-leak", "blocks_per_minute": 60},
        {"kind": "slow-gpu", "factor": 2},
        {"kind": "crash", "at": 30, "down": 0, "load": 0, "warm_up": 0},
    )
    before, after = three.advance(29).conditions, three.advance(40).conditions
    assert (before.hung, before.lost_blocks, before.slowness) == (True, 29, 2)
    assert (after.hung, after.lost_blocks, after.slowness) == (False, 10, 2)


def test_the_list_says_what_is_and_what_is_to_come() -> None:
    two = drill({"kind": "hang", "at": 4, "lasts": 2}, {"kind": "slow-gpu", "factor": 2})
    assert [(one["id"], one["state"], one["begins_in_s"], one["ends_in_s"]) for one in two.listed(1)] == [
        (1, "planned", 3, 5), (2, "active", -1, None),
    ]  # fmt: skip
    assert two.listed(6)[0]["state"] == "over"
    assert two.listed(6)[1]["factor"] == 2


def test_faults_are_bounded_and_those_that_are_over_make_room() -> None:
    full = drill(*({"kind": "hang", "lasts": 1} for _ in range(MAX_FAULTS)))
    (more,) = faults({"kind": "hang"})
    with pytest.raises(InputError, match="too many faults"):
        full.add(more, 0.5)
    assert full.add(more, 2) == MAX_FAULTS + 1
    assert len(full.listed(2)) == MAX_FAULTS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("faults: []", "faults: is empty; got []; allowed: one fault or more"),
        ("faults: [{kind: fire}]", "faults[0].kind: unknown; got 'fire'; allowed: slow-gpu, memory-leak, hang"),
        ("faults: [{at: 1}]", "faults[0].kind: is missing"),
        ("faults: [{kind: slow-gpu}]", "faults[0].factor: is missing"),
        ("faults: [{kind: slow-gpu, factor: 0.5}]", "faults[0].factor: cannot be used; got 0.5"),
        ("faults: [{kind: slow-gpu, factor: 2, lasts: 0s}]", "faults[0].lasts"),
        ("faults: [{kind: hang, at: soon}]", "faults[0].at: cannot be used; got 'soon'; allowed: a number of seconds"),
        ("faults: [{kind: hang, at: -1}]", "faults[0].at"),
        ("faults: [{kind: errors, share: 120%}]", "faults[0].share"),
        ("faults: [{kind: errors, share: 0}]", "faults[0].share"),
        ("faults: [{kind: errors, share: 0.1, status: 299}]", "faults[0].status: is no status of an error; got 299"),
        ("faults: [{kind: crash, lasts: 5}]", "faults[0].lasts: unknown key; allowed: the keys at, down, kind, load"),
        ("faults: [{kind: upgrade}]", "faults[0].version: is missing"),
        ("drill: []", "unknown key (and 1 more fault); allowed: the keys faults"),
    ],
)
def test_files_that_cannot_be_used_say_why(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "drill.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_drill(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
