"""`cliffwatch run` on the stand-in in each of its faces: the tokens of its rows are those that the face counts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.records.manifest import RunState
from tests.servers.engines import standin
from tests.servers.load import run
from tests.servers.metrics import Growth, scrape
from tests.servers.processes import free_port

pytestmark = pytest.mark.integration

WORKLOAD: dict[str, Any] = {
    "name": "faces",
    "seed": 7,
    "arrivals": {"kind": "poisson", "rate": 40},
    "input_tokens": {"kind": "uniform", "min": 32, "max": 400},
    "output_tokens": {"kind": "uniform", "min": 4, "max": 24},
    "batch": {"sizes": [1]},
    "cold_start": {"requests": 1},
    "requests": 60,
}


@pytest.mark.parametrize(
    ("face", "options", "metrics", "requests", "prompts", "outputs"),
    [
        (
            "vllm", {}, "", ("vllm:request_success_total", {}),
            ("vllm:prompt_tokens_total", {}), ("vllm:generation_tokens_total", {}),
        ),
        (
            "trtllm", {}, "/prometheus", ("trtllm_request_success_total", {}),
            ("trtllm_prompt_tokens_total", {}), ("trtllm_generation_tokens_total", {}),
        ),
        (
            "sglang", {}, "", ("sglang:num_requests_total", {}),
            ("sglang:prompt_tokens_total", {}), ("sglang:generation_tokens_total", {}),
        ),
        (
            "triton", {"endpoint": "triton"}, "", ("nv_inference_request_success_total", {}),
            ("nv_llm_input_token_len_sum", {"response_metric_type": "total_input_tokens"}),
            ("nv_llm_output_token_len_sum", {"response_metric_type": "total_output_tokens"}),
        ),
    ],
)  # fmt: skip
def test_rows_and_counters_agree(
    tmp_path: Path, face: str, options: dict[str, str], metrics: str, requests: Any, prompts: Any, outputs: Any
) -> None:
    with ExitStack() as stack:
        more: tuple[str, ...] = ()
        health = "/v2/health/ready" if face == "triton" else "/health"
        port = free_port()
        if face == "triton":
            more = ("--metrics-port", str(port))
        server = stack.enter_context(standin(tmp_path, "--speed", "20", "--face", face, *more, health=health))
        url = f"http://127.0.0.1:{port}" if more else server.url + metrics
        before = scrape(url)
        result = run({**WORKLOAD, **options}, server.url, tmp_path)
        growth = Growth(before, scrape(url))
    assert result.code == 0, result.output
    assert result.manifest.state is RunState.COMPLETE
    ((rows, built, tokens),) = result.rows(
        "select count(*), sum(coalesce(server_input_tokens, built_input_tokens)), sum(output_tokens)"
        " from requests where outcome = 'ok'"
    )
    assert rows == 60
    # A server that counts prompts in its answers only is asked for one token of a few prompts first, to learn how.
    probes = growth.total(requests[0], **requests[1]) - rows
    assert (probes > 0) == (face == "trtllm")
    assert growth.total(outputs[0], **outputs[1]) == tokens + probes
    if face in {"vllm", "sglang"}:  # Triton says no counts of prompts, and TensorRT-LLM's are of the probes too
        assert growth.total(prompts[0], **prompts[1]) == built
