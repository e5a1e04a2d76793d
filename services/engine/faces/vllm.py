"""vLLM's server. Each version exposes those of the metrics that it has."""

from __future__ import annotations

from typing import Any

from cliffwatch.engines.catalog import version_key
from services.engine.answers import Ended, Envelope, OpenAiWire, compact, token_counts
from services.engine.faces import openai
from services.engine.faces.exposing import always_text, as_accepted
from services.engine.faces.face import Face, Routes
from services.engine.faces.shows import ALWAYS_ZERO, each, takes
from services.engine.faults import FaultBody, flat_body, nested_body
from services.engine.metric_families import Feed, Show, Shows

CACHE_CONFIG = ("block_size", "cache_dtype", "enable_prefix_caching", "kv_cache_size_tokens", "num_gpu_blocks")
NESTED_SINCE = "0.10.1"  # errors were flat objects before
REASONS = ("stop", "length", "abort", "error", "repetition")

SHOWS: Shows = {
    "vllm:num_requests_running": takes("running"),
    "vllm:num_requests_waiting": takes("waiting"),
    "vllm:num_requests_waiting_by_reason": Show((Feed("waiting", ("capacity",)),), each("capacity", "deferred")),
    "vllm:num_requests_swapped": ALWAYS_ZERO,
    "vllm:cpu_cache_usage_perc": ALWAYS_ZERO,
    "vllm:kv_cache_usage_perc": takes("kv_usage"),
    "vllm:gpu_cache_usage_perc": takes("kv_usage"),
    "vllm:engine_sleep_state": Show((Feed("awake", ("awake",)),), each("awake", "weights_offloaded", "discard_all")),
    "vllm:prefix_cache_queries_total": takes("lookup_tokens"),
    "vllm:prefix_cache_hits_total": takes("found_tokens"),
    "vllm:gpu_prefix_cache_queries_total": takes("lookup_tokens"),
    "vllm:gpu_prefix_cache_hits_total": takes("found_tokens"),
    "vllm:external_prefix_cache_queries_total": ALWAYS_ZERO,
    "vllm:external_prefix_cache_hits_total": ALWAYS_ZERO,
    "vllm:mm_cache_queries_total": ALWAYS_ZERO,
    "vllm:mm_cache_hits_total": ALWAYS_ZERO,
    "vllm:num_preemptions_total": takes("preemptions"),
    "vllm:prompt_tokens_total": takes("prompt_tokens"),
    "vllm:prompt_tokens_by_source_total": Show(
        (Feed("computed_tokens", ("local_compute",)), Feed("cached_tokens", ("local_cache_hit",))),
        each("local_compute", "local_cache_hit", "external_kv_transfer"),
    ),
    "vllm:prompt_tokens_cached_total": takes("cached_tokens"),
    "vllm:prompt_tokens_cached_by_source_total": Show(
        (Feed("cached_tokens", ("device",)),), each("device", "host", "p2p", "disk", "external_unspecified")
    ),
    "vllm:prompt_tokens_recomputed_total": ALWAYS_ZERO,
    "vllm:generation_tokens_total": takes("generated_tokens"),
    "vllm:request_success_total": Show((Feed("finished", ("{reason}",)), Feed("failed", ("error",))), each(*REASONS)),
    "vllm:admission_rejections_total": Show(
        (Feed("refused", ("{limit}",)),), each("max_num_queued_reqs", "max_num_queued_tokens"), base=("model_name",)
    ),
    "vllm:spec_decode_num_drafts_total": Show((Feed("drafts"),), late=True),
    "vllm:spec_decode_num_draft_tokens_total": Show((Feed("draft_tokens"),), late=True),
    "vllm:spec_decode_num_accepted_tokens_total": Show((Feed("accepted_tokens"),), late=True),
    "vllm:spec_decode_num_accepted_tokens_per_pos_total": Show((Feed("accepted_at", ("{position}",)),), late=True),
    "vllm:request_prompt_tokens": takes("answer_prompt_tokens"),
    "vllm:request_generation_tokens": takes("answer_tokens"),
    "vllm:request_max_num_generation_tokens": takes("answer_tokens"),
    "vllm:request_params_n": takes("answer_choices"),
    "vllm:request_params_max_tokens": takes("answer_max_tokens"),
    "vllm:request_prefill_kv_computed_tokens": takes("answer_computed_tokens"),
    "vllm:request_num_preemptions": takes("answer_preemptions"),
    "vllm:iteration_tokens_total": takes("step_tokens"),
    "vllm:time_to_first_token_seconds": takes("ttft_s"),
    "vllm:inter_token_latency_seconds": takes("itl_s"),
    "vllm:time_per_output_token_seconds": takes("itl_s"),
    "vllm:request_time_per_output_token_seconds": takes("tpot_s"),
    "vllm:e2e_request_latency_seconds": takes("e2e_s"),
    "vllm:request_queue_time_seconds": takes("queue_s"),
    "vllm:request_inference_time_seconds": takes("inference_s"),
    "vllm:request_prefill_time_seconds": takes("prefill_s"),
    "vllm:request_decode_time_seconds": takes("decode_s"),
    "vllm:cache_config_info": Show(
        (Feed("config", tuple(f"{{{label}}}" for label in CACHE_CONFIG)),), base=("engine",), own=CACHE_CONFIG
    ),
    "http_requests_total": takes("http_ended", "{handler}", "{group}", "{method}"),
    "http_request_size_bytes": takes("http_request_bytes", "{handler}"),
    "http_response_size_bytes": takes("http_response_bytes", "{handler}"),
    "http_request_duration_highr_seconds": takes("http_s"),
    "http_request_duration_seconds": takes("http_s", "{handler}", "{method}"),
}

