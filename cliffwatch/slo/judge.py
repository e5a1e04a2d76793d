"""Judge a run by an SLO file: one pass over its rows in DuckDB, then arithmetic (rules: docs/judgement.md)."""

from __future__ import annotations

from typing import Any

import duckdb

from cliffwatch.config import check_config
from cliffwatch.cost.price import HardwareCost, Price, price
from cliffwatch.cost.work import Work, measure_work
from cliffwatch.records.conditions import FAILED, LEFT, OK, in_phase, outcome_in
from cliffwatch.records.figures import gave_up, late_though_failed
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import FAILURES, Outcome, Phase
from cliffwatch.slo.decide import decide, overall
from cliffwatch.slo.judgement import Bucket, Goodput, Judgement, ObjectiveResult
from cliffwatch.slo.quantiles import PERCENTILES, quantiles
from cliffwatch.slo.sli import SLIS, Sli
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.stats.wilson import wilson

SENT = f"outcome <> '{Outcome.LATE}' AND NOT {LEFT}"  # but for those whose users left as planned


def judge(reader: RunReader, slo: SloFile, *, phase: Phase | None = Phase.MEASURED) -> Judgement:
    """Judge the requests of one phase (None: of all phases) by every objective. Raises RunError on damaged shards."""
    manifest = reader.manifest
    objectives = _conditions(slo, open_loop=manifest.open_loop)
    with reader.session() as connection:
        work = measure_work(connection, phase)
        totals = _fetch(connection, _totals(objectives), phase)
        results = tuple(_result(one, _fetch(connection, one.counts(), phase)) for one in objectives)
    status, reason = overall(results, ok=totals["ok"], failed=totals["failed"])
    return Judgement(
        slo=slo.name,
        status=status,
        reason=reason,
        phase=phase or "all",
        partial=partial_note(manifest),
        objectives=results,
        goodput=_goodput(totals, work),
        price=price_of(manifest, work, slo.cost),
    )


def partial_note(manifest: Manifest) -> str | None:
    """Why a run is not whole, as a sentence; None for a complete one."""
    if manifest.state is RunState.RUNNING:
        return "The run is still going on, or its master died; figures hold as far as it got."
    if manifest.state is RunState.PARTIAL:
        return f"The run is partial ({manifest.partial_reason or 'no reason recorded'}); figures hold as far as it got."
    return None


def price_of(manifest: Manifest, work: Work, cost: HardwareCost | None = None) -> Price | None:
    """Price a run's work by `cost` or else the run's own; None where neither tells what the hardware costs.

    Raises:
        InputError: the run's own is no price.
    """
    if cost is None and manifest.cost is not None:
        cost = check_config(manifest.cost.model_dump(), HardwareCost, source=f"{FILE_NAME} of {manifest.run_id}")
    return None if cost is None else price(cost, work)


def _conditions(slo: SloFile, *, open_loop: bool) -> list[_Sql]:
    """Every objective as conditions; goodput as that of meeting all the others."""
    others = [one for one in slo.objectives if one.sli is not Sli.GOODPUT]
    client = slo.count_client_errors
    kept = _kept([_Sql(one, open_loop=open_loop, client_errors=client) for one in others])
    return [_Sql(one, open_loop=open_loop, client_errors=client, all_others=kept) for one in slo.objectives]


class _Sql:
    """One objective as conditions over the view `requests`; `all_others` is that of meeting every other one."""

    def __init__(
        self, objective: Objective, *, open_loop: bool, client_errors: bool, all_others: str | None = None
    ) -> None:
        objective.refuse_for_runs(field=objective.label)
        self.objective = objective
        self.figure = objective.figure(open_loop=open_loop)
        self.within = _within(objective)
        if self.figure is None:
            self.censored = "FALSE"
            excluded = set() if client_errors else {Outcome.HTTP_4XX}
            self.good, self.bad = OK, outcome_in(FAILURES - excluded)
            self.unknown = "FALSE"
            self.kept = "TRUE"
            if objective.sli is Sli.GOODPUT and all_others is not None:
                self.good, self.bad = all_others, f"({SENT} AND NOT coalesce({all_others}, FALSE))"
            return
        threshold = objective.threshold
        self.censored = gave_up(self.figure, repr(threshold))
        late = late_though_failed(self.figure, repr(threshold))
        short = "output_tokens < 2 * batch" if SLIS[objective.sli].per_token else "FALSE"
        self.good = f"{OK} AND {self.figure} <= {threshold!r}"
        self.bad = f"(({OK} AND {self.figure} > {threshold!r}) OR {self.censored} OR {late})"
        self.unknown = f"{OK} AND {self.figure} IS NULL AND NOT coalesce({short}, FALSE)"
        self.kept = f"(NOT ({self.within}) OR coalesce({self.figure} <= {threshold!r}, {short}, FALSE))"

    def counts(self) -> str:
        """Aggregates of this objective over its bucket."""
        figure = self.figure or "NULL::DOUBLE"
        levels = ", ".join(map(repr, PERCENTILES.values()))
        terms = {
            "good": f"count(*) FILTER ({self.good})",
            "bad": f"count(*) FILTER ({self.bad})",
            "censored": f"count(*) FILTER ({self.censored})",
            "unknown": f"count(*) FILTER ({self.unknown})",
            "observed_n": f"count({figure}) FILTER ({OK})",
            "observed": f"quantile_cont({figure}, [{levels}]) FILTER ({OK})",
        }
        return ", ".join(f"{sql} AS {name}" for name, sql in terms.items()) + f" FROM requests WHERE {self.within}"


