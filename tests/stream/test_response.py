"""Outcomes, batches and the reader's state while a response comes in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.records.schema import Outcome, TokenSource
from cliffwatch.stream import DIALECTS, ResponseReader
from tests.stream.scripted import DONE, chat, event, ms, read, text, usage

HTML = b"<!DOCTYPE html>\n<html><title>Welcome</title>\n<body>hi</body></html>"


@pytest.mark.parametrize(
    ("stream", "clean", "outcome"),
    [
        (text("a", finish="stop") + DONE, True, Outcome.OK),
        (text("a", finish="stop") + DONE, False, Outcome.OK),  # complete at its terminator, whatever the close
        (text("a", finish="stop"), True, Outcome.OK),  # no [DONE]
        (text("a") + DONE, True, Outcome.OK),  # no finish reason
        (text("a", finish="stop"), False, Outcome.TRUNCATED),
        (text("a"), True, Outcome.TRUNCATED),
        (text("a"), False, Outcome.TRUNCATED),
        (text("a") + b'data: {"choices":[{"te', True, Outcome.TRUNCATED),
        (text("a") + b"data: [DONE]", True, Outcome.OK),
        (text("a") + b"data:  [DONE] \n\n", False, Outcome.OK),
        (text("a") + b"data: [DONE]", False, Outcome.TRUNCATED),
        (text(""), True, Outcome.TRUNCATED),
        (b'data: {"choices":[{"te', True, Outcome.TRUNCATED),
        (b"", False, Outcome.TRUNCATED),
        (b"", True, Outcome.EMPTY),
        (b": ping\n\n", True, Outcome.EMPTY),
        (DONE, True, Outcome.EMPTY),
        (text("", finish="stop"), True, Outcome.EMPTY),
        (text("") + DONE, True, Outcome.EMPTY),
        (text("a", finish="abort") + DONE, True, Outcome.STREAM_ERROR),
        (text("a", finish="error") + DONE, True, Outcome.STREAM_ERROR),
        (event({"error": None, "choices": [{"text": "a"}]}) + DONE, True, Outcome.OK),
        (event({"error": "boom"}), False, Outcome.STREAM_ERROR),
        (HTML, True, Outcome.PROTOCOL),
        (HTML, False, Outcome.TRUNCATED),
        (b"hello", True, Outcome.PROTOCOL),
        (b"data: hello\n\n", True, Outcome.PROTOCOL),
        (b"data: hello\n\n", False, Outcome.PROTOCOL),
        (b"data: <html>\n\n" + text("a"), True, Outcome.PROTOCOL),
        (b"\x00\xff\xfe\n\n", True, Outcome.PROTOCOL),
        (b'{"error":{"message":"boom"}}', True, Outcome.STREAM_ERROR),
        (b'{"choices":[{"text":"a"}]}', True, Outcome.PROTOCOL),  # a whole answer where a stream was asked for
        (text("a", index=1) + DONE, True, Outcome.PROTOCOL),
        (text("a", index=-1) + DONE, True, Outcome.PROTOCOL),
        (text("a") + DONE + b"data: rubbish\n\n", True, Outcome.OK),
    ],
)
def test_outcomes(stream: bytes, clean: bool, outcome: Outcome) -> None:
    for reads in ([(1, stream)], [(i, stream[i : i + 1]) for i in range(len(stream))]):
        result = read(*reads, clean=clean)
        assert result.outcome is outcome, result.error
        assert (result.error is None) == (outcome is Outcome.OK)


def test_errors_name_what_was_seen() -> None:
    assert (
        read((1, HTML)).error
        == "not an event stream; it begins '<!DOCTYPE html> <html><title>Welcome</title> <body>hi</body></html>'"
    )
    assert read((1, b"data: hello\n\n")).error == "not JSON; got 'hello'"
    assert (
        read((1, text("a", index=7)), batch=3).error
        == "the answer names a prompt that was not sent; got 7; allowed: 0 to 2"
    )


def test_triton_is_complete_at_a_clean_close() -> None:
    stream = b"".join(event({"model_name": "m", "text_output": f" tok{i}"}) for i in range(3))
    result = read((1, stream), dialect="triton")
    assert (result.outcome, result.output_tokens, result.output_tokens_source) == (Outcome.OK, 3, TokenSource.CHUNKS)
    assert read((1, stream), dialect="triton", clean=False).outcome is Outcome.TRUNCATED
    assert read((1, stream + event({"error": "boom"})), dialect="triton").outcome is Outcome.STREAM_ERROR


def test_a_batch_is_as_slow_as_its_slowest_prompt() -> None:
    result = read(
        (10, text("a", 1)),
        (20, text("b", 0)),
        (25, text("", 2)),
        (30, text("c", 2)),
        (40, text("d", 1, "length")),
        (60, text("e", 0, "length")),
        (70, text("f", 2, "stop")),
        (90, usage(30, 6)),
        (91, DONE),
        batch=3,
        max_tokens=2,
    )
    assert result.outcome is Outcome.OK
    assert [ms(stamp) for stamp in result.prompt_first_ns] == [20, 10, 30]
    assert (ms(result.first_token_ns), ms(result.last_token_ns)) == (30, 70)
    assert result.chunk_gaps_us == [40_000, 30_000, 40_000]  # prompt by prompt
    assert result.itl_s == pytest.approx((0.040 + 0.030 + 0.040) / 3)
    assert result.finish_reason == "length+stop"
    assert result.warnings == ()


def test_a_prompt_that_ends_without_text_is_a_warning() -> None:
    result = read((1, text("a", 0, "stop")), (2, text("", 1, "stop")), (3, DONE), batch=2)
    assert result.outcome is Outcome.OK
    assert result.warnings == ("1 of 2 prompts ended without text",)
    assert result.prompt_first_ns == (1_000_000, None)


def test_a_prompt_without_any_answer_is_a_failure() -> None:
    result = read((1, text("a", 0, "stop")), (3, DONE), batch=4)
    assert result.outcome is Outcome.EMPTY
    assert result.error == "HTTP 200, but no answer for 3 of 4 prompts"
    assert read((1, text("a", 0, "stop")), batch=4).outcome is Outcome.TRUNCATED


def test_several_tokens_in_one_chunk() -> None:
    result = read((10, text("abc")), (40, text("def", finish="length")), (41, usage(5, 7)), (42, DONE), max_tokens=7)
    assert (result.output_tokens, result.chunks) == (7, 2)
    assert result.itl_s == pytest.approx(0.030 / 6)


def test_one_token_has_no_inter_token_latency() -> None:
    result = read((10, text("a", finish="length")), (11, usage(5, 1)), (12, DONE), max_tokens=1)
    assert (result.outcome, result.itl_s, result.chunk_gaps_us, result.stalls) == (Outcome.OK, None, None, 0)
    assert result.first_token_ns == result.last_token_ns == 10_000_000


def test_reasoning_then_answer() -> None:
    result = read(
        (5, chat({"role": "assistant"})),
        (10, chat({"reasoning_content": "hm"})),
        (20, chat({"reasoning_content": None, "content": "so"})),
        (21, chat(finish="stop") + DONE),
        dialect="chat",
    )
    assert (ms(result.first_token_ns), ms(result.first_answer_ns)) == (10, 20)
    only = read((10, chat({"reasoning": "hm"}, "length") + DONE), dialect="chat")
    assert (only.outcome, only.first_answer_ns) == (Outcome.OK, None)


def test_a_failed_requests_usage_is_not_held_against_it() -> None:
    assert read((1, text("a") + text("b") + usage(1, 1))).warnings == ()
    assert len(read((1, text("a") + text("b") + usage(1, 1) + DONE)).warnings) == 1


def test_a_finish_reason_can_always_be_stored() -> None:
    """Half a surrogate pair is no text that a file could hold, and length is the server's whim."""
    result = read((1, b'data: {"choices":[{"text":"a","finish_reason":"st\\ud83dop' + b"x" * 999 + b'"}]}\n\n' + DONE))
    assert result.finish_reason is not None
    assert len(result.finish_reason.encode()) < 70


