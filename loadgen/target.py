"""What stands behind the target's address: reachable, allowed, which models, which engine, how long a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cliffwatch.errors import InputError, UnreachableError, shorten
from cliffwatch.workload.spec import Workload
from loadgen.identity import TOKEN_VARIABLES
from loadgen.probe import Answer, Probe
from loadgen.triton import list_triton

__all__ = ["Answer", "Probe", "Target", "inspect_target"]

MODELS_PATH = "/v1/models"
_SHOWN_MODELS = 8

# `owned_by` in /v1/models, where engines leave their name
_ENGINES = {"vllm": "vllm", "llamacpp": "llama.cpp", "sglang": "sglang", "tensorrt_llm": "tensorrt-llm"}
# Where an engine says its version under `version`.
_VERSION_PATHS = {"vllm": "/version", "tensorrt-llm": "/version"}


@dataclass(frozen=True, slots=True)
class Target:
    """What the probes found.

    `limits` has, of each model of the run, the longest prompt and answer together, None where unknown; the first is
    the one that requests without a model of their own ask for.
    """

    limits: dict[str, int | None]
    engine: str | None
    notes: tuple[str, ...] = ()
    families: dict[str, str] | None = None  # model: the one whose tokenizer it has, where the server says so

    @property
    def model(self) -> str:
        return next(iter(self.limits))


def inspect_target(probe: Probe, workload: Workload) -> Target:
    """Look at the target before any load is sent.

    Raises:
        UnreachableError: nothing answers there, TLS cannot be verified, or the server is not ready.
        InputError: it answers, but not as an inference server at this path, not to this token, or not with these
            models.
    """
    named = workload.models or ()
    wanted = tuple(entry.name for entry in named) or ((workload.model,) if workload.model is not None else ())
    target = _LISTS.get(workload.endpoint, _inspect_openai)(probe, wanted)
    only = _ONLY.get(workload.endpoint)
    if only is not None and target.engine is not None and not target.engine.startswith(only):
        raise InputError(
            f"is {target.engine}", file=probe.origin.url(), field="--endpoint", value=workload.endpoint,
            allowed=f"it with {only} only",
        )  # fmt: skip
    return target


def _refuse_status(answer: Answer, url: str) -> None:
    """Raise what an answer to a first question means if it is none that a serving server gives to a known client."""
    if answer.status in {401, 403}:
        allowed = f"a token in {TOKEN_VARIABLES[0]} or --token-file that the server knows, or --basic-auth-file"
        raise InputError(f"the server refuses access: {answer.said}", file=url, allowed=allowed)
    if answer.status == 407:
        allowed = "HTTP_PROXY with USER:PASSWORD@, or NO_PROXY with the target's name"
        raise InputError(f"the proxy refuses access: {answer.said}", file=url, allowed=allowed)
    if answer.status >= 500 or answer.status == 429:
        raise UnreachableError(f"the server is not ready: {answer.said}", file=url)
    if 300 <= answer.status < 400:
        moved = shorten(answer.headers.get("location", "another address"))
        raise InputError(f"redirects to {moved}", file=url, allowed="the final address as --target")


def _choose(served: Iterable[str], wanted: tuple[str, ...], url: str) -> tuple[str, ...]:
    """The wanted models, if all are served, or else the first that is. Raises InputError naming what is not."""
    known = list(served)
    missing = [name for name in wanted if name not in known]
    if missing:
        more = f", and {len(known) - _SHOWN_MODELS} more" if len(known) > _SHOWN_MODELS else ""
        field = "models" if len(wanted) > 1 else "--model"
        message = "the server has no such model" if len(missing) == 1 else "the server has none of these models"
        raise InputError(
            message, file=url, field=field, value=", ".join(missing), allowed=", ".join(known[:_SHOWN_MODELS]) + more
        )
    return wanted or (known[0],)


def _inspect_openai(probe: Probe, wanted: tuple[str, ...]) -> Target:
    answer = probe.ask("GET", MODELS_PATH)
    url = probe.origin.url(MODELS_PATH)
    _refuse_status(answer, url)
    if answer.status != 200:
        return _without_list(answer, url, wanted)
    models = _models(answer, url)
    chosen = _choose(models, wanted, url)
    engine = _engine(models[chosen[0]], answer)
    context = _context(probe, engine)
    return Target(
        limits={name: _limit(models, name) or context for name in chosen},
        engine=_with_version(probe, engine),
        families={name: str(models[name].get("parent") or name) for name in chosen},
    )


def _inspect_triton(probe: Probe, wanted: tuple[str, ...]) -> Target:
    ready = probe.ask("GET", "/v2/health/ready")
    url = probe.origin.url("/v2/health/ready")
    _refuse_status(ready, url)
    if ready.status in {404, 405}:
        raise InputError("is no Triton server's", file=url, allowed="another --endpoint, or Triton's address")
    if ready.status != 200:
        raise UnreachableError(f"the server is not ready: {ready.said}", file=url)
    served, url = list_triton(probe, wanted)
    chosen = _choose(served, wanted, url)
    return Target(dict.fromkeys(chosen), _triton_name(probe), (_NO_LIMIT,))


def _triton_name(probe: Probe) -> str:
    found = probe.ask("GET", "/v2").json()
    version = found.get("version") if isinstance(found, dict) else None
    return f"triton {version[:40]}" if isinstance(version, str) else "triton"


_NO_LIMIT = "Triton does not say how long a prompt and answer its model takes: lengths were not checked against it"
# Endpoints that one engine alone has.
_ONLY = {"llamacpp": "llama.cpp"}
# How the models of a target are found out, by endpoint; the others serve OpenAI's list.
_LISTS: dict[str, Callable[[Probe, tuple[str, ...]], Target]] = {"triton": _inspect_triton}


def _without_list(answer: Answer, url: str, wanted: tuple[str, ...]) -> Target:
    if answer.status not in {404, 405, 501}:
        raise InputError(f"is no list of models: {answer.said}", file=url)
    if not wanted:
        allowed = "a --target that serves /v1 below it, or --model NAME for a server that lists no models"
        raise InputError(f"tried GET, got {answer.said}", file=url, allowed=allowed)
    note = f"GET {url} gave HTTP {answer.status}: the models' names and limits could not be checked"
    return Target(dict.fromkeys(wanted), None, (note,))


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


def _engine(model: dict[str, Any], answer: Answer) -> str | None:
    name = _ENGINES.get(str(model.get("owned_by", "")).lower())
    if name is None and "llama.cpp" in answer.headers.get("server", "").lower():
        name = "llama.cpp"
    return name


def _with_version(probe: Probe, engine: str | None) -> str | None:
    """The engine's name, with its version where one question tells it."""
    if engine is None or engine not in _VERSION_PATHS:
        return engine
    found = probe.ask("GET", _VERSION_PATHS[engine]).json()
    version = found.get("version") if isinstance(found, dict) else None
    return f"{engine} {version[:40]}" if isinstance(version, str) else engine


def _limit(models: dict[str, dict[str, Any]], name: str) -> int | None:
    """`max_model_len` of a model or, for an adapter, of the model under it."""
    for model in (models[name], models.get(str(models[name].get("parent")), {})):
        if isinstance(length := model.get("max_model_len"), int) and length > 0:
            return length
    return None


def _context(probe: Probe, engine: str | None) -> int | None:
    """The context of a slot of llama.cpp."""
    if engine != "llama.cpp":
        return None
    properties = probe.ask("GET", "/props").json()
    settings = properties.get("default_generation_settings") if isinstance(properties, dict) else None
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    return context if isinstance(context, int) and context > 0 else None
