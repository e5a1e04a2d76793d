"""What stands behind the target's address: reachable, allowed, which models, which engine, how long a prompt."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from typing import Any

from cliffwatch.errors import InputError, UnreachableError, shorten
from cliffwatch.records.schema import Outcome
from cliffwatch.stream.http_error import classify_http
from loadgen.answer import BodySink
from loadgen.connection import Timeouts, Transfer
from loadgen.origin import TOKEN_VARIABLES, Origin
from loadgen.transport import Transport, request_bytes

MODELS_PATH = "/v1/models"
_PROBE_TIMEOUTS = Timeouts(connect_s=10.0, first_token_s=60.0, stall_s=60.0, total_s=60.0)
_MAX_ANSWER_BYTES = 16 << 20
_SHOWN_MODELS = 8

# `owned_by` in /v1/models, where engines leave their name
_ENGINES = {"vllm": "vllm", "llamacpp": "llama.cpp", "sglang": "sglang", "tensorrt_llm": "tensorrt-llm"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a probe."""

    status: int
    kind: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def said(self) -> str:
        """The error or page in a line."""
        return classify_http(self.status, self.kind, self.body)[1]


class Probe:
    """Asks a server single questions, before and outside the load."""

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None, token: str | None) -> None:
        self.origin = origin
        self._token = token
        self._transport = Transport(origin, tls, _PROBE_TIMEOUTS)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Raises UnreachableError when no answer came; any HTTP status is an answer."""
        data = b"" if body is None else json.dumps(body).encode()
        sink = BodySink(_MAX_ANSWER_BYTES)
        transfer = self._transport.send(request_bytes(self.origin, method, path, data, token=self._token), sink)
        if transfer.outcome is not None or not sink.status:
            raise UnreachableError(_why(transfer), file=self.origin.url(path))
        return Answer(sink.status, sink.headers.get("content-type", ""), sink.headers, bytes(sink.data))

    def close(self) -> None:
        self._transport.close()


def _why(transfer: Transfer) -> str:
    text = transfer.message or "the connection was closed before an answer"
    if transfer.outcome is Outcome.TLS:
        return f"{text} (--ca-file FILE trusts an authority of your own)"
    if transfer.outcome is Outcome.TIMEOUT_FIRST_TOKEN:
        return f"no answer within {_PROBE_TIMEOUTS.first_token_s:g} s"
    return text


@dataclass(frozen=True, slots=True)
class Target:
    """What the probes found. `limit_tokens` is the longest prompt and answer together, None where unknown."""

    model: str
    engine: str | None
    limit_tokens: int | None
    notes: tuple[str, ...] = ()


def inspect_target(probe: Probe, wanted_model: str | None) -> Target:
    """Look at the target before any load is sent.

    Raises:
        UnreachableError: nothing answers there, TLS cannot be verified, or the server is not ready.
        InputError: it answers, but not as an inference server at this path, not to this token, or not with this model.
    """
    answer = probe.ask("GET", MODELS_PATH)
    url = probe.origin.url(MODELS_PATH)
    if answer.status in {401, 403}:
        allowed = f"a token in {TOKEN_VARIABLES[0]} or --token-file that the server knows"
        raise InputError(f"the server refuses access: {answer.said}", file=url, allowed=allowed)
    if answer.status >= 500 or answer.status == 429:
        raise UnreachableError(f"the server is not ready: {answer.said}", file=url)
    if answer.status != 200:
        return _without_list(answer, url, wanted_model)
    models = _models(answer, url)
    model = _choose(models, wanted_model, url)
    engine = _engine(probe, models.get(model), answer)
    return Target(model=model, engine=engine, limit_tokens=_limit(probe, engine, models.get(model, {})))


def _without_list(answer: Answer, url: str, wanted_model: str | None) -> Target:
    if 300 <= answer.status < 400:
        moved = shorten(answer.headers.get("location", "another address"))
        raise InputError(f"redirects to {moved}", file=url, allowed="the final address as --target")
    if answer.status not in {404, 405, 501}:
        raise InputError(f"is no list of models: {answer.said}", file=url)
    if wanted_model is None:
        allowed = "a --target that serves /v1 below it, or --model NAME for a server that lists no models"
        raise InputError(f"tried GET, got {answer.said}", file=url, allowed=allowed)
    note = f"GET {url} gave HTTP {answer.status}: the model's name and limits could not be checked"
    return Target(model=wanted_model, engine=None, limit_tokens=None, notes=(note,))


def _models(answer: Answer, url: str) -> dict[str, dict[str, Any]]:
    body = answer.json()
    listed = body.get("data") if isinstance(body, dict) else None
    if not isinstance(listed, list):
        if body is None:
            raise InputError(f"answers with something that is not JSON: {answer.said}", file=url)
        raise InputError("is no list of models", file=url, value=body, allowed='JSON with a list "data"')
    models = {item["id"]: item for item in listed if isinstance(item, dict) and isinstance(item.get("id"), str)}
    if not models:
        raise InputError("names no model", file=url, value=body)
    return models


def _choose(models: dict[str, dict[str, Any]], wanted: str | None, url: str) -> str:
    if wanted is None:
        return next(iter(models))
    if wanted not in models:
        more = f", and {len(models) - _SHOWN_MODELS} more" if len(models) > _SHOWN_MODELS else ""
        known = ", ".join(list(models)[:_SHOWN_MODELS]) + more
        raise InputError("the server has no such model", file=url, field="--model", value=wanted, allowed=known)
    return wanted


def _engine(probe: Probe, model: dict[str, Any] | None, answer: Answer) -> str | None:
    """The engine's name, with its version where one question tells it."""
    name = _ENGINES.get(str((model or {}).get("owned_by", "")).lower())
    if name is None and "llama.cpp" in answer.headers.get("server", "").lower():
        name = "llama.cpp"
    if name == "vllm":
        version = probe.ask("GET", "/version").json()
        if isinstance(version, dict) and isinstance(version.get("version"), str):
            return f"vllm {version['version'][:40]}"
    return name


def _limit(probe: Probe, engine: str | None, model: dict[str, Any]) -> int | None:
    if isinstance(length := model.get("max_model_len"), int) and length > 0:
        return length
    if engine == "llama.cpp":
        properties = probe.ask("GET", "/props").json()
        settings = properties.get("default_generation_settings") if isinstance(properties, dict) else None
        context = settings.get("n_ctx") if isinstance(settings, dict) else None
        if isinstance(context, int) and context > 0:
            return context
    return None
