"""Compare two runs: significance and a difference that matters, figure by figure (rules: docs/comparison.md)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cliffwatch.compare.comparable import check_comparable
from cliffwatch.compare.measure import Measured, measure
from cliffwatch.compare.metrics import Kind, Metric, choose
from cliffwatch.compare.result import Change, Comparison, FigureChange, Interval, RunSide, Side
from cliffwatch.errors import InputError
from cliffwatch.records.reader import RunReader
from cliffwatch.report.summary import own_slo
from cliffwatch.slo.judge import partial_note
from cliffwatch.slo.spec import SloFile
from cliffwatch.stats.difference import difference_interval, difference_p, holm

DEFAULT_ALPHA = 0.05
DEFAULT_THRESHOLD = 0.05
DEFAULT_POINTS = 0.005


@dataclass(frozen=True)
class Rule:
    """When a difference is one: chance of any false alarm, least relative change, least change of shares in points."""

    alpha: float = DEFAULT_ALPHA
    threshold: float = DEFAULT_THRESHOLD
    points: float = DEFAULT_POINTS


@dataclass(frozen=True)
class Pair:
    """One metric of both runs, before the figures are judged together."""

    metric: Metric
    base: Measured
    new: Measured

    @property
    def enough(self) -> bool:
        return min(self.base.n, self.new.n) >= self.metric.needed_n and None not in (
            self.base.estimate, self.new.estimate,
        )  # fmt: skip


def compare(
    base: RunReader,
    new: RunReader,
    slo: SloFile | None = None,
    *,
    metrics: Sequence[str] = (),
    rule: Rule | None = None,
    allowed: Collection[str] = (),
) -> Comparison:
    """Compare the measured requests of two runs.

    Args:
        slo: what goodput is by; default: the runs' own, where both have one and the same.
        metrics: names of `METRICS`; default: all.
        allowed: keys of `REFUSED` in which the runs may differ.

    Raises:
        InputError: the runs are not comparable, or are one; a name is no metric; a run's SLO file is faulty.
        RunError: damaged shards.
    """
    if base.dir.resolve() == new.dir.resolve():
        raise InputError("is both runs", file=new.dir, allowed="two runs")
    first, second, rule = base.manifest, new.manifest, rule or Rule()
    remarks = check_comparable(first, second, allowed)
    chosen = choose(metrics)
    if slo is None:
        slo, more = _common_slo(base, new)
        remarks = (*remarks, *(more if any(metric.of_slo for metric in chosen) else ()))
    open_loop = first.open_loop and second.open_loop
    sides = [measure(reader, chosen, slo, open_loop=open_loop) for reader in (base, new)]
    pairs = [Pair(one, sides[0][one.name], sides[1][one.name]) for one in chosen if one.name in sides[0]]
    return Comparison(
        base=_run_side(base),
        new=_run_side(new),
        alpha=rule.alpha,
        threshold=rule.threshold,
        threshold_points=rule.points,
        slo=slo.name if slo and any(pair.metric.of_slo for pair in pairs) else None,
        remarks=remarks,
        figures=tuple(judge_pairs(pairs, rule)),
    )


def _common_slo(base: RunReader, new: RunReader) -> tuple[SloFile | None, tuple[str, ...]]:
    first, second = own_slo(base.dir), own_slo(new.dir)
    if first is None or second is None:
        return None, ("goodput is not compared: not both runs have an SLO file, and none was given (--slo)",)
    if (first.objectives, first.count_client_errors) != (second.objectives, second.count_client_errors):
        return None, ("goodput is not compared: the runs' SLO files differ, and none was given (--slo)",)
    return first, ()


def _run_side(reader: RunReader) -> RunSide:
    run = reader.manifest
    return RunSide(
        dir=str(reader.dir),
        run_id=run.run_id,
        name=run.name,
        model=run.model,
        target=run.target,
        engine=run.engine,
        verdict=run.verdict,
        partial=partial_note(run),
    )


def judge_pairs(pairs: Sequence[Pair], rule: Rule) -> list[FigureChange]:
    """Holm takes in every figure that has enough requests, whatever it shows."""
    compared = [pair for pair in pairs if pair.enough]
    alone = {
        pair.metric.name: difference_p(pair.base.estimate, pair.new.estimate)
        for pair in compared
        if pair.base.estimate and pair.new.estimate
    }
    adjusted = dict(zip(alone, holm(list(alone.values())), strict=True))
    return [
        _figure(pair, rule, alone.get(pair.metric.name), adjusted.get(pair.metric.name), len(alone)) for pair in pairs
    ]


def _figure(pair: Pair, rule: Rule, p_value: float | None, adjusted_p: float | None, family: int) -> FigureChange:
    metric, base, new = pair.metric, pair.base.estimate, pair.new.estimate
    difference, relative = Interval(), Interval()
    threshold: float | None = rule.points if metric.kind is Kind.SHARE else None
    if base is not None and new is not None:
        low, high = difference_interval(base, new, 1 - rule.alpha)
        difference = Interval(value=new.value - base.value, low=_finite(low), high=_finite(high))
        if metric.kind is not Kind.SHARE:
            threshold = rule.threshold * base.value
            relative = _scaled(difference, base.value)
    return FigureChange(
        metric=metric.name,
        label=metric.label,
        kind=metric.kind,
        higher_is_worse=metric.higher_is_worse,
        base=_side(pair.base, rule.alpha),
        new=_side(pair.new, rule.alpha),
        difference=difference,
        relative=relative,
        p_value=p_value,
        adjusted_p=adjusted_p,
        threshold=threshold,
        ruled_out=_ruled_out(metric, difference, threshold),
        needed_n=metric.needed_n,
        change=_change(pair, rule, adjusted_p, threshold, family),
    )


def _change(pair: Pair, rule: Rule, adjusted_p: float | None, threshold: float | None, family: int) -> Change:
    base, new = pair.base.estimate, pair.new.estimate
    if adjusted_p is None or threshold is None or base is None or new is None:
        return Change.TOO_FEW_DATA
    difference = new.value - base.value
    if adjusted_p <= rule.alpha:
        if abs(difference) < threshold:
            return Change.NO_CHANGE_SHOWN
        return Change.REGRESSED if (difference > 0) is pair.metric.higher_is_worse else Change.IMPROVED
    # Where the interval that Holm begins with has an open end, no difference could have been significant.
    reachable = all(map(math.isfinite, difference_interval(base, new, 1 - rule.alpha / family)))
    return Change.NO_CHANGE_SHOWN if reachable else Change.TOO_FEW_DATA


def _ruled_out(metric: Metric, difference: Interval, threshold: float | None) -> bool | None:
    worst = difference.high if metric.higher_is_worse else difference.low
    return None if worst is None or threshold is None else (worst if metric.higher_is_worse else -worst) < threshold


def _side(measured: Measured, alpha: float) -> Side:
    if measured.estimate is None:
        return Side(n=measured.n)
    low, high = measured.estimate.interval(1 - alpha)
    return Side(value=measured.estimate.value, low=_finite(low), high=_finite(high), n=measured.n)


def _scaled(interval: Interval, by: float) -> Interval:
    if not by:
        return Interval()
    ends = {name: None if value is None else value / by for name, value in interval}
    return Interval(**ends)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
