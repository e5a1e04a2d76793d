"""Triton Inference Server with TensorRT-LLM's backend: the generate extension, and metrics on a port of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from services.engine.answers import Ended, Envelope, TextFrames, compact
from services.engine.faces import openai
from services.engine.faces.exposing import as_triton
from services.engine.faces.face import Endpoint, Face, Routes
from services.engine.faces.shows import by_label, each, takes
from services.engine.faults import BUSY, RequestFault, bad_value, bare_body
from services.engine.http import Connection, Request
from services.engine.metric_families import Feed, Show, Shows
from services.engine.requests import CompletionBody, completion_job, parse

if TYPE_CHECKING:
    from services.engine.service import Service

MODEL_VERSION = "1"
_US = 1e6
_MS = 1e3

SHOWS: Shows = {
    "nv_inference_request_success": takes("finished"),
    "nv_inference_request_failure": Show(
        (
            Feed("cancelled", ("CANCELED",)),
            Feed("refused", ("REJECTED",)),
            Feed("failed", ("BACKEND",)),
            Feed("turned_away", ("OTHER",)),
        ),
        each("CANCELED", "OTHER", "BACKEND", "REJECTED"),
    ),
    "nv_inference_count": takes("finished"),
    "nv_inference_exec_count": takes("finished"),
    "nv_inference_request_duration_us": takes("e2e_s", scale=_US),
    "nv_inference_queue_duration_us": takes("queue_s", scale=_US),
    "nv_inference_compute_input_duration_us": Show(),
    "nv_inference_compute_infer_duration_us": takes("inference_s", scale=_US),
    "nv_inference_compute_output_duration_us": Show(),
    "nv_inference_pending_request_count": takes("waiting"),
    "nv_inference_first_response_histogram_ms": takes("ttft_s", scale=_MS),
    "nv_trt_llm_request_metrics": by_label(
        active="running", max="max_sequences", scheduled="running", context="prefilling", waiting="waiting"
    ),
    "nv_trt_llm_kv_cache_block_metrics": by_label(
        max="kv_blocks", free="kv_free_blocks", used="kv_used_blocks", tokens_per="block_tokens",
        reused="kv_reused_blocks", fraction="kv_usage",
    ),
    "nv_trt_llm_inflight_batcher_metrics": by_label(
        total_context_tokens="context_tokens", generation_requests="decoding", paused_requests="paused"
    ),
    "nv_trt_llm_general_metrics": by_label(timestamp="now_s", iteration_counter="iterations"),
    "nv_llm_input_token_len": takes("answer_prompt_tokens", "total_input_tokens"),
    "nv_llm_output_token_len": takes("answer_tokens", "total_output_tokens"),
}  # fmt: skip


class GenerateBody(msgspec.Struct, kw_only=True):
    """Tensors of TensorRT-LLM's models that are read; others are taken and ignored."""

    text_input: str
    max_tokens: int
    min_tokens: int | None = None
    stop_words: str | list[str] | None = None
    random_seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None


class GenerateWire:
    """One JSON object a token, without finish reason, usage or terminator."""

    terminator = b""

    def answer_id(self, unique: str, *, chat: bool) -> str:  # noqa: ARG002
        """Answers have no name."""
        return unique

    def frames(self, envelope: Envelope, index: int) -> TextFrames:  # noqa: ARG002
        """See `Wire`."""
        return TextFrames(envelope, f'data: {_opening(envelope)}"', lambda finish, stop: '"', lambda usage, closes: "")  # noqa: ARG005

    def role_frame(self, envelope: Envelope, index: int) -> bytes:  # noqa: ARG002
        """There are no roles."""
        return b""

    def usage_frame(self, envelope: Envelope, prompt_tokens: int, completion_tokens: int) -> bytes:  # noqa: ARG002
        """There is no usage."""
        return b""

    def whole(self, envelope: Envelope, choices: list[Ended], prompt_tokens: int) -> bytes:  # noqa: ARG002
        """See `Wire`."""
        return f"{_opening(envelope)}{json.dumps(choices[0].text)}}}".encode()


