"""What is asked of Prometheus where records come before an objective's events."""

from __future__ import annotations

import pytest

from cliffwatch.config import check_config
from cliffwatch.slo.backtest.subject import subjects
from cliffwatch.slo.spec import SloFile

SLICED = {"sli": "ttft", "quantile": "p95", "threshold": "2.5s", "slices": "5m", "target": "99%"}
THROUGHPUT = {"sli": "throughput", "slices": {"length": "10m", "tokens_per_s": 500}, "target": "99%"}


@pytest.mark.parametrize(
    ("objective", "metric", "judged"),
    [
        (SLICED, "vllm:time_to_first_token_seconds_count[5m]", " * 300) >= bool 0.5"),
        (THROUGHPUT, "vllm:generation_tokens_total[10m]", " < bool 500)"),
    ],
)
def test_slices_are_judged_on_raw_series(objective: dict[str, object], metric: str, judged: str) -> None:
    """The records that the rules make of each slice need not be there."""
    document = {"name": "s", "objectives": [objective], "watch": {"engine": "vllm"}}
    (one,) = subjects(check_config(document, SloFile, source="f"), source="f")
    asked = one.events.rate("5m") + one.events.bad_rate("5m")
    assert "cliffwatch_slo" not in asked
    assert metric in asked
    assert judged in asked
    assert one.min_bad_events == 1
