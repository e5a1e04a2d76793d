"""Where each engine shows what the boards of engine internals ask for, by the names of the engine catalog.

A role that an engine lacks is absent, and its board then has no panel of it: an empty panel would look like calm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dashboards.promql import Ratio, Term, count_of, term


@dataclass(frozen=True)
class Roles:
    """One engine's sources.

    Attributes:
        limit: most requests that run at once.
        waiting_why: queued requests, told apart by what they wait for.
        tokens: counters of tokens by the name of their kind.
        found: share of prompt tokens (or blocks) found in the prefix cache.
        stages: mean time in each part of the way of `stages_of`, in the order of the way.
        step: tokens (or sequences) of an engine step; `steps`: counter of steps.
        lengths: histograms of tokens a request.
        ends: finished requests, told apart by how they ended.
        lost: counters of requests that got no whole answer, by the name of the reason.
        latency: histograms by the name of the figure.
        lacks: what the engine does not tell, for the head of its board.
    """

    running: Term
    waiting: Term
    limit: Term | None = None
    waiting_why: Term | None = None
    kv: Term | None = None
    found: Ratio | None = None
    preempted: Term | None = None
    paused: Term | None = None
    tokens: dict[str, Term] = field(default_factory=dict)
    stages: dict[str, Term | Ratio] = field(default_factory=dict)
    stages_of: str = "a request"
    step: Term | Ratio | None = None
    steps: Term | None = None
    lengths: dict[str, Term] = field(default_factory=dict)
    ends: Term | None = None
    lost: dict[str, Term] = field(default_factory=dict)
    latency: dict[str, Term] = field(default_factory=dict)
    lacks: str = ""


VLLM = Roles(
    running=term("vllm:num_requests_running"),
    waiting=term("vllm:num_requests_waiting"),
    waiting_why=term("vllm:num_requests_waiting_by_reason", by="reason"),
    kv=term("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    found=Ratio(
        term("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        term("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    ),
    preempted=term("vllm:num_preemptions_total"),
    tokens={
        "prompt": term("vllm:prompt_tokens_total"),
        "prompt, from a cache": term("vllm:prompt_tokens_cached_total"),
        "generated": term("vllm:generation_tokens_total"),
    },
    stages={
        "queue": term("vllm:request_queue_time_seconds"),
        "prefill": term("vllm:request_prefill_time_seconds"),
        "decode": term("vllm:request_decode_time_seconds"),
    },
    step=term("vllm:iteration_tokens_total"),
    steps=count_of(term("vllm:iteration_tokens_total")),
    lengths={
        "prompt": term("vllm:request_prompt_tokens"),
        "prompt, computed": term("vllm:request_prefill_kv_computed_tokens"),
        "answer": term("vllm:request_generation_tokens"),
    },
    ends=term("vllm:request_success_total", by="finished_reason"),
    lost={
        "aborted": term("vllm:request_success_total", match={"finished_reason": "abort"}),
        "error": term("vllm:request_success_total", match={"finished_reason": "error"}),
        "refused": term("vllm:admission_rejections_total"),
    },
    latency={
        "TTFT": term("vllm:time_to_first_token_seconds"),
        "ITL": term("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        "TPOT": term("vllm:request_time_per_output_token_seconds"),
        "E2E": term("vllm:e2e_request_latency_seconds"),
    },
    lacks="requests that their client left",
)

TRTLLM = Roles(
    running=term("trtllm_num_requests_running"),
    waiting=term("trtllm_num_requests_waiting"),
    limit=term("trtllm_max_batch_size_runtime"),
    kv=term("trtllm_kv_cache_utilization"),
    found=Ratio(term("trtllm_prompt_cached_tokens_total"), term("trtllm_prompt_tokens_total")),
    paused=term("trtllm_num_paused_requests"),
    tokens={
        "prompt": term("trtllm_prompt_tokens_total"),
        "prompt, from a cache": term("trtllm_prompt_cached_tokens_total"),
        "generated": term("trtllm_generation_tokens_total"),
    },
    stages={
        "queue": term("trtllm_request_queue_time_seconds", "request_queue_time_seconds"),
        "prefill": term("trtllm_request_prefill_time_seconds"),
        "decode": term("trtllm_request_decode_time_seconds"),
    },
    ends=term("trtllm_request_success_total", "request_success_total", by="finished_reason"),
    lost={"error": term("trtllm_request_error_total")},
    latency={
        "TTFT": term("trtllm_time_to_first_token_seconds", "time_to_first_token_seconds"),
        "TPOT": term("trtllm_time_per_output_token_seconds", "time_per_output_token_seconds"),
        "E2E": term("trtllm_e2e_request_latency_seconds", "e2e_request_latency_seconds"),
    },
    lacks="single intervals between tokens (ITL), preemptions as a counter, lengths of requests",
)

_TRITON_DONE = term("nv_inference_request_success")

TRITON = Roles(
    running=term("nv_trt_llm_request_metrics", match={"request_type": "active"}),
    waiting=term("nv_inference_pending_request_count"),
    limit=term("nv_trt_llm_request_metrics", match={"request_type": "max"}),
    kv=term("nv_trt_llm_kv_cache_block_metrics", match={"kv_cache_block_type": "fraction"}),
    paused=term("nv_trt_llm_inflight_batcher_metrics", match={"inflight_batcher_specific_metric": "paused_requests"}),
    stages={
        "queue": Ratio(term("nv_inference_queue_duration_us", scale=1e-6), _TRITON_DONE),
        "input": Ratio(term("nv_inference_compute_input_duration_us", scale=1e-6), _TRITON_DONE),
        "inference": Ratio(term("nv_inference_compute_infer_duration_us", scale=1e-6), _TRITON_DONE),
        "output": Ratio(term("nv_inference_compute_output_duration_us", scale=1e-6), _TRITON_DONE),
    },
    tokens={
        "prompt": Term(("nv_llm_input_token_len",), part="_sum"),
        "generated": Term(("nv_llm_output_token_len",), part="_sum"),
    },
    lengths={"prompt": term("nv_llm_input_token_len"), "answer": term("nv_llm_output_token_len")},
    ends=_TRITON_DONE,
    lost={"failed": term("nv_inference_request_failure", by="reason")},
    latency={"TTFT": term("nv_inference_first_response_histogram_ms", scale=1e-3)},
    lacks="E2E, ITL and TPOT as histograms (durations are sums of microseconds, which give means alone), "
    "prefix-cache hits, preemptions, finish reasons",
)

SGLANG = Roles(
    running=term("sglang:num_running_reqs"),
    waiting=term("sglang:num_queue_reqs"),
    kv=term("sglang:token_usage"),
    found=Ratio(
        term("sglang:realtime_tokens_total", match={"mode": "prefill_cache"}),
        term("sglang:realtime_tokens_total", match={"mode": "prefill_compute|prefill_cache"}),
    ),
    preempted=term("sglang:num_retracted_requests_total"),
    tokens={
        "prompt": term("sglang:realtime_tokens_total", match={"mode": "prefill_compute|prefill_cache"}),
        "prompt, from a cache": term("sglang:realtime_tokens_total", match={"mode": "prefill_cache"}),
        "generated": term("sglang:realtime_tokens_total", match={"mode": "decode"}),
    },
    stages={
        "queue": term("sglang:queue_time_seconds"),
        "": term("sglang:per_stage_req_latency_seconds", by="stage"),
    },
    lengths={
        "prompt": term("sglang:prompt_tokens_histogram"),
        "prompt, computed": term("sglang:uncached_prompt_tokens_histogram"),
        "answer": term("sglang:generation_tokens_histogram"),
    },
    ends=term("sglang:num_requests_total"),
    lost={
        "aborted": term("sglang:num_aborted_requests_total"),
        "server error": term("sglang:http_responses_total", match={"endpoint": "/v1/.+", "status_code": "5.."}),
    },
    latency={
        "TTFT": term("sglang:time_to_first_token_seconds"),
        "ITL": term("sglang:inter_token_latency_seconds"),
        "TPOT": term("sglang:request_time_per_output_token_seconds"),
        "E2E": term("sglang:e2e_request_latency_seconds"),
    },
    lacks="finish reasons",
)

LLAMACPP = Roles(
    running=term("llamacpp:requests_processing"),
    waiting=term("llamacpp:requests_deferred"),
    tokens={
        "prompt": term("llamacpp:prompt_tokens_total"),
        "generated": term("llamacpp:tokens_predicted_total"),
    },
    step=Ratio(term("llamacpp:tokens_predicted_total"), term("llamacpp:n_decode_total")),
    steps=term("llamacpp:n_decode_total"),
    stages_of="a token",
    stages={
        "a prompt token": Ratio(term("llamacpp:prompt_seconds_total"), term("llamacpp:prompt_tokens_total")),
        "a generated token": Ratio(
            term("llamacpp:tokens_predicted_seconds_total"), term("llamacpp:tokens_predicted_total")
        ),
    },
    lacks="any histogram, so no percentile and no share; KV cache in use; ends of requests",
)

ROLES = {"vllm": VLLM, "trtllm": TRTLLM, "triton": TRITON, "sglang": SGLANG, "llamacpp": LLAMACPP}
