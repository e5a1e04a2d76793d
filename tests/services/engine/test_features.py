"""Features of the scheduler as a client of the server sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.engines import standin
from tests.servers.processes import Server
from tests.services.engine.conftest import MODEL, call, connect, metric, raw_request, wait_for

COMPLETIONS = "/v1/completions"
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


def test_another_face_says_it_in_its_own_words(tmp_path: Path) -> None:
    with standin(tmp_path, "--face", "sglang", "--max-num-queued-reqs", "0") as server:
        status, body = call(server, COMPLETIONS, PROMPT)
    assert (status, body["message"]) == (503, "The request queue is full.")
