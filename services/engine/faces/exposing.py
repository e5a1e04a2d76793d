"""Ways to write metrics, each as the servers that have it do."""

from __future__ import annotations

import json

from prometheus_client.exposition import choose_encoder, generate_latest

from services.engine.metrics import Metrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"


def always_text(metrics: Metrics, accept: str) -> tuple[bytes, str]:  # noqa: ARG001  it is not asked
    """Text with names as they are, whoever asks."""
    return generate_latest(metrics.registry, escaping="allow-utf-8"), TEXT


def as_accepted(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """What the client accepts: to those that take OpenMetrics but no colons, names come with underscores."""
    encode, kind = choose_encoder(accept)
    return encode(metrics.registry), kind


def as_triton(metrics: Metrics, accept: str) -> tuple[bytes, str]:  # noqa: ARG001  it is not asked
    """Text as Triton writes it: counters without `_total`, whole numbers without a point."""
    lines = []
    for metric in metrics.collect():
        lines += [f"# HELP {metric.name} {metric.documentation}", f"# TYPE {metric.name} {metric.type}"]
        for sample in metric.samples:
            labels = ",".join(
                f"{key}={json.dumps(_number(value) if key == 'le' else value, ensure_ascii=False)}"
                for key, value in sample.labels.items()
            )
            lines.append(f"{sample.name}{{{labels}}} {_number(str(sample.value))}")
    return ("\n".join(lines) + "\n").encode(), "text/plain; charset=utf-8"


def _number(text: str) -> str:
    return text.removesuffix(".0")
