"""Which series an objective is fed with."""

from __future__ import annotations

from cliffwatch.slo.prometheus.feed import Fed, NotFed
from cliffwatch.slo.prometheus.feed_engine import engine_feed
from cliffwatch.slo.prometheus.feed_promql import promql_feed
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch


def feed_of(objective: Objective, watch: Watch, *, alone: bool = True) -> Fed | NotFed:
    """The feed of an objective that compiles, or why there is none; not `alone`: others are fed beside it."""
    if objective.promql is not None:
        return promql_feed(objective.promql, objective.slices, watch)
    return engine_feed(objective, watch, alone=alone)
