from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.records.schema import Outcome
from cliffwatch.workload.retries import Retries


def retries(**changes: object) -> Retries:
    return Retries.model_validate(changes)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"attempts": 1}, "attempts"),
        ({"on": []}, "on"),
        ({"on": ["ok"]}, "on"),
        ({"budget": 0}, "budget"),
        ({"backoff": {"base": "10s", "max": "1s"}}, "below base"),
        ({"backoff": {"base": "1h"}}, "below base"),
        ({"backoff": {"factor": 0.5}}, "factor"),
        ({"backoff": {"jitter": 2}}, "jitter"),
        ({"tries": 3}, "tries"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes, part):
    with pytest.raises(ValueError, match=part):
        retries(**changes)


def test_waits_double_up_to_their_bound():
    words = retries(attempts=9, backoff={"base": 1, "max": 10, "jitter": 0})
    assert [words.wait_s(1, 0, failures) for failures in range(1, 8)] == [1, 2, 4, 8, 10, 10, 10]
    assert retries(attempts=1000, backoff={"factor": 100, "jitter": 0}).wait_s(1, 0, 999) == 30


def test_no_attempt_is_left_after_the_last():
    assert retries(attempts=2).wait_s(1, 0, 1) is not None
    assert retries(attempts=2).wait_s(1, 0, 2) is None
    assert retries(attempts=2).wait_s(1, 0, 2, retry_after_s=0.0) is None


def test_the_servers_word_replaces_the_backoff():
    assert retries().wait_s(1, 0, 1, retry_after_s=2.0) == 2.0
    assert retries().wait_s(1, 0, 1, retry_after_s=0.0) == 0.0


@given(seed=st.integers(0, 2**63 - 1), request_id=st.integers(0, 10**9), failures=st.integers(1, 8))
def test_jitter_only_shortens_and_is_the_same_for_the_same_seed(seed, request_id, failures):
    words = retries(attempts=9, backoff={"base": 1, "jitter": "25%"})
    longest = min(30, 2 ** (failures - 1))
    wait_s = words.wait_s(seed, request_id, failures)
    assert 0.75 * longest < wait_s <= longest
    assert words.wait_s(seed, request_id, failures) == wait_s


def test_503_is_one_of_5xx_and_may_be_named_alone():
    assert retries(on=["http_503"]).covers(Outcome.HTTP_5XX, 503)
    assert not retries(on=["http_503"]).covers(Outcome.HTTP_5XX, 500)
    assert retries(on=["http_5xx"]).covers(Outcome.HTTP_5XX, 503)
    assert not retries(on=["connect"]).covers(Outcome.HTTP_5XX, 503)
