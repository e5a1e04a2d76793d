"""The SLO file as a JSON Schema, for editors: made from the models that read it."""

from __future__ import annotations

import re
from typing import Any

from cliffwatch.slo.spec import SloFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILE_NAME = "slo.schema.json"
HINT = f"# yaml-language-server: $schema={FILE_NAME}\n"
_ATTRIBUTE = re.compile(r"^ {4}([a-z_, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_QUANTILE = {
    "anyOf": [{"type": "string", "pattern": "^[pP]?[0-9.]+ ?%?$"}, {"type": "number"}],
    "description": "Such as p95: the same as target: 95%; with slices, the share that each slice must hold.",
}


def slo_schema() -> dict[str, Any]:
    """JSON Schema of an SLO file. An editor knows keys, types and choices by it; reading a file checks more."""
    schema = SloFile.model_json_schema(mode="validation")
    for model in (schema, *schema["$defs"].values()):
        _describe(model)
    objective, slices = schema["$defs"]["Objective"], schema["$defs"]["Slices"]
    objective["properties"]["quantile"] = _QUANTILE
    objective["required"].remove("target")
    objective["anyOf"] = [{"required": ["target"]}, {"required": ["quantile"]}]
    schema["$defs"]["Slices"] = {"anyOf": [slices, {"type": ["number", "string"], "description": "Their length."}]}
    return {"$schema": DIALECT, **schema}


def _describe(model: dict[str, Any]) -> None:
    """Move what a model's docstring says of its attributes to them."""
    text, _, attributes = model.get("description", "").partition("\n\nAttributes:\n")
    if text:
        model["description"] = " ".join(text.split())
    for names, meaning in _ATTRIBUTE.findall(attributes):
        for name in names.split(", "):
            if name in model.get("properties", {}):
                model["properties"][name]["description"] = " ".join(meaning.split())
