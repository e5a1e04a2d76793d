"""Figures of token times against values worked out by hand (definitions: docs/timing.md)."""

from __future__ import annotations

import pytest

from cliffwatch.stream.timing import PromptTimes, count_stalls, latest, mean_itl_s


def times(*stamps_ms: float) -> PromptTimes:
    prompt = PromptTimes()
    for stamp in stamps_ms:
        prompt.add(round(stamp * 1e6), reasoning=False)
    return prompt


def test_itl_divides_by_tokens_and_leaves_the_first_token_out() -> None:
    assert times(1000, *range(1100, 2001, 100)).itl_s(11) == pytest.approx(0.1)
    assert times(1000, 1500, 2000).itl_s(11) == pytest.approx(0.1)  # merged chunks: same tokens, same figure


def test_itl_is_unknown_without_an_interval() -> None:
    assert times().itl_s(0) is None
    assert times(5).itl_s(1) is None
    assert times(5).itl_s(10) is None  # all tokens in one chunk
    assert times(5, 15).itl_s(1) is None  # the server says one token
    assert times(5, 5, 5).itl_s(3) is None  # all chunks in one read: a proxy that buffers is not infinitely fast
    assert times(5, 5, 15).itl_s(3) == pytest.approx(0.005)


def test_mean_itl_leaves_prompts_without_one_out() -> None:
    prompts = [times(0, 10, 20), times(0), times(0, 30)]
    assert mean_itl_s(prompts, [3, 1, 2]) == pytest.approx(0.02)  # (10 ms + 30 ms) / 2
    assert mean_itl_s([times(0)], [1]) is None
    assert mean_itl_s([], []) is None


def test_gaps_are_whole_microseconds_rounded_and_fit_their_column() -> None:
    assert times(0, 1.0004, 1.0016, 1.0016).gaps_us == [1000, 1, 0]
    assert times(0, 5_000_000).gaps_us == [2**32 - 1]  # 83 minutes


def test_first_answer_skips_reasoning() -> None:
    prompt = PromptTimes()
    for stamp, reasoning in ((1, True), (2, True), (3, False), (4, True), (5, False)):
        prompt.add(stamp, reasoning=reasoning)
    assert (prompt.first_ns, prompt.answer_ns, prompt.last_ns, prompt.chunks) == (1, 3, 5, 5)


@pytest.mark.parametrize(
    ("gaps_ms", "stalls"),
    [
        ([], 0),
        ([10, 10, 999], 0),
        ([10, 10, 1000], 0),  # over, not at
        ([10, 10, 1001], 1),
        ([200, 200, 1500], 0),  # 10 x 200 ms is the limit
        ([200, 200, 2001], 1),
        ([10, 5000, 10, 5000, 10], 2),
        ([5000], 0),  # one gap is its own median
    ],
)
def test_stalls(gaps_ms: list[int], stalls: int) -> None:
    assert count_stalls([gap * 1000 for gap in gaps_ms]) == stalls


def test_latest() -> None:
    assert latest([3, None, 9, 4]) == 9
    assert latest([None]) is None
    assert latest([]) is None
