"""Every outcome falls in exactly one class, and the classes sum to what was issued."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.records.accounting import account
from cliffwatch.records.schema import Outcome


@given(st.dictionaries(st.sampled_from(Outcome), st.integers(0, 10**9)))
def test_always_balanced(counts: dict[Outcome, int]) -> None:
    accounting = account(counts)
    assert accounting.balanced
    assert accounting.issued == sum(counts.values())
    assert accounting.by_outcome == {outcome: count for outcome, count in counts.items() if count}


def test_classes() -> None:
    accounting = account(dict.fromkeys(Outcome, 1))
    # 17 outcomes: one ok; cancelled, late and lost apart; the other thirteen are failures.
    assert (accounting.ok, accounting.failed, accounting.issued) == (1, 13, 17)
    assert (accounting.cancelled, accounting.late, accounting.lost) == (1, 1, 1)
