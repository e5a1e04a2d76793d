"""Metric families as a face shows them: what the catalog knows of an engine's metrics, and what feeds each of them.

Names, types, labels, bucket edges and the versions that have them stand in the catalog (`cliffwatch.engines`) alone; a
face adds which of the engine's neutral quantities each family takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cliffwatch.engines.catalog import Engine, Metric, version_key

Quantity = Literal[
    # in the course of a request, each as it happens
    "lookup_tokens", "found_tokens", "prompt_tokens", "computed_tokens", "cached_tokens", "generated_tokens",
    "reused_blocks", "missed_blocks", "preemptions", "cancelled", "failed", "turned_away", "ttft_s", "itl_s",
    # speculative decoding; accepted_at has the tag position
    "drafts", "draft_tokens", "accepted_tokens", "accepted_at",
    # a request that a limit of the queue refuses; tags: limit
    "refused",
    # of a finished request; tags: reason, streaming
    "finished", "e2e_s", "queue_s", "prefill_s", "decode_s", "inference_s", "tpot_s", "answer_prompt_tokens",
    "answer_cached_tokens", "answer_computed_tokens", "answer_tokens", "answer_preemptions", "answer_choices",
    "answer_max_tokens",
    # of a step
    "steps", "step_tokens",
    # of the HTTP server; tags: handler, method, status (200), group (2xx)
    "http_started", "http_ended", "http_failed", "http_s", "http_request_bytes", "http_response_bytes",
    # how things stand when they are asked for
    "config", "awake", "running", "waiting", "prefilling", "decoding", "paused", "context_tokens", "max_sequences",
    "kv_usage", "kv_used_blocks", "kv_free_blocks", "kv_blocks", "kv_reused_blocks", "kv_used_tokens", "kv_tokens",
    "block_tokens", "hit_rate", "life_hit_rate", "tokens_per_s", "iterations", "iteration_s", "now_s",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feed:
    """A quantity that a family takes.

    Attributes:
        labels: values of the family's own labels, in their order; `{tag}` is the observation's tag of that name.
        scale: from the quantity's unit to the metric's.
        zeros: whether observations of 0 are taken.
    """

    quantity: Quantity
    labels: tuple[str, ...] = ()
    scale: float = 1.0
    zeros: bool = True


@dataclass(frozen=True, slots=True)
class Show:
    """How a face shows one metric of the catalog.

    Attributes:
        feeds: what it takes; nothing feeds a metric that the stand-in has no cause for, and it stays 0.
        preset: label values of series that are there from the start; one without labels always is.
        base: which of the face's labels it carries; None is all of them.
        own: its own labels where they are not those of the catalog.
        late: whether it appears with its first observation only.
    """

    feeds: tuple[Feed, ...] = ()
    preset: tuple[tuple[str, ...], ...] = ()
    base: tuple[str, ...] | None = None
    own: tuple[str, ...] | None = None
    late: bool = False


Shows = Mapping[str, Show]


@dataclass(frozen=True, slots=True)
class Family:
    """One family as exposed; `name` as in the catalog, so that a counter's may end in `_total`."""

    name: str
    kind: str
    help: str
    base: dict[str, str]
    own: tuple[str, ...]
    edges: tuple[float, ...] = ()
    feeds: tuple[Feed, ...] = ()
    preset: tuple[tuple[str, ...], ...] = ()
    late: bool = False  # a series appears with its first observation


def families(
    engine: Engine, version: str, shows: Shows, labels: Mapping[str, str], max_model_len: int, *, late: bool = False
) -> tuple[Family, ...]:
    """What an engine of that version exposes by itself, in the catalog's order; metrics without a `Show` are left out.

    Args:
        labels: the face's labels with their values; those that the version has not yet are left out.
        late: whether series appear with their first observation only.
        max_model_len: token histograms without edges in the catalog have edges up to it.
    """
    coming = {change.label for change in engine.label_changes if not change.in_version(version)}
    base = {label: value for label, value in labels.items() if label not in coming}
    found = []
    for metric in engine.metrics:
        show = shows.get(metric.name)
        if show is None or not metric.in_version(version) or _hidden(metric, version):
            continue
        kept = () if metric.own_labels else tuple(base) if show.base is None else show.base
        edges = engine.edges_of(metric, version) or request_token_edges(max_model_len)
        found.append(
            Family(
                name=metric.name,
                kind=metric.type,
                help=metric.means,
                base={label: base[label] for label in kept if label in base},
                own=metric.labels if show.own is None else show.own,
                edges=edges if metric.type == "histogram" else (),
                feeds=show.feeds,
                preset=show.preset,
                late=late or show.late,
            )
        )
    return tuple(found)


def _hidden(metric: Metric, version: str) -> bool:
    return metric.hidden is not None and version_key(version) >= version_key(metric.hidden)


def request_token_edges(max_model_len: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50, ... up to the model's length."""
    edges: list[float] = []
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power > max_model_len:
                return tuple(edges)
            edges.append(float(digit * power))
        power *= 10
