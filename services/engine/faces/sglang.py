"""SGLang's server: OpenAI's API, its own `/generate`, and metrics whose names lose their colons for Prometheus 2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from services.engine.answers import Ended, Envelope, OpenAiWire, token_counts
from services.engine.faces import openai
from services.engine.faces.exposing import as_accepted
from services.engine.faces.face import Face, Routes
from services.engine.faces.sglang_generate import generate, health_generate
from services.engine.faces.shows import takes
from services.engine.faults import BUSY, flat_body
from services.engine.http import Connection, Request
from services.engine.metric_families import Feed, Show, Shows
from services.engine.tokenizer import BLOCK_TOKENS

if TYPE_CHECKING:
    from services.engine.service import Service

_FRONT = ("model_name", "engine_type")  # what the tokenizer's side counts has no rank


def _front(show: Show) -> Show:
    return replace(show, base=_FRONT)


_COUNTED = ("{handler}", "{method}")
SHOWS: Shows = {
    "sglang:time_to_first_token_seconds": _front(takes("ttft_s", "{streaming}")),
    "sglang:inter_token_latency_seconds": _front(takes("itl_s")),
    "sglang:request_time_per_output_token_seconds": _front(takes("tpot_s", "{streaming}", zeros=False)),
    "sglang:e2e_request_latency_seconds": _front(takes("e2e_s", "{streaming}")),
    "sglang:queue_time_seconds": takes("queue_s"),
    "sglang:per_stage_req_latency_seconds": takes("prefill_s", "prefill_forward"),
    "sglang:prompt_tokens_histogram": _front(takes("answer_prompt_tokens")),
    "sglang:uncached_prompt_tokens_histogram": _front(takes("answer_computed_tokens")),
    "sglang:generation_tokens_histogram": _front(takes("answer_tokens")),
    "sglang:num_requests_total": _front(takes("finished", "{streaming}")),
    "sglang:num_aborted_requests_total": _front(takes("cancelled")),
    "sglang:num_retracted_requests_total": takes("preemptions"),
    "sglang:prompt_tokens_total": _front(takes("answer_prompt_tokens", "{streaming}")),
    "sglang:generation_tokens_total": _front(takes("answer_tokens", "{streaming}")),
    "sglang:cached_tokens_total": _front(takes("answer_cached_tokens", "device", zeros=False)),
    "sglang:realtime_tokens_total": Show(
        (
            Feed("computed_tokens", ("prefill_compute",)),
            Feed("cached_tokens", ("prefill_cache",)),
            Feed("generated_tokens", ("decode",)),
        )
    ),
    "sglang:num_running_reqs": takes("running"),
    "sglang:num_queue_reqs": takes("waiting"),
    "sglang:token_usage": takes("kv_usage"),
    "sglang:num_used_tokens": takes("kv_used_tokens"),
    "sglang:max_total_num_tokens": takes("kv_tokens"),
    "sglang:page_size": takes("block_tokens"),
    "sglang:num_pages": takes("kv_blocks"),
    "sglang:cache_hit_rate": takes("hit_rate"),
    "sglang:gen_throughput": takes("tokens_per_s"),
    "sglang:http_requests_total": takes("http_started", *_COUNTED),
    "sglang:http_responses_total": takes("http_ended", *_COUNTED, "{status}"),
}


def _tail(chat: bool, finish_reason: str, stop_reason: str) -> str:
    end = f'"logprobs":null,"finish_reason":{finish_reason},"matched_stop":{stop_reason}}}'
    return f'"}},{end}' if chat else f'",{end}'


def _apart(index: int, finish_reason: str, stop_reason: str) -> str:
    return (
        f'{{"index":{index},"delta":{{"reasoning_content":null}},"logprobs":null,'
        f'"finish_reason":{finish_reason},"matched_stop":{stop_reason}}}'
    )


def _usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {
        **token_counts(prompt_tokens, completion_tokens),
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
        "completion_tokens_details": None,
    }


def _choice(chat: bool, ended: Ended) -> dict[str, Any]:
    text = {"message": {"role": "assistant", "content": ended.text, "reasoning_content": None}}
    ending = {"logprobs": None, "finish_reason": ended.finish_reason, "matched_stop": ended.stop_reason}
    return {"index": ended.index, **(text if chat else {"text": ended.text}), **ending}


def _body(envelope: Envelope, usage: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    return {"usage": usage, "metadata": {"weight_version": "default"}}


WIRE = OpenAiWire(
    prefixes=("", ""),
    chat_delta='{"reasoning_content":null,"content":"',
    tails=_tail,
    role_choice=(
        '{"index":{index},"delta":{"reasoning_content":null,"role":"assistant","content":""},'
        '"logprobs":null,"finish_reason":null,"matched_stop":null}'
    ),
    role_extras="",
    no_usage=(',"usage":null', ""),
    usage=_usage,
    closing=lambda fingerprint: "",  # noqa: ARG005
    choice=_choice,
    body=_body,
    apart=_apart,
)


def _model_info(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    model = service.identity.model
    info = {"model_path": model, "tokenizer_path": model, "is_generation": True, "weight_version": "default"}
    connection.respond(200, msgspec.json.encode(info))


def _server_info(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    scheduler = service.engine.scheduler
    info = {
        "model_path": service.identity.model,
        "served_model_name": service.identity.model,
        "context_length": service.identity.max_model_len,
        "max_running_requests": scheduler.limits.max_sequences,
        "max_total_num_tokens": scheduler.kv.capacity_blocks * BLOCK_TOKENS,
        "page_size": BLOCK_TOKENS,
        "disable_radix_cache": not scheduler.kv.sharing,
        "version": service.identity.version,
    }
    connection.respond(200, msgspec.json.encode(info))


def _routes(version: str, model: str) -> Routes:  # noqa: ARG001
    return {
        "/v1/completions": {"POST": openai.completions},
        "/v1/chat/completions": {"POST": openai.chat},
        "/v1/models": {"GET": openai.models("sglang", {"parent": None})},
        "/generate": {"POST": generate, "PUT": generate},
        "/tokenize": {"POST": openai.tokenize},
        "/metrics": {"GET": openai.metrics},
        "/metrics/": {"GET": openai.metrics},
        "/health": {"GET": openai.empty},
        "/health_generate": {"GET": health_generate},
        "/get_model_info": {"GET": _model_info},
        "/model_info": {"GET": _model_info},
        "/get_server_info": {"GET": _server_info},
        "/server_info": {"GET": _server_info},
    }


FACE = Face(
    name="sglang",
    version="0.5.23",
    shows=SHOWS,
    labels={
        "model_name": "{model}", "engine_type": "unified", "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0",
    },
    wire=WIRE,
    fault_body=lambda version: flat_body,  # noqa: ARG005
    routes=_routes,
    expose=as_accepted,
    late=True,
    guarded=("/v1/", "/generate"),
    any_model=True,
    busy=dict.fromkeys(BUSY, "The request queue is full."),
)  # fmt: skip