_CHOICE_NULLS = {"prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
_MESSAGE_NULLS = {"refusal": None, "annotations": None, "audio": None, "function_call": None, "reasoning": None}


def _tail(chat: bool, finish_reason: str, stop_reason: str) -> str:
    if not chat:
        return (
            f'","logprobs":null,"finish_reason":{finish_reason},"stop_reason":{stop_reason},'
            '"prompt_token_ids":null,"token_ids":null}'
        )
    stop = "" if finish_reason == "null" else f'"stop_reason":{stop_reason},'
    return f'"}},"logprobs":null,"finish_reason":{finish_reason},{stop}"token_ids":null}}'


def _choice(chat: bool, ended: Ended) -> dict[str, Any]:
    ending = {
        "logprobs": None, "finish_reason": ended.finish_reason, "stop_reason": ended.stop_reason, "token_ids": None,
    }  # fmt: skip
    if chat:
        message = {"role": "assistant", "content": ended.text, **_MESSAGE_NULLS}
        return {"index": ended.index, "message": message, **ending, "routed_experts": None}
    return {"index": ended.index, "text": ended.text, **ending, **_CHOICE_NULLS}


def _body(envelope: Envelope, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "service_tier": None,
        "system_fingerprint": envelope.fingerprint,
        "usage": {**usage, "prompt_tokens_details": None, "completion_tokens_details": None},
        **({"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None} if envelope.chat else {}),
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


WIRE = OpenAiWire(
    prefixes=("cmpl-", "chatcmpl-"),
    chat_delta='{"content":"',
    tails=_tail,
    role_choice='{"index":{index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    role_extras=',"prompt_token_ids":null,"prompt_text":null',
    no_usage=("", ""),
    usage=token_counts,
    closing=lambda fingerprint: f',"system_fingerprint":{compact(fingerprint)}',
    choice=_choice,
    body=_body,
)


def _fault_body(version: str) -> FaultBody:
    return nested_body if version_key(version) >= version_key(NESTED_SINCE) else flat_body


def _routes(version: str, model: str) -> Routes:  # noqa: ARG001
    return {
        "/v1/completions": {"POST": openai.completions},
        "/v1/chat/completions": {"POST": openai.chat},
        "/v1/models": {"GET": openai.models("vllm", {"parent": None, "permission": []})},
        "/tokenize": {"POST": openai.tokenize},
        "/metrics": {"GET": openai.metrics},
        # At this path names lose their colons for clients that cannot read them.
        "/metrics/": {"GET": openai.exposed(as_accepted)},
        "/version": {"GET": openai.version},
        "/health": {"GET": openai.empty},
        "/ping": {"GET": openai.empty, "POST": openai.empty},
    }


FACE = Face(
    name="vllm",
    version="0.33.0",
    shows=SHOWS,
    labels={"model_name": "{model}", "engine": "0"},
    wire=WIRE,
    fault_body=_fault_body,
    routes=_routes,
    expose=always_text,
    created=True,
    process=True,
    uncounted=frozenset({"/metrics", "/metrics/", "/health", "/ping", "/version"}),
)
