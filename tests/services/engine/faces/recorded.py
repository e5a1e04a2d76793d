"""Recorded expositions and streams, and what two of them have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


def parse(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def edges(family: Metric) -> list[float]:
    first = next(sample.labels for sample in family.samples if sample.name.endswith("_bucket"))
    child = {key: value for key, value in first.items() if key != "le"}
    buckets = [sample.labels for sample in family.samples if sample.name.endswith("_bucket")]
    return [float(labels["le"]) for labels in buckets if {k: v for k, v in labels.items() if k != "le"} == child]


def label_sets(family: Metric) -> set[tuple[str, ...]]:
    return {tuple(sorted(sample.labels)) for sample in family.samples}


def assert_the_same(mine: Metric, theirs: Metric) -> None:
    """Type, sample names, labels and edges."""
    assert mine.type == theirs.type
    assert {sample.name for sample in mine.samples} == {sample.name for sample in theirs.samples}
    assert label_sets(mine) == label_sets(theirs), mine.name
    if mine.type == "histogram":
        assert edges(mine) == edges(theirs)


def events(stream: bytes) -> list[Any]:
    """Events of a stream, `[DONE]` as text."""
    data = [event.removeprefix(b"data: ") for event in stream.split(b"\n\n") if event]
    return [event.decode() if event == b"[DONE]" else json.loads(event) for event in data]


def recorded_events(shared: Path, name: str) -> list[Any]:
    return events((shared / "sse" / name).read_bytes())


def keys(value: Any) -> Any:
    """The keys of nested objects in their order; values are forgotten."""
    if isinstance(value, dict):
        return [(key, keys(part)) for key, part in value.items()]
    return [keys(part) for part in value] if isinstance(value, list) else None
