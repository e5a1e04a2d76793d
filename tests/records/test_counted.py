"""Counting by labels: bounded, never back, the same sum whatever becomes of messages and workers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.records import counted as module
from cliffwatch.records.counted import LABELS, MAX_SETS_IN_ALL, Counted, MergedCounts, RowCounts, octave_text
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.surface.grid import heatmap
from tests.records.synthetic import make_row
from tests.slo.rows import run_of

EDGES = {"ttft_user_s": (0.05, 0.1), "itl_s": (0.01,)}


def counted(*changes: dict[str, Any]) -> Counted:
    counts = RowCounts(EDGES)
    for number, change in enumerate(changes):
        counts.count(make_row(number, **change))
    return counts.counted()


def requests(found: Counted) -> dict[tuple[str, ...], int]:
    return {one.labels: one.requests for one in found.sets}


def test_each_set_of_labels_has_its_requests_tokens_and_figures() -> None:
    found = counted(
        {"tenant": "a", "input_tokens": 1024},
        {"tenant": "a", "input_tokens": 2047, "output_tokens": None},
        {"input_tokens": 2048, "outcome": Outcome.LATE, "sent_ns": None, "first_token_ns": None, "itl_s": None},
    )
    both, late = found.sets
    assert dict(zip(LABELS, both.labels, strict=True)) == {
        "phase": "measured", "input_tokens": "1024-2047", "batch": "1", "cache": "none", "model": "synthetic-8b",
        "tenant": "a", "outcome": "ok",
    }  # fmt: skip
    assert (both.requests, both.input_tokens, both.output_tokens) == (2, 2048, 8)
    # first tokens 50.5 ms after they were due, ITL 10 ms, which is the edge itself
    assert [buckets for _, buckets in both.histograms] == [[(1, 2)], [(0, 2)]]
    assert (late.requests, [buckets for _, buckets in late.histograms]) == (1, [[], []])
    assert found.lags[Phase.MEASURED][1] == [(module.LAG_EDGES_S.index(0.001), 2)]  # sent after 0.5 ms


def test_input_lengths_fall_into_the_rows_of_the_heatmap(tmp_path) -> None:
    lengths = [1, 2, 3, 4, 127, 128, 1000, 1024, 4095, 5000]
    grid = heatmap(
        run_of(tmp_path / "run", [make_row(number, input_tokens=length) for number, length in enumerate(lengths)]),
        "ttft_s", "count",
    )  # fmt: skip
    texts = [octave_text(length.bit_length()) for length in lengths]
    for length, text in zip(lengths, texts, strict=True):
        low, high = map(int, text.split("-"))
        row = max(edge for edge in grid.rows.edges if edge <= length)
        assert low <= length <= high and (row == low or row == grid.rows.edges[-1])
    assert octave_text(0) == "0"


def test_labels_are_bounded_and_what_is_beyond_is_still_counted(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SETS", 3)
    found = counted(*({"model": f"m{number % 10}"} for number in range(100)))
    by_model = {labels[LABELS.index("model")]: count for labels, count in requests(found).items()}
    assert by_model == {"m0": 10, "m1": 10, "m2": 10, "other": 70}
    other = next(one.labels for one in found.sets if "other" in one.labels)
    assert other == ("measured", "other", "other", "other", "other", "other", "ok")
    merged = MergedCounts(EDGES)
    assert merged.take(0, found)
    assert merged.take(1, counted(*({"model": f"n{number}"} for number in range(5))))
    # the three that were told apart first stay so
    assert sum(requests(merged.counted()).values()) == 105
    assert {labels[LABELS.index("model")] for labels in requests(merged.counted())} == {"m0", "m1", "m2", "other"}


changes = st.fixed_dictionaries(
    {"model": st.sampled_from("abcdef"), "outcome": st.sampled_from([Outcome.OK, Outcome.HTTP_5XX, Outcome.CANCELLED])}
)


@given(st.lists(st.lists(changes, max_size=12), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_newest_messages_add_up_and_no_count_ever_falls(workers, random) -> None:
    merged = MergedCounts(EDGES)
    counts = [RowCounts(EDGES) for _ in workers]
    feed = [(worker, change) for worker, some in enumerate(workers) for change in some]
    random.shuffle(feed)
    before: dict[tuple[str, ...], int] = {}
    for number, (worker, change) in enumerate(feed):
        counts[worker].count(make_row(number, **change))
        # by the wire
        merged.take(worker, msgspec.convert(msgspec.to_builtins(counts[worker].counted()), Counted))
        now = requests(merged.counted())
        assert all(now[labels] >= count for labels, count in before.items())
        before = now
    whole = counted(*(change for some in workers for change in some))
    assert requests(merged.counted()) == requests(whole)
    assert {one.labels: sorted(one.histograms[0][1]) for one in merged.counted().sets} == {
        one.labels: sorted(one.histograms[0][1]) for one in whole.sets
    }


def test_a_message_is_small_however_many_requests(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SETS", 50)
    found = counted(*({"model": f"m{number % 200}", "first_token_ns": 10**7 * number} for number in range(2000)))
    assert len(found.sets) <= MAX_SETS_IN_ALL
    assert len(msgspec.msgpack.encode(found)) < 51 * 200


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: {"labels": one.labels[1:]},
        lambda one: {"labels": ("noon", *one.labels[1:])},
        lambda one: {"labels": (*one.labels[:-1], "fine")},
        lambda one: {"histograms": one.histograms[1:]},
        lambda one: {"histograms": [(0.0, [(9, 1)]), one.histograms[1]]},
        lambda one: {"histograms": [(0.0, [(0, -1)]), one.histograms[1]]},
    ],
)
def test_counts_of_another_shape_are_not_taken(spoil) -> None:
    merged = MergedCounts(EDGES)
    good = counted({})
    assert merged.take(0, good)
    bad = msgspec.structs.replace(good.sets[0], **spoil(good.sets[0]))
    assert not merged.take(0, Counted(sets=[bad], lags={}))
    assert requests(merged.counted()) == requests(good)
    assert not merged.take(0, Counted(sets=[good.sets[0]] * (MAX_SETS_IN_ALL + 1), lags={}))
    assert not merged.take(0, Counted(sets=[], lags={Phase.COLD: (0.0, [(99, 1)])}))
