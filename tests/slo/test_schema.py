"""The JSON Schema of SLO files: what it knows, and that every file of the project fits it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.slo.schema import slo_schema
from cliffwatch.slo.spec import presets

SCHEMA = slo_schema()
DOCS = Path(__file__).parents[2] / "docs"
TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value has the types, keys and choices of a schema (of the keywords that this one uses for them)."""
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if not all(key in value for key in schema.get("required", ())):
        return False
    if "anyOf" in schema and not any(fits(value, one) for one in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(value is None if kind == "null" else isinstance(value, TYPES[kind]) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return all(key in known and fits(item, known[key]) for key, item in value.items())
    return True


def examples() -> list[Any]:
    """SLO files as the documentation shows them, and their parts within a whole file."""
    found = []
    for page in ("slo.md", "judgement.md"):
        for block in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
            document = yaml.safe_load(block)
            if isinstance(document, dict) and {"objectives", "watch"} & set(document):
                found.append({"name": "a", "objectives": [{"sli": "availability", "target": "99%"}], **document})
    return found


@pytest.mark.parametrize("name", sorted(presets()))
def test_presets_fit(name: str) -> None:
    assert fits(yaml.safe_load(presets()[name].read_text(encoding="utf-8")), SCHEMA)


def test_the_documentations_examples_fit() -> None:
    found = examples()
    assert len(found) >= 4
    for one in found:
        assert fits(one, SCHEMA), one


@pytest.mark.parametrize(
    "objective",
    [
        {"sli": "speed", "target": 0.9},
        {"sli": "ttft", "threshold": "2s"},
        {"sli": "ttft", "threshold": ["2s"], "target": 0.9},
        {"sli": "ttft", "threshold": "2s", "target": 0.9, "percentile": 95},
        {"sli": "ttft", "threshold": "2s", "target": 0.9, "slices": {"lenght": "5m"}},
    ],
)
def test_what_is_no_objective_does_not_fit(objective: dict[str, Any]) -> None:
    assert not fits({"name": "a", "objectives": [objective]}, SCHEMA)


def test_attributes_are_described() -> None:
    watch = SCHEMA["$defs"]["Watch"]
    assert "Attributes" not in watch["description"]
    assert watch["properties"]["match"]["description"].startswith("labels that the series must have")
