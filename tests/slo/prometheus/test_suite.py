"""What promtool prints, read back; both versions print alike."""

from __future__ import annotations

from cliffwatch.slo.prometheus.suite import Failure, failures

PRINTED = """  FAILED:
    expr: "count(ALERTS{alertname=\\"SloBurn1h\\"}) or vector(0) # outage", time: 1h1m,
        exp: {} 1E+00
        got: {} 0E+00

    expr: "max(cliffwatch_slo:bad:ratio5m) # idle hour", time: 1d119m,
        exp: nil
        got: {slo="a } b"} 2.5E-01
    expr: "max(x) # missing series", time: 30m,
        exp: {} 1E+00
        got: nil
"""


def test_failures_are_read_with_their_minute_and_value() -> None:
    assert list(failures(PRINTED)) == [
        Failure('count(ALERTS{alertname="SloBurn1h"}) or vector(0) # outage', 61, 0.0),
        Failure("max(cliffwatch_slo:bad:ratio5m) # idle hour", 1559, 0.25),
        Failure("max(x) # missing series", 30, None),
    ]
    assert list(failures("  SUCCESS\n")) == []
