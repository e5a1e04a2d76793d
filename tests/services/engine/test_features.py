"""Features of the scheduler as a client of the server sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.engines import standin
from tests.servers.processes import Server
from tests.services.engine.conftest import MODEL, call, connect, events, exchange, metric, raw_request, wait_for

COMPLETIONS = "/v1/completions"
ADMIN_OPTIONS = "/admin/options"
PROMPT = {"prompt": "one two", "max_tokens": 4}
ENDLESS = {"prompt": "one two", "max_tokens": 3000, "stream": True}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """At most one request at a time, at the measured engine's own speed."""
    options = ("--model", MODEL, "--max-num-queued-reqs", "1", "--max-num-seqs", "1")
    with standin(tmp_path_factory.mktemp("narrow"), *options) as server:
        yield server


def test_a_full_queue_refuses_as_vllm_does_and_counts_it(narrow: Server) -> None:
    with closing(connect(narrow)) as stream:
        stream.sendall(raw_request(COMPLETIONS, ENDLESS))
        assert b"200 OK" in stream.recv(65536)
        status, body = call(narrow, COMPLETIONS, PROMPT)
        assert (status, body["error"]["code"], body["error"]["type"]) == (503, 503, "Service Unavailable")
        assert body["error"]["message"].startswith("The engine is currently busy and cannot accept new requests.")
    wait_for(lambda: metric(narrow, "vllm:num_requests_running") == 0)
    assert metric(narrow, "vllm:admission_rejections_total", reason="max_num_queued_reqs") == 1
    assert metric(narrow, "vllm:admission_rejections_total", reason="max_num_queued_tokens") == 0
    assert metric(narrow, "vllm:kv_cache_usage_perc") == 0  # the client that went away left nothing
    assert call(narrow, COMPLETIONS, PROMPT)[0] == 200


@pytest.fixture(scope="module")
def drafting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Three drafted tokens a step, all of them accepted."""
    options = ("--model", MODEL, "--speed", "50", "--num-speculative-tokens", "3", "--draft-acceptance-rate", "100%")
    with standin(tmp_path_factory.mktemp("drafting"), *options) as server:
        yield server


def test_drafts_come_in_chunks_of_several_tokens_and_are_counted(drafting: Server) -> None:
    asked = {"prompt": "one two", "max_tokens": 10, "stream_options": {"include_usage": True}}
    *chunks, usage, done = events(drafting, COMPLETIONS, asked)
    texts = [chunk["choices"][0]["text"] for chunk in chunks]
    assert [len(text.split()) for text in texts] == [1, 4, 4, 1]
    assert done == "[DONE]"
    assert usage["usage"]["completion_tokens"] == 10
    whole = call(drafting, COMPLETIONS, {"prompt": "one two", "max_tokens": 10})[1]
    assert (whole["choices"][0]["text"], whole["usage"]["completion_tokens"]) == ("".join(texts), 10)
    for name, value in (
        ("vllm:generation_tokens_total", 20),
        ("vllm:inter_token_latency_seconds_count", 6),  # one an event, not one a token
        ("vllm:spec_decode_num_drafts_total", 6),
        ("vllm:spec_decode_num_draft_tokens_total", 18),
        ("vllm:spec_decode_num_accepted_tokens_total", 12),
        ("vllm:spec_decode_num_accepted_tokens_per_pos_total", 12),
    ):
        assert metric(drafting, name) == value, name
    assert metric(drafting, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position="2") == 4


def test_a_stop_string_within_a_chunk_of_several_tokens_cuts_it(drafting: Server) -> None:
    whole = call(drafting, COMPLETIONS, {"prompt": "one two", "max_tokens": 12})[1]["choices"][0]["text"]
    word = whole.split()[7]
    *chunks, done = events(drafting, COMPLETIONS, {"prompt": "one two", "max_tokens": 12, "stop": word})
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole[: whole.index(word)]
    assert (chunks[-1]["choices"][0]["finish_reason"], done) == ("stop", "[DONE]")


def test_options_change_while_the_engine_serves(tmp_path: Path) -> None:
    with standin(tmp_path, "--admin", "--speed", "20", "--max-num-seqs", "1") as server:
        assert call(server, ADMIN_OPTIONS, b"", method="GET")[1]["options"]["eviction"] == "lru"
        status, body = call(server, ADMIN_OPTIONS, {"eviction": "lfu", "max_num_queued_reqs": 0})
        assert (status, body["options"]["eviction"], body["options"]["max_num_seqs"]) == (200, "lfu", 1)
        assert call(server, COMPLETIONS, PROMPT)[0] == 503
        for wrong, words in (
            ({"eviction": "mru"}, "eviction: cannot be used; got 'mru'; allowed: 'lru' or 'lfu'"),
            ({"prefix_caching": False}, "prefix_caching: cannot be changed while the engine runs"),
            ([1], "body: must be an object of options"),
            (b"{", "The body is not JSON"),
        ):
            status, body = call(server, ADMIN_OPTIONS, wrong)
            assert status == 400
            assert words in body["error"]["message"]
        assert call(server, ADMIN_OPTIONS, {"max_num_queued_reqs": None})[0] == 200
        with closing(connect(server)) as stream:
            stream.sendall(raw_request(COMPLETIONS, ENDLESS))
            assert b"200 OK" in stream.recv(65536)
            assert own_metric(server, "kv_used_blocks") > 0
            assert 0 < own_metric(server, "kv_unused_ratio") <= 1


def own_metric(server: Server, name: str) -> float:
    answer = exchange(
        server, raw_request("/admin/metrics", b"", method="GET", headers="connection: close\r\n")
    ).decode()
    (line,) = [line for line in answer.splitlines() if line.startswith(f"cliffwatch_engine_{name} ")]
    return float(line.split(" ")[1])


def test_another_face_says_it_in_its_own_words(tmp_path: Path) -> None:
    with standin(tmp_path, "--face", "sglang", "--max-num-queued-reqs", "0") as server:
        status, body = call(server, COMPLETIONS, PROMPT)
    assert (status, body["message"]) == (503, "The request queue is full.")