def _within(objective: Objective) -> str:
    bucket = objective.input_tokens
    if bucket is None:
        return "TRUE"
    upper = "" if bucket.max is None else f" AND input_tokens <= {bucket.max}"
    return f"input_tokens >= {bucket.min}{upper}"


def meets_all(slo: SloFile, *, open_loop: bool) -> str:
    """The condition that keeps the requests which meet every objective that applies to them: those of goodput."""
    return _kept(_conditions(slo, open_loop=open_loop))


def marks(slo: SloFile, *, open_loop: bool) -> tuple[str, ...]:
    """For each objective an expression over a row: 1 where the request is good, -1 where bad, 0 outside of it."""
    found = _conditions(slo, open_loop=open_loop)
    return tuple(
        f"CASE WHEN NOT ({one.within}) THEN 0 WHEN {one.good} THEN 1 WHEN {one.bad} THEN -1 ELSE 0 END" for one in found
    )


def _kept(objectives: list[_Sql]) -> str:
    return " AND ".join([OK, *(one.kept for one in objectives)])


def _totals(objectives: list[_Sql]) -> str:
    """Aggregates of all judged requests, for goodput and the judgement as a whole."""
    kept = _kept(objectives)
    terms = {
        "sent": f"count(*) FILTER ({SENT})",
        "ok": f"count(*) FILTER ({OK})",
        "failed": f"count(*) FILTER ({FAILED})",
        "kept": f"count(*) FILTER ({kept})",
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in terms.items()) + " FROM requests WHERE TRUE"


def _fetch(connection: duckdb.DuckDBPyConnection, aggregates: str, phase: Phase | None) -> dict[str, Any]:
    cursor = connection.execute(f"SELECT {aggregates} AND {in_phase(phase)}")
    names = [column[0] for column in cursor.description or ()]
    return dict(zip(names, cursor.fetchone() or (), strict=True))


def _result(sql: _Sql, row: dict[str, Any]) -> ObjectiveResult:
    objective, n = sql.objective, row["good"] + row["bad"]
    low, high = wilson(row["good"], n) if n else (None, None)
    status, confident = decide(
        good=row["good"], n=n, target=objective.target, low=low, high=high, needed=objective.needed
    )
    traits, bucket = SLIS[objective.sli], objective.input_tokens
    clocks = [clock for clock, figure in traits.figures.items() if figure == sql.figure and len(traits.figures) > 1]
    return ObjectiveResult(
        sli=objective.sli,
        label=objective.label,
        threshold_s=objective.threshold,
        target=objective.target,
        figure=sql.figure,
        clock=clocks[0] if clocks else None,
        input_tokens=Bucket(min=bucket.min, max=bucket.max) if bucket else None,
        n=n,
        good=row["good"],
        bad=row["bad"],
        censored=row["censored"],
        unknown=row["unknown"],
        attainment=row["good"] / n if n else None,
        low=low,
        high=high,
        status=status,
        confident=confident,
        needed_n=objective.needed,
        observed=quantiles(row["observed"], row["observed_n"]) if sql.figure else {},
    )


def _goodput(totals: dict[str, Any], work: Work) -> Goodput:
    n, good = totals["sent"], totals["kept"]
    low, high = wilson(good, n) if n else (None, None)
    ratio = good / n if n else None
    return Goodput(n=n, good=good, ratio=ratio, low=low, high=high, per_s=work.per_s(good), held_s=work.held_s)