def test_stalls_are_counted() -> None:
    reads = [(10.0 * i, text("a")) for i in range(5)]
    assert read(*reads, (1500, text("a")), (1501, DONE)).stalls == 1


def test_state_while_reading() -> None:
    reader = ResponseReader(DIALECTS["completions"], 2, 4)
    reader.feed(1, text(""))
    assert (reader.tokens_started, reader.last_token_ns, reader.done) == (False, None, False)
    reader.feed(2, text("a", 1))
    reader.feed(3, text("a", 0))
    assert (reader.tokens_started, reader.last_token_ns, reader.done) == (True, 3, False)
    reader.feed(4, DONE)
    assert reader.done
    reader.feed(5, text("late"))
    assert reader.chunks == 2


@pytest.mark.parametrize("bad", [b"data: x\n\n", event({"error": "boom"})])
def test_reading_is_done_at_a_fault(bad: bytes) -> None:
    reader = ResponseReader(DIALECTS["completions"], 1)
    reader.feed(1, bad)
    assert reader.done


def test_a_whole_answer_tells_only_when_it_was_there() -> None:
    reader = ResponseReader(DIALECTS["chat"], 1, 10)
    body = {
        "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4},
    }
    reader.feed_whole(7, json.dumps(body).encode())
    result = reader.finish(7, clean=True)
    assert (result.outcome, result.finish_reason) == (Outcome.OK, "stop")
    assert (result.first_token_ns, result.last_token_ns, result.itl_s, result.chunks) == (None, 7, None, 0)
    assert (result.server_input_tokens, result.output_tokens) == (9, 4)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"error":{"message":"boom"}}', Outcome.STREAM_ERROR),
        (b'{"choices":[]}', Outcome.EMPTY),
        (b'{"choices":[{"text":""}]}', Outcome.EMPTY),
        (b"null", Outcome.EMPTY),
        (b"", Outcome.PROTOCOL),
        (HTML, Outcome.PROTOCOL),
        (b'{"choices":[{"index":3,"text":"a"}]}', Outcome.PROTOCOL),
        (b'{"choices":[{"text":"a"}]}', Outcome.OK),
    ],
)
def test_outcomes_of_whole_answers(body: bytes, outcome: Outcome) -> None:
    reader = ResponseReader(DIALECTS["completions"], 1)
    reader.feed_whole(1, body)
    assert reader.finish(1, clean=True).outcome is outcome


PIECES = st.sampled_from(
    [text("a"), text("b", 1), text("", 0, "stop"), text("x", 1, "length"), usage(3, 2), DONE, b": ping\n\n", b"\xff",
     b"data: ", b"\r\n", b"\n\n", b"event: error\n", b"data: null\n\n", b"<html>", event({"error": 1}), b"data: 7\n\n"]
)  # fmt: skip


@given(st.lists(PIECES | st.binary(max_size=20), max_size=12), st.booleans(), st.sampled_from(sorted(DIALECTS)))
def test_whatever_a_server_sends_becomes_an_outcome(pieces: list[bytes], clean: bool, dialect: str) -> None:
    """No exception, the same result for other cuts, and no figure that contradicts another."""
    whole = b"".join(pieces)
    result = read((1, whole), dialect=dialect, batch=2, clean=clean)
    singly = read(*((1, whole[i : i + 1]) for i in range(len(whole))), (1, b""), dialect=dialect, batch=2, clean=clean)
    assert singly == result
    assert (result.error is None) == (result.outcome is Outcome.OK)
    assert (result.first_token_ns is None) == (result.chunks == 0)
    assert len(result.chunk_gaps_us or []) == result.chunks - sum(s is not None for s in result.prompt_first_ns)