def _opening(envelope: Envelope) -> str:
    return f'{{"model_name":{json.dumps(envelope.model)},"model_version":"{MODEL_VERSION}","text_output":'


WIRE = GenerateWire()


def _generate(*, stream: bool) -> Endpoint:
    def endpoint(service: Service, connection: Connection, request: Request) -> None:
        body = parse(request.body, GenerateBody)
        if body.max_tokens < 1:
            raise bad_value("max_tokens", "must be at least 1", body.max_tokens)
        asked = CompletionBody(
            prompt=body.text_input, max_tokens=body.max_tokens, min_tokens=body.min_tokens or 0, seed=body.random_seed,
            stop=body.stop_words, temperature=body.temperature, top_p=body.top_p, stream=stream,
        )  # fmt: skip
        service.generate(connection, request, completion_job(asked, service.identity.max_model_len))

    return endpoint


def _says(body: dict[str, Any] | list[Any]) -> Endpoint:
    data = compact(body).encode()

    def endpoint(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
        connection.respond(200, data)

    return endpoint


def _not_found(path: str) -> RequestFault:
    parts = path.split("/")
    if path.startswith("/v2/models/") and len(parts) > 3:
        return RequestFault(404, f"Request for unknown model: '{parts[3][:200]}' is not found")
    return RequestFault(404, "Not Found")


def _tensor(name: str, kind: str, *dims: int) -> dict[str, Any]:
    return {"name": name, "data_type": kind, "dims": list(dims)}


def _routes(version: str, model: str) -> Routes:
    inputs = [_tensor("text_input", "TYPE_STRING", 1), _tensor("max_tokens", "TYPE_INT32", 1)]
    outputs = [_tensor("text_output", "TYPE_STRING", -1)]
    config = {
        "name": model,
        "backend": "tensorrtllm",
        "input": inputs,
        "output": outputs,
        "model_transaction_policy": {"decoupled": True},
    }
    metadata = {
        "name": model,
        "versions": [MODEL_VERSION],
        "platform": "tensorrtllm",
        "inputs": [_as_metadata(tensor) for tensor in inputs],
        "outputs": [_as_metadata(tensor) for tensor in outputs],
    }
    server = {
        "name": "triton",
        "version": version,
        "extensions": ["model_repository", "model_configuration", "generate"],
    }
    index = [{"name": model, "version": MODEL_VERSION, "state": "READY", "reason": ""}]
    of_model: Routes = {
        "": {"GET": _says(metadata)},
        "/ready": {"GET": openai.empty},
        "/config": {"GET": _says(config)},
        "/generate": {"POST": _generate(stream=False)},
        "/generate_stream": {"POST": _generate(stream=True)},
    }
    beginnings = f"/v2/models/{model}", f"/v2/models/{model}/versions/{MODEL_VERSION}"
    return {
        "/v2": {"GET": _says(server)},
        "/v2/health/live": {"GET": openai.empty},
        "/v2/health/ready": {"GET": openai.empty},
        "/v2/repository/index": {"POST": _says(index)},
        **{beginning + path: methods for beginning in beginnings for path, methods in of_model.items()},
    }


def _as_metadata(tensor: dict[str, Any]) -> dict[str, Any]:
    kind = tensor["data_type"].removeprefix("TYPE_").replace("STRING", "BYTES")
    return {"name": tensor["name"], "datatype": kind, "shape": tensor["dims"]}


def _metrics_routes(version: str, model: str) -> Routes:  # noqa: ARG001
    return {"/metrics": {"GET": openai.metrics}}


FACE = Face(
    name="triton",
    version="2.51.0",
    shows=SHOWS,
    labels={"model": "{model}", "version": MODEL_VERSION},
    wire=WIRE,
    fault_body=lambda version: bare_body,  # noqa: ARG005
    routes=_routes,
    expose=as_triton,
    uncounted=frozenset({"/metrics"}),
    guarded=("/v2/models/",),
    not_found=_not_found,
    busy=dict.fromkeys(BUSY, "Exceeds maximum queue size"),
    metrics_port=8002,
    metrics_routes=_metrics_routes,
)
