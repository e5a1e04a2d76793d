"""TensorRT-LLM's `trtllm-serve`: OpenAI's API, iteration statistics as JSON, Prometheus text at a path of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from services.engine.answers import Ended, Envelope, OpenAiWire, token_counts
from services.engine.faces import openai
from services.engine.faces.exposing import as_accepted
from services.engine.faces.face import Face, Routes
from services.engine.faces.shows import takes
from services.engine.faults import flat_body
from services.engine.http import Connection, Request
from services.engine.metric_families import Shows
from services.engine.observing import StepNote
from services.engine.tokenizer import BLOCK_TOKENS

if TYPE_CHECKING:
    from services.engine.service import Service

# Values of 0 are skipped, in its own code too: histograms of the same requests differ in their counts.
_LATENCIES: Shows = {
    "time_to_first_token_seconds": takes("ttft_s", zeros=False),
    "time_per_output_token_seconds": takes("tpot_s", zeros=False),
    "e2e_request_latency_seconds": takes("e2e_s", zeros=False),
    "request_queue_time_seconds": takes("queue_s", zeros=False),
    "request_success_total": takes("finished", "{reason}"),
}
SHOWS: Shows = {
    **_LATENCIES,
    **{f"trtllm_{name}": show for name, show in _LATENCIES.items()},
    "trtllm_request_prefill_time_seconds": takes("prefill_s", zeros=False),
    "trtllm_request_decode_time_seconds": takes("decode_s", zeros=False),
    "trtllm_request_inference_time_seconds": takes("inference_s", zeros=False),
    "trtllm_request_error_total": takes("http_failed", "{status}"),
    "trtllm_prompt_tokens_total": takes("answer_prompt_tokens"),
    "trtllm_generation_tokens_total": takes("answer_tokens"),
    "trtllm_prompt_cached_tokens_total": takes("answer_cached_tokens"),
    "trtllm_num_requests_completed_total": takes("finished"),
    "trtllm_kv_cache_reused_blocks_total": takes("reused_blocks"),
    "trtllm_kv_cache_missed_blocks_total": takes("missed_blocks"),
    "trtllm_num_requests_running": takes("running"),
    "trtllm_num_requests_waiting": takes("waiting"),
    "trtllm_kv_cache_utilization": takes("kv_usage"),
    "trtllm_kv_cache_hit_rate": takes("life_hit_rate"),
    "trtllm_num_paused_requests": takes("paused"),
    "trtllm_num_context_requests": takes("prefilling"),
    "trtllm_num_generation_requests": takes("decoding"),
    "trtllm_num_scheduled_requests": takes("running"),
    "trtllm_total_context_tokens": takes("context_tokens"),
    "trtllm_iteration_latency_seconds": takes("iteration_s"),
    "trtllm_max_batch_size_runtime": takes("max_sequences"),
    "trtllm_kv_cache_max_blocks": takes("kv_blocks"),
    "trtllm_kv_cache_free_blocks": takes("kv_free_blocks"),
    "trtllm_kv_cache_used_blocks": takes("kv_used_blocks"),
    "trtllm_kv_cache_tokens_per_block": takes("block_tokens"),
}


def _tail(chat: bool, finish_reason: str, stop_reason: str) -> str:
    if chat:
        return f'"}},"logprobs":null,"finish_reason":{finish_reason},"stop_reason":{stop_reason}}}'
    return (
        f'","token_ids":null,"logprobs":null,"finish_reason":{finish_reason},"stop_reason":{stop_reason},'
        '"avg_decoded_tokens_per_iter":null}'
    )


def _usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {
        **token_counts(prompt_tokens, completion_tokens),
        "prompt_tokens_details": None,
    }


def _choice(chat: bool, ended: Ended) -> dict[str, Any]:
    ending = {
        "logprobs": None,
        "finish_reason": ended.finish_reason,
        "stop_reason": ended.stop_reason,
        "disaggregated_params": None,
        "avg_decoded_tokens_per_iter": None,
    }
    if not chat:
        return {"index": ended.index, "text": ended.text, "token_ids": None, "context_logits": None, **ending}
    message: dict[str, Any] = {
        "role": "assistant", "content": ended.text, "reasoning_content": None, "reasoning": None, "tool_calls": [],
    }  # fmt: skip
    return {"index": ended.index, "message": message, **ending}


def _body(envelope: Envelope, usage: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    return {"usage": usage, "prompt_token_ids": None}


WIRE = OpenAiWire(
    prefixes=("cmpl-", "chatcmpl-"),
    chat_delta='{"content":"',
    tails=_tail,
    role_choice='{"index":{index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    role_extras="",
    no_usage=(',"usage":null', ""),
    usage=_usage,
    closing=lambda fingerprint: "",  # noqa: ARG005
    choice=_choice,
    body=_body,
)


def _iterations(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    """Statistics of the iterations since they were last read; reading takes them away."""
    observer, scheduler = service.engine.observer, service.engine.scheduler
    limits = {
        "maxNumActiveRequests": scheduler.limits.max_sequences,
        "maxBatchSizeStatic": scheduler.limits.max_sequences,
        "maxBatchSizeRuntime": scheduler.limits.max_sequences,
        "maxNumTokensRuntime": scheduler.limits.token_budget,
    }
    notes = [{**_iteration(note, scheduler.kv.capacity_blocks), **limits} for note in observer.take_steps()]
    connection.respond(200, msgspec.json.encode(notes))


def _iteration(note: StepNote, blocks: int) -> dict[str, Any]:
    looked = note.hit_tokens + note.missed_tokens
    return {
        "iter": note.number,
        "iterLatencyMS": note.duration_s * 1e3,
        "numActiveRequests": note.running,
        "numQueuedRequests": note.waiting,
        "kvCacheStats": {
            "maxNumBlocks": blocks,
            "freeNumBlocks": note.free_blocks,
            "usedNumBlocks": blocks - note.free_blocks,
            "tokensPerBlock": BLOCK_TOKENS,
            "reusedBlocks": note.hit_tokens // BLOCK_TOKENS,
            "missedBlocks": -(-note.missed_tokens // BLOCK_TOKENS),
            "cacheHitRate": note.hit_tokens / looked if looked else 0.0,
        },
        "inflightBatchingStats": {
            "numScheduledRequests": note.prompts + note.decoding,
            "numContextRequests": note.prompts,
            "numGenRequests": note.decoding,
            "numPausedRequests": note.preempted,
            "numCtxTokens": note.prompt_tokens,
            "avgNumDecodedTokensPerIter": 1.0 if note.decoding else 0.0,
        },
    }


def _routes(version: str, model: str) -> Routes:  # noqa: ARG001
    return {
        "/v1/completions": {"POST": openai.completions},
        "/v1/chat/completions": {"POST": openai.chat},
        "/v1/models": {"GET": openai.models("tensorrt_llm", with_length=False)},
        "/metrics": {"GET": _iterations},
        "/prometheus/metrics": {"GET": openai.metrics},
        "/version": {"GET": openai.version},
        "/health": {"GET": openai.empty},
    }


FACE = Face(
    name="trtllm",
    version="1.3.0",
    shows=SHOWS,
    labels={"model_name": "{model}", "engine_type": "undefined"},
    wire=WIRE,
    fault_body=lambda version: flat_body,  # noqa: ARG005
    routes=_routes,
    expose=as_accepted,
    any_model=True,
)
