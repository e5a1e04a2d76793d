"""Whose token counts count."""

from __future__ import annotations

from cliffwatch.records.schema import TokenSource
from cliffwatch.stream.dialect import Usage
from cliffwatch.stream.usage import TokenCounts, UsageLedger


def settle(*frames: Usage, chunks: list[int], max_tokens: int | None = None, all_at_limit: bool = False) -> TokenCounts:
    ledger = UsageLedger(len(chunks))
    for frame in frames:
        ledger.add(frame)
    return ledger.counts(chunks, max_tokens, all_at_limit=all_at_limit)


def test_without_usage_chunks_are_counted_and_labelled() -> None:
    counts = settle(chunks=[3, 4])
    assert counts == TokenCounts(None, 7, TokenSource.CHUNKS, None, (3.0, 4.0), ())
    assert settle(chunks=[0]).output_tokens is None


def test_the_last_frame_wins_field_by_field() -> None:
    counts = settle(Usage(9, 1), Usage(None, 2, 4), Usage(9, 5), chunks=[5])
    assert (counts.input_tokens, counts.output_tokens, counts.cached_tokens) == (9, 5, 4)
    assert counts.source is TokenSource.SERVER
    assert counts.warnings == ()


def test_frames_of_each_prompt_are_summed() -> None:
    counts = settle(Usage(8, 5, 1, 1), Usage(3, 5, 0, 0), chunks=[4, 5])
    assert (counts.input_tokens, counts.output_tokens, counts.cached_tokens) == (11, 10, 1)
    assert counts.per_prompt == (5, 5)


def test_a_frame_for_the_request_outweighs_those_of_prompts() -> None:
    counts = settle(Usage(8, 5, None, 1), Usage(3, 5, None, 0), Usage(11, 10), chunks=[4, 5])
    assert (counts.input_tokens, counts.output_tokens) == (11, 10)
    assert counts.per_prompt == (5, 5)  # the prompts' own counts, since they add up


def test_counts_that_do_not_add_up_are_apportioned_by_chunks() -> None:
    counts = settle(Usage(8, 30, None, 0), Usage(8, 30, None, 1), Usage(16, 30), chunks=[4, 6])
    assert counts.per_prompt == (12, 18)


def test_frames_for_some_prompts_only_are_not_used() -> None:
    counts = settle(Usage(8, 5, None, 1), chunks=[4, 5])
    assert (counts.input_tokens, counts.output_tokens, counts.source) == (None, 9, TokenSource.CHUNKS)
    assert counts.warnings == ("usage names 1 of 2 prompts; it is ignored",)


def test_contradictions_are_warnings_and_the_servers_figure_stays() -> None:
    counts = settle(Usage(9, 3), chunks=[5], max_tokens=8)
    assert counts.output_tokens == 3
    assert counts.warnings == ("usage says 3 output tokens, but 5 chunks carried text",)
    assert settle(Usage(9, 17), chunks=[5, 5], max_tokens=8).warnings == (
        "usage says 17 output tokens, but 16 was the most allowed",
    )
    assert settle(Usage(9, 5), chunks=[5, 0, 0], max_tokens=5, all_at_limit=True).warnings == (
        "usage says 5 output tokens, but every prompt ended at its limit, 15 in all",
    )
    assert settle(Usage(9, 16), chunks=[2, 2], max_tokens=8, all_at_limit=True).warnings == ()
    assert settle(Usage(9, 3), chunks=[3], max_tokens=8).warnings == ()


def test_zero_output_tokens_where_text_came_is_no_usage() -> None:
    counts = settle(Usage(9, 0), chunks=[5])
    assert (counts.output_tokens, counts.source) == (5, TokenSource.CHUNKS)
    assert counts.warnings == ("usage says 0 output tokens, but 5 chunks carried text",)
    assert settle(Usage(9, 0), chunks=[0]).output_tokens == 0


def test_values_that_are_no_counts_are_ignored_and_said() -> None:
    counts = settle(Usage(9, 4), Usage(-1, -1), chunks=[4])
    assert (counts.input_tokens, counts.output_tokens) == (9, 4)
    assert counts.warnings == ("usage holds a value that is no token count; it is ignored",)
