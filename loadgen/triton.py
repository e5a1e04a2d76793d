"""What a Triton server says of its models: which are ready, and which of them turn text into text."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from cliffwatch.errors import InputError
from loadgen.probe import Probe

INDEX_PATH = "/v2/repository/index"
_INPUT, _OUTPUT = "text_input", "text_output"


def list_triton(probe: Probe, wanted: tuple[str, ...]) -> tuple[list[str], str]:
    """The ready models that take and give text, and the address that told so.

    Raises InputError where none is, or where none of several is asked for by name: the parts of one pipeline often
    stand beside it, and which of them a person means is not for us to guess.
    """
    url = probe.origin.url(INDEX_PATH)
    if wanted and all(_takes_text(_config(probe, name)) for name in wanted):
        return list(wanted), url  # a server may keep its index to itself
    ready = _ready(probe)
    texts = [name for name in ready if _takes_text(_config(probe, name))]
    if not texts:
        shown = ", ".join(ready[:8]) or "none is ready"
        allowed = f"a model with an input {_INPUT} and an output {_OUTPUT}, or another --endpoint"
        raise InputError("has no model for text", file=url, value=shown, allowed=allowed)
    if len(texts) > 1 and not wanted:
        raise InputError("has several models for text", file=url, field="--model", allowed=", ".join(texts[:8]))
    return texts, url


def _ready(probe: Probe) -> list[str]:
    answer = probe.ask("POST", INDEX_PATH, {})
    listed = answer.json() if answer.status == 200 else None
    if not isinstance(listed, list):
        url = probe.origin.url(INDEX_PATH)
        raise InputError(f"is no list of models: {answer.said}", file=url, allowed="--model NAME, or a Triton server")
    models = [item for item in listed if isinstance(item, dict) and isinstance(item.get("name"), str)]
    return list(dict.fromkeys(model["name"] for model in models if model.get("state") == "READY"))


def _config(probe: Probe, model: str) -> dict[str, Any]:
    answer = probe.ask("GET", f"/v2/models/{quote(model, safe='')}/config")
    config = answer.json() if answer.status == 200 else None
    return config if isinstance(config, dict) else {}


def _takes_text(config: dict[str, Any]) -> bool:
    return _INPUT in _tensors(config, "input") and _OUTPUT in _tensors(config, "output")


def _tensors(config: dict[str, Any], kind: str) -> set[str]:
    listed = config.get(kind)
    return (
        {str(tensor.get("name")) for tensor in listed if isinstance(tensor, dict)}
        if isinstance(listed, list)
        else set()
    )
