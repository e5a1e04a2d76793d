"""What the reader of an alert needs: budget left, how long it lasts, who contributes most, what to do.

Templates ask Prometheus when an alert is sent, so that the figures are of that moment. Values of the alert's own labels
go into a question quoted (`%q`): whatever they hold, they stay values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cliffwatch.slo.burn import BurnAlert, error_budget
from cliffwatch.slo.prometheus.events import events_of, labels_of_objective
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.record import recorded
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written

CONTRIBUTORS = 3


def for_burn(watch: Watch, promise: Promise, labels: Mapping[str, str], alert: BurnAlert) -> dict[str, str]:
    """Annotations of a burn alert beside its summary and description."""
    asked = _Asked(watch.group_by)
    long, short = window_text(alert.pair.long_s), window_text(alert.pair.short_s)
    left = recorded("budget_left:ratio", {**labels, **asked.values})
    burning = recorded(f"bad:ratio{long}", {**labels, **asked.values})
    budget_s = error_budget(as_written(promise.target)) * round(watch.period)
    lasts = f"clamp_min({left}, 0) * {budget_s.normalize():f} / ignoring (period) ({burning} > 0)"
    found = {
        "budget_left": asked.first(left, "humanizePercentage"),
        "budget_lasts": f"{asked.first(lasts, 'humanizeDuration')} at the burn of the last {long}",
    }
    if isinstance(promise, Objective) and (top := _contributors(watch, promise, asked, short)) is not None:
        found["contributors"] = f"most bad events of the last {short}: {top}"
    return found | runbook(watch, f"SloBurn{long}")


def runbook(watch: Watch, alert: str) -> dict[str, str]:
    """Where it stands what to do, if the file says so."""
    return {"runbook_url": f"{watch.runbooks.rstrip('/')}/{alert}"} if watch.runbooks else {}


class _Asked:
    """Questions about the group that an alert is of."""

    def __init__(self, group_by: Sequence[str]) -> None:
        self._group_by = group_by
        self.values = {label: f"@{label}@" for label in group_by}

    def question(self, expression: str) -> str:
        """A pipeline that gives the answer; an expression's own % is none of printf's verbs."""
        if not self._group_by:
            return f"query `{expression}`"
        text = expression.replace("%", "%%")
        for number, label in enumerate(self._group_by, start=1):
            text = text.replace(f'"@{label}@"', f"%[{number}]q")
        return f"printf `{text}` {' '.join(f'$labels.{label}' for label in self._group_by)} | query"

    def first(self, expression: str, shown: str) -> str:
        value = f"{{{{ . | first | value | {shown} }}}}"
        return f"{{{{ with {self.question(expression)} }}}}{value}{{{{ else }}}}not known yet{{{{ end }}}}"


def _contributors(watch: Watch, objective: Objective, asked: _Asked, window: str) -> str | None:
    """The instances, models and tenants with the most bad events a second; None where no series of theirs is known."""
    by = _labels_to_tell(watch, objective)
    if not by:
        return None
    single = watch.model_copy(
        update={
            "group_by": by,
            "match": {**watch.match, **{k: v for k, v in asked.values.items() if k not in watch.match}},
        }
    )
    bad = events_of(objective, single, field="").bad_rate(window)
    names = " ".join(f"{{{{ .Labels.{label} }}}}" for label in by)
    each = f"{{{{ if $i }}}}, {{{{ end }}}}{names} {{{{ .Value | humanize }}}}/s"
    question = asked.question(f"sort_desc(topk({CONTRIBUTORS}, ({bad}) > 0))")
    return f"{{{{ range $i, $_ := {question} }}}}{each}{{{{ else }}}}none{{{{ end }}}}"


def _labels_to_tell(watch: Watch, objective: Objective) -> tuple[str, ...]:
    """Labels that bad events can be told apart by, beside those that the alert has already."""
    if objective.promql is not None or objective.sli is Sli.THROUGHPUT:
        return ()
    roles = watch.catalog.labels
    wanted = ["instance", *(roles[role] for role in ("model", "tenant") if role in roles)]
    known = labels_of_objective(objective, watch)
    return tuple(label for label in wanted if label in known and label not in {*watch.group_by, *watch.match})
