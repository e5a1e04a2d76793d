"""The metric families of vLLM 0.33 that the stand-in exposes: names, types, labels, bucket edges, and help.

Names, labels and edges are those of vLLM's own `/metrics`; `tests/services/engine` compares them with a recorded one.
"""

from __future__ import annotations

from dataclasses import dataclass

REQUEST_LATENCY = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
INTER_TOKEN = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
ITERATION_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PARAMS_N = (1, 2, 5, 10, 20)
PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
HTTP_FINE = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60,
)  # fmt: skip
HTTP_COARSE = (0.1, 0.5, 1)

ENGINE = ("model_name", "engine")
CACHE_CONFIG = ("block_size", "cache_dtype", "enable_prefix_caching", "kv_cache_size_tokens", "num_gpu_blocks")
REQUEST_TOKENS = "1-2-5 up to the model's length"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family; `name` is without `_total`. `edges` may name a list that depends on the model."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ENGINE
    edges: tuple[float, ...] | str = ()


def request_token_edges(max_model_len: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50, ... up to the model's length."""
    edges: list[float] = []
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power > max_model_len:
                return tuple(edges)
            edges.append(float(digit * power))
        power *= 10


def _latency(name: str, text: str, edges: tuple[float, ...] = REQUEST_LATENCY) -> Family:
    return Family(f"vllm:{name}_seconds", "histogram", text, edges=edges)


def _tokens(name: str, text: str) -> Family:
    return Family(f"vllm:{name}", "histogram", text, edges=REQUEST_TOKENS)


FAMILIES: tuple[Family, ...] = (
    Family("vllm:num_requests_running", "gauge", "Number of requests in model execution batches."),
    Family("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed."),
    Family(
        "vllm:num_requests_waiting_by_reason",
        "gauge",
        "Number of requests waiting to be processed, by reason.",
        (*ENGINE, "reason"),
    ),
    Family("vllm:engine_sleep_state", "gauge", "Engine sleep state.", (*ENGINE, "sleep_state")),
    Family("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage."),
    Family("vllm:prefix_cache_queries", "counter", "Prefix cache queries, in tokens."),
    Family("vllm:prefix_cache_hits", "counter", "Prefix cache hits, in tokens."),
    Family("vllm:external_prefix_cache_queries", "counter", "Queries of a cache of other engines, in tokens."),
    Family("vllm:external_prefix_cache_hits", "counter", "Hits in a cache of other engines, in tokens."),
    Family("vllm:mm_cache_queries", "counter", "Queries of the multi-modal cache, in items."),
    Family("vllm:mm_cache_hits", "counter", "Hits in the multi-modal cache, in items."),
    Family("vllm:num_preemptions", "counter", "Preemptions by the engine."),
    Family("vllm:prompt_tokens", "counter", "Prefill tokens processed."),
    Family("vllm:prompt_tokens_by_source", "counter", "Prompt tokens by their source.", (*ENGINE, "source")),
    Family("vllm:prompt_tokens_cached", "counter", "Prompt tokens found in a cache."),
    Family(
        "vllm:prompt_tokens_cached_by_source", "counter", "Cached prompt tokens by their source.", (*ENGINE, "source")
    ),
    Family("vllm:generation_tokens", "counter", "Generation tokens processed."),
    Family("vllm:request_success", "counter", "Finished requests, by reason.", (*ENGINE, "finished_reason")),
    Family("vllm:admission_rejections", "counter", "Refusals by a queue limit.", ("model_name", "reason")),
    _tokens("request_prompt_tokens", "Prefill tokens of a request."),
    _tokens("request_generation_tokens", "Generation tokens of a request."),
    Family("vllm:iteration_tokens_total", "histogram", "Tokens per engine step.", edges=ITERATION_TOKENS),
    _tokens("request_max_num_generation_tokens", "Most generation tokens among a request's answers."),
    Family("vllm:request_params_n", "histogram", "The n request parameter.", edges=PARAMS_N),
    _tokens("request_params_max_tokens", "The max_tokens request parameter."),
    _latency("time_to_first_token", "Time to first token in seconds.", FIRST_TOKEN),
    _latency("inter_token_latency", "Inter-token latency in seconds.", INTER_TOKEN),
    _latency("request_time_per_output_token", "Time per output token of a request, in seconds.", INTER_TOKEN),
    _latency("e2e_request_latency", "End-to-end request latency in seconds."),
    _latency("request_queue_time", "Time a request waited."),
    _latency("request_inference_time", "Time a request ran."),
    _latency("request_prefill_time", "Time a request's prefill took."),
    _latency("request_decode_time", "Time a request's decode took."),
    Family("vllm:request_num_preemptions", "histogram", "Times a request was preempted.", edges=PREEMPTIONS),
    _tokens("request_prefill_kv_computed_tokens", "Prompt tokens computed, cached ones left out."),
    Family("vllm:cache_config_info", "gauge", "The cache as configured.", ("engine", *CACHE_CONFIG)),
    Family("http_requests", "counter", "Requests by method, status and handler.", ("handler", "status", "method")),
    Family("http_request_size_bytes", "summary", "Content length of requests by handler.", ("handler",)),
    Family("http_response_size_bytes", "summary", "Content length of answers by handler.", ("handler",)),
    Family("http_request_duration_highr_seconds", "histogram", "Latency with many buckets.", (), HTTP_FINE),
    Family(
        "http_request_duration_seconds",
        "histogram",
        "Latency with few buckets, by handler.",
        ("handler", "method"),
        HTTP_COARSE,
    ),
)

# Children that exist from the start, as in the real engine; others appear when they are first counted.
PRESET: dict[str, tuple[tuple[str, ...], ...]] = {
    "vllm:num_requests_waiting_by_reason": (("capacity",), ("deferred",)),
    "vllm:engine_sleep_state": (("awake",), ("weights_offloaded",), ("discard_all",)),
    "vllm:prompt_tokens_by_source": (("local_compute",), ("local_cache_hit",), ("external_kv_transfer",)),
    "vllm:prompt_tokens_cached_by_source": (("device",), ("host",), ("p2p",), ("disk",), ("external_unspecified",)),
    "vllm:admission_rejections": (("max_num_queued_reqs",), ("max_num_queued_tokens",)),
    "vllm:request_success": (("stop",), ("length",), ("abort",), ("error",), ("repetition",)),
}
