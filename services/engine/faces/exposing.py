"""Ways to write metrics, each as the servers that have it do."""

from __future__ import annotations

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
