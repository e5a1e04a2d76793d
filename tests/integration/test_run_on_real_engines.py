"""`cliffwatch run` on a real llama.cpp and a real vLLM: its totals are the engine's own, to the request and the token.

Both engines are this test's alone while a run goes on, so the growth of their counters is the run's and nothing else's.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.records.manifest import RunState
from tests.servers.load import Run, run
from tests.servers.metrics import Growth, scrape
from tests.servers.processes import Server

pytestmark = pytest.mark.integration

WORKLOAD: dict[str, Any] = {
    "name": "mixed",
    "seed": 7,
    "arrivals": {"kind": "poisson", "rate": 6},
    "input_tokens": {"kind": "loguniform", "min": 32, "max": 1024},
    "output_tokens": {"kind": "uniform", "min": 4, "max": 48},
    "batch": {"sizes": [1, 2, 4], "token_budget": "2k"},
    "cache": {"prefix_share": 0.25, "prefix_fraction": 0.5, "groups": 4},
    "cold_start": {"requests": 1},
    "warmup": {"requests": 5},
    "requests": 120,
}
FAST = {**WORKLOAD, "arrivals": {"kind": "poisson", "rate": 15}}


def totals(result: Run) -> dict[str, int]:
    """Sums over the rows that the engine answered whole."""
    columns = {
        "prompts": "sum(batch)",
        "input": "sum(server_input_tokens)",
        "output": "sum(output_tokens)",
        "asked": "sum(batch * input_tokens)",
        "asked_output": "sum(batch * max_output_tokens)",
    }
    selection = ", ".join(columns.values())
    (row,) = result.rows(f"select {selection} from requests where outcome in ('ok', 'empty')")  # noqa: S608  our own columns
    return dict(zip(columns, (int(value) for value in row), strict=True))


def assert_complete(result: Run, requests: int) -> None:
    """It ended well, every request is accounted for, and each prompt was as long as asked, by the server's count.

    Random weights now and then generate nothing but special tokens, which have no text. Such an answer is `empty`, and
    rightly so, though the engine finished it and counts its tokens as any other's.
    """
    assert result.code == 0, result.output
    manifest = result.manifest
    assert manifest.state is RunState.COMPLETE
    assert manifest.prompt_method == "server_tokenize"
    assert manifest.accounting is not None
    assert manifest.accounting.balanced
    answered = "outcome = 'ok' or (outcome = 'empty' and chunks = 0 and output_tokens = batch * max_output_tokens)"
    unanswered = result.rows(f"select outcome, error from requests where not ({answered})")  # noqa: S608  our own text
    assert unanswered == []
    assert manifest.accounting.issued == requests
    assert manifest.accounting.ok >= 0.95 * requests
    wrong = result.rows(
        "select request_id, endpoint, batch, input_tokens, built_input_tokens, server_input_tokens from requests"
        " where server_input_tokens is distinct from batch * input_tokens"
    )
    assert not wrong, wrong[:5]
    sources = result.rows("select distinct output_tokens_source from requests")
    assert sources == [("server",)]


@pytest.mark.parametrize("workers", [1, 2])
def test_llama_cpp_counts_what_the_run_counts(llama_cpp_server: Server, tmp_path: Path, workers: int) -> None:
    before = scrape(llama_cpp_server.url)
    result = run(FAST, llama_cpp_server.url, tmp_path, "--workers", str(workers))
    growth = Growth(before, scrape(llama_cpp_server.url))
    assert_complete(result, 120)
    sums = totals(result)
    processed = growth.total("llamacpp:prompt_tokens_total") + growth.total("llamacpp:prompt_tokens_cached_total")
    assert processed == sums["input"]
    assert growth.total("llamacpp:tokens_predicted_total") == sums["output"] == sums["asked_output"]
    (cached,) = result.rows("select sum(cached_input_tokens) from requests")[0]
    assert growth.total("llamacpp:prompt_tokens_cached_total") == cached
    assert sorted(row[0] for row in result.rows("select distinct worker from requests")) == list(range(workers))


def test_vllm_counts_what_the_run_counts(vllm_server: Server, tmp_path: Path) -> None:
    before = scrape(vllm_server.url)
    result = run(WORKLOAD, vllm_server.url, tmp_path)
    growth = Growth(before, scrape(vllm_server.url))
    assert_complete(result, 120)
    sums = totals(result)
    assert growth.total("vllm:request_success_total") == sums["prompts"]
    assert growth.total("vllm:request_success_total", finished_reason="length") == sums["prompts"]
    assert growth.total("vllm:prompt_tokens_total") == sums["input"] == sums["asked"]
    assert growth.total("vllm:generation_tokens_total") == sums["output"] == sums["asked_output"]

    # Client and engine saw the same first tokens. Each prompt of a batch is a request to vLLM.
    assert growth.total("vllm:time_to_first_token_seconds_count") == sums["prompts"]
    for share in (0.5, 0.95):
        query = f"select quantile_cont(t, {share}) from (select unnest(prompt_ttfts_us) / 1e6 as t from requests)"  # noqa: S608
        ((seen,),) = result.rows(query)
        low, high = growth.percentile_bucket("vllm:time_to_first_token_seconds", share)
        assert low <= seen <= high, f"p{share * 100:g}: {seen} s is not near the engine's {low} to {high} s"


def test_a_closed_loop_keeps_its_users_busy_and_agrees_too(llama_cpp_server: Server, tmp_path: Path) -> None:
    workload = {**WORKLOAD, "arrivals": {"kind": "concurrency", "users": 3}, "requests": 60}
    before = scrape(llama_cpp_server.url)
    result = run(workload, llama_cpp_server.url, tmp_path)
    growth = Growth(before, scrape(llama_cpp_server.url))
    assert_complete(result, 60)
    assert growth.total("llamacpp:tokens_predicted_total") == totals(result)["output"]


def test_the_judged_run_is_json_with_the_same_count(llama_cpp_server: Server, tmp_path: Path) -> None:
    workload = {**FAST, "requests": 40, "warmup": {"requests": 2}}
    result = run(workload, llama_cpp_server.url, tmp_path, "--slo", "demo", "--json")
    assert result.code in {0, 1}, result.output  # met or missed: a busy machine decides
    document = json.loads(result.output[result.output.index("{") :])
    assert result.rows("select count(*) from requests where phase = 'measured'") == [(37,)]
    assert "37" in json.dumps(document)


# Random weights write anything short now and then, and would end there; nothing as long as this.
NEVER_WRITTEN = "<the answer ends here>"

NATIVE: dict[str, Any] = {
    **FAST,
    "endpoint": "llamacpp",
    "sampling": {"temperature": 0, "ignore_eos": True, "top_k": 5, "repetition_penalty": 1.1, "stop": [NEVER_WRITTEN]},
    "requests": 60,
}


def test_llama_cpps_own_endpoint_counts_what_the_run_counts(llama_cpp_server: Server, tmp_path: Path) -> None:
    before = scrape(llama_cpp_server.url)
    result = run(NATIVE, llama_cpp_server.url, tmp_path, "--workers", "2")
    growth = Growth(before, scrape(llama_cpp_server.url))
    assert_complete(result, 60)
    sums = totals(result)
    (cached,) = result.rows("select sum(cached_input_tokens) from requests")[0]
    assert growth.total("llamacpp:prompt_tokens_total") + cached == sums["input"] == sums["asked"]
    assert growth.total("llamacpp:prompt_tokens_cached_total") == cached > 0
    assert growth.total("llamacpp:tokens_predicted_total") == sums["output"] == sums["asked_output"]
    assert result.rows("select distinct endpoint, finish_reason from requests") == [("llamacpp", "length")]


SESSIONS: dict[str, Any] = {
    "name": "sessions",
    "arrivals": {"kind": "poisson", "rate": 6},
    "requests": 90,
    "input_tokens": {"kind": "uniform", "min": 60, "max": 200},
    "output_tokens": {"kind": "uniform", "min": 4, "max": 32},
    "sessions": {
        "turns": {"kind": "uniform", "min": 2, "max": 6},
        "think_time": "100ms",
        "input_tokens": {"kind": "uniform", "min": 20, "max": 60},
    },
    "tenants": [{"name": "free", "weight": 3}, {"name": "paid"}],
}


@pytest.mark.parametrize("workers", [1, 2])
def test_sessions_on_llama_cpp_hold_what_was_said(llama_cpp_server: Server, tmp_path: Path, workers: int) -> None:
    """Random weights seldom speak nothing but special tokens; such a session ends there, and its row says so.

    A prompt is asked for as long as the answer before was by the engine's count. The engine cuts the same text into
    tokens anew, some more of them, since random tokens are not how a tokenizer cuts text.
    """
    before = scrape(llama_cpp_server.url)
    result = run(SESSIONS, llama_cpp_server.url, tmp_path, "--workers", str(workers))
    growth = Growth(before, scrape(llama_cpp_server.url))
    assert result.code == 0, result.output
    accounting = result.manifest.accounting
    assert accounting is not None and accounting.balanced
    assert accounting.issued >= 80
    sums = totals(result)
    (cached,) = result.rows("select sum(cached_input_tokens) from requests")[0]
    assert growth.total("llamacpp:prompt_tokens_total") + cached == sums["input"]
    assert growth.total("llamacpp:tokens_predicted_total") == sums["output"] == sums["asked_output"]
    turns = result.rows("select session, turn, worker, tenant, input_tokens, server_input_tokens, output_tokens,"
        " intended_ns, ended_ns, cached_input_tokens from requests order by session, turn")  # fmt: skip
    later = [(was, now) for was, now in pairwise(turns) if was[0] == now[0]]
    assert len(later) > 50
    for (_, turn, worker, tenant, _, counted, output, _, ended, _), now in later:
        assert now[1:4] == (turn + 1, worker, tenant)
        assert 20 <= now[4] - counted - output <= 60  # what the turn was to add
        assert now[7] == ended + 100_000_000
    asked, counted = (sum(now[place] for _, now in later) for place in (4, 5))
    assert abs(counted / asked - 1) < 0.05  # and the engine agrees, but for the tokens of answers
    firsts = [row for row in turns if row[1] == 0]
    assert all(row[4] == row[5] for row in firsts)
    assert sum(now[9] for _, now in later) > 0.5 * sum(now[5] for _, now in later)  # its cache knows the history
