"""Faults that bit users of neighbouring tools, each with its smallest input and the right values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cliffwatch.records.schema import Outcome, TokenSource
from tests.stream.scripted import DONE, chat, event, ms, read, text, usage


@pytest.mark.parametrize("opening", [{"role": "assistant"}, {"role": "assistant", "content": None}, {"content": ""}])
def test_a_role_only_chunk_is_no_token(opening: dict[str, str | None]) -> None:
    result = read(
        (5, chat(opening)),
        (210, chat({"content": "Hel"})),
        (240, chat({"content": "lo"})),
        (241, chat(finish="stop")),
        (242, DONE),
        dialect="chat",
    )
    assert result.outcome is Outcome.OK
    assert ms(result.first_token_ns) == 210
    assert result.chunk_gaps_us == [30_000]
    assert ms(result.last_token_ns) == 240


@pytest.mark.parametrize(
    ("dialect", "opening", "piece", "ending"),
    [
        ("triton", {"text_output": ""}, lambda word: {"text_output": word}, None),
        ("llamacpp", {"content": "", "stop": False}, lambda word: {"content": word, "stop": False}, {"stop": True}),
        ("llamacpp", None, lambda word: {"index": 0, "content": word}, {"index": 0, "content": "", "stop": True}),
    ],
)
def test_an_empty_first_event_is_no_token_in_other_dialects(
    dialect: str, opening: object, piece: Callable[[str], object], ending: object
) -> None:
    reads = [(5.0, event(opening)), (210.0, event(piece("Hel"))), (240.0, event(piece("lo")))]
    result = read(*reads, *([(241.0, event(ending))] if ending else []), dialect=dialect)
    assert result.outcome is Outcome.OK
    assert ms(result.first_token_ns) == 210
    assert result.chunk_gaps_us == [30_000]
    assert ms(result.last_token_ns) == 240


LAST = {"index": 0, "content": "", "stop": True, "stop_type": "limit", "tokens_evaluated": 9, "tokens_predicted": 2}


@pytest.mark.parametrize(
    "endings",
    [
        [LAST],
        [{**LAST, "tokens_evaluated": 1, "tokens_predicted": 1}, LAST],
        [{**LAST, "tokens_predicted": None}, LAST, {**LAST, "tokens_evaluated": None}],
    ],
)
def test_the_last_event_of_llama_cpp_counts_and_is_no_token(endings: list[dict[str, object]]) -> None:
    tokens = [(10.0, event({"content": "a"})), (20.0, event({"content": "b", "tokens_predicted": 2}))]
    result = read(*tokens, *((30.0 + i, event(one)) for i, one in enumerate(endings)), dialect="llamacpp", max_tokens=2)
    assert (result.outcome, result.finish_reason, result.warnings) == (Outcome.OK, "length", ())
    assert (result.server_input_tokens, result.output_tokens) == (9, 2)
    assert result.output_tokens_source is TokenSource.SERVER
    assert (ms(result.last_token_ns), result.chunk_gaps_us) == (20, [10_000])


def test_a_batch_of_llama_cpp_is_summed_and_needs_every_ending() -> None:
    pieces = [
        (1.0, event(None)),
        (2.0, event({"index": 1, "content": "a"})),
        (3.0, event({"index": 0, "content": "b"})),
    ]
    ends = [(4.0, event({**LAST, "index": 1})), (5.0, event({**LAST, "index": 0, "tokens_evaluated": 4}))]
    whole = read(*pieces, *ends, dialect="llamacpp", batch=2)
    assert (whole.outcome, whole.server_input_tokens, whole.output_tokens) == (Outcome.OK, 13, 4)
    cut = read(*pieces, ends[0], dialect="llamacpp", batch=2)
    assert (cut.outcome, cut.server_input_tokens) == (Outcome.TRUNCATED, None)


def test_where_nothing_is_counted_the_answer_is_labelled_and_the_prompt_unknown() -> None:
    result = read((1, event({"text_output": "a"})), (3, event({"text_output": "b"})), dialect="triton")
    assert (result.server_input_tokens, result.output_tokens) == (None, 2)
    assert result.output_tokens_source is TokenSource.CHUNKS


TOKENS = [(10, text("a")), (20, text("b", finish="stop"))]


@pytest.mark.parametrize(
    "reads",
    [
        [*TOKENS, (30, usage(9, 2)), (31, DONE)],
        [*TOKENS, (30, event({"choices": None, "usage": {"prompt_tokens": 9, "completion_tokens": 2}})), (31, DONE)],
        [(5, usage(9, 2)), *TOKENS, (31, DONE)],
        [*TOKENS, (29, usage(1, 1)), (30, usage(9, 2)), (31, DONE)],
        [*TOKENS, (30, usage(9, 2) + DONE)],
    ],
)
def test_usage_events_with_empty_choices(reads: list[tuple[float, bytes]]) -> None:
    result = read(*reads)
    assert result.outcome is Outcome.OK
    assert (result.server_input_tokens, result.output_tokens) == (9, 2)
    assert result.output_tokens_source is TokenSource.SERVER
    assert (ms(result.first_token_ns), ms(result.last_token_ns), result.chunk_gaps_us) == (10, 20, [10_000])


def test_cuts_inside_a_field_and_inside_a_string() -> None:
    result = read(
        (1, b"data:"),
        (2, b' {"choices":[{"delta":{"content":"a'),
        (3, b' b"}}]}\n\ndata: [DO'),
        (4, b"NE]\n\n"),
        dialect="chat",
    )
    assert result.outcome is Outcome.OK
    assert ms(result.first_token_ns) == 3
    assert result.chunks == 1


def test_characters_cut_across_reads() -> None:
    stream = chat({"content": "好"}) + chat({"content": "😀"}, finish="stop") + DONE
    assert "好".encode() in stream  # raw UTF-8, three and four bytes
    result = read(*((i, stream[i : i + 1]) for i in range(len(stream))), dialect="chat")
    assert result.outcome is Outcome.OK
    assert result.chunks == 2


def test_comment_lines_are_keep_alives() -> None:
    result = read(
        (50, b":\n\n"),
        (100, b": keep-alive\n\n"),
        (400, text("a")),
        (410, b":\n\n"),
        (420, text("b", finish="stop")),
        (421, DONE),
    )
    assert result.outcome is Outcome.OK
    assert ms(result.first_token_ns) == 400
    assert result.chunk_gaps_us == [20_000]
    assert result.itl_s == pytest.approx(0.02)


@pytest.mark.parametrize(
    "error",
    [
        event({"error": {"message": "engine died", "code": 500}}),
        event({"error": "engine died"}),
        event({"object": "error", "message": "engine died", "code": 500}),
        b'event: error\ndata: {"message": "engine died"}\n\n',
        b'error: {"message": "engine died"}\n\n',
    ],
)
@pytest.mark.parametrize("ending", [DONE, b""])
def test_an_error_after_200_is_a_failure_even_if_done_follows(error: bytes, ending: bytes) -> None:
    result = read((1, text("a")), (2, text("b")), (3, error), (4, ending))
    assert result.outcome is Outcome.STREAM_ERROR
    assert result.error is not None
    assert "engine died" in result.error


def test_a_data_line_of_300_kb() -> None:
    result = read((1, text("x" * 300_000, finish="stop")), (2, DONE))
    assert result.outcome is Outcome.OK


def test_a_line_without_end_is_refused_and_ends_the_reading() -> None:
    result = read(*((i, b"data: " + b"x" * (1 << 20)) for i in range(20)))
    assert result.outcome is Outcome.PROTOCOL
    assert result.error is not None
    assert "too long" in result.error


def test_server_usage_is_the_input_length() -> None:
    """The prompt is one token for the client; the chat template makes it twelve."""
    result = read((1, chat({"content": "a"}, "stop")), (2, usage(12, 1)), (3, DONE), dialect="chat")
    assert result.server_input_tokens == 12
    without = read((1, chat({"content": "a"}, "stop")), (3, DONE), dialect="chat")
    assert without.server_input_tokens is None
    assert (without.output_tokens, without.output_tokens_source) == (1, TokenSource.CHUNKS)


def test_blanks_are_tokens_and_the_divisor_is_the_servers() -> None:
    """Twelve blanks, 20 ms apart: a tokenizer would merge them into one token."""
    reads = [(100 + 20 * i, text(" ")) for i in range(12)]
    result = read(*reads, (321, text("", finish="stop")), (322, usage(5, 12)), (323, DONE))
    assert result.itl_s == pytest.approx(0.020)  # 220 ms / 11


def test_successes_without_output_have_no_per_token_figures() -> None:
    result = read((1, text("", finish="stop")), (2, usage(5, 0)), (3, DONE))
    assert result.outcome is Outcome.EMPTY
    assert result.output_tokens == 0
    assert (result.first_token_ns, result.last_token_ns, result.itl_s) == (None, None, None)
    assert result.chunk_gaps_us is None


def test_the_first_tokens_time_is_not_in_the_inter_token_latency() -> None:
    result = read(*((1000 + 100 * i, text("a")) for i in range(11)), (2001, DONE))
    assert result.output_tokens == 11
    assert result.itl_s == pytest.approx(0.1)
