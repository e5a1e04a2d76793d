"""Other targets, thresholds and windows over the same history: which cases there are, and what each would have done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cliffwatch.errors import InputError
from cliffwatch.slo.backtest.incidents import Incident, Score, score
from cliffwatch.slo.backtest.replay import Firing, Past, Promise, Replayed, in_order, replay
from cliffwatch.slo.burn import STANDARD_PAIRS, Severity, WindowPair, burn_alert
from cliffwatch.slo.live.queries import Group
from cliffwatch.slo.prometheus.alerts import least_bad
from cliffwatch.slo.prometheus.promise import Promise as Promised
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written, parse_seconds, parse_share

MAX_CASES = 64
STANDARD = "standard"
_LAST_BITS = 1e-9  # a slice is counted in fractions of it, whose sum may end a last bit below 1
WINDOW_FORMS = "standard, or pairs such as page:1h/5m:2%+ticket:3d/6h:10% (severity:long/short:share of the budget)"
_PAIR = re.compile(r"(page|ticket):([^/:]+)/([^/:]+):([^/:]+)")
Read = TypeVar("Read")
Windows = Mapping[str, tuple[WindowPair, ...]]


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked beside what the SLO file says; empty: as it says."""

    targets: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    windows: Windows | None = None

    @classmethod
    def read(cls, targets: str, thresholds: str, windows: str) -> Options:
        """From comma-separated lists, as options have them. Raises InputError."""
        sets = {text: _parsed("--windows", text, _pairs) for text in _parts(windows)}
        return cls(
            tuple(_parsed("--targets", text, _target) for text in _parts(targets)),
            tuple(_parsed("--thresholds", text, _threshold) for text in _parts(thresholds)),
            sets or None,
        )

    def __bool__(self) -> bool:
        return bool(self.targets or self.thresholds or self.windows)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: what is promised, with its threshold, and the pairs of windows that watch it."""

    objective: Promised
    windows: str
    pairs: tuple[WindowPair, ...]
    threshold: float | None = None

    def promise(self, watch: Watch) -> Promise:
        """What a history is held to."""
        target, period_s = as_written(self.objective.target), round(watch.period)
        alerts = tuple(burn_alert(pair, target, period_s) for pair in self.pairs)
        least = least_bad(self.objective, watch) - (_LAST_BITS if self.objective.slices is not None else 0)
        return Promise(target, period_s, alerts, least, watch.calendar)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case would have done, over all groups.

    Attributes:
        budget_left: the lowest share left at the span's end of all groups; None where not known for a whole period.
        scores: of its `pages`, and of `any` alert, against the incidents; None where none were given.
    """

    case: Case
    groups: tuple[Replayed, ...]
    firings: tuple[Firing, ...]
    budget_left: float | None
    scores: Mapping[str, Score] | None

    def of(self, severity: Severity) -> tuple[Firing, ...]:
        """Its pages, or its tickets."""
        return tuple(one for one in self.firings if one.severity is severity)


def own_case(objective: Promised, threshold: float | None = None) -> Case:
    """An objective, or a composite, as its file has it."""
    return Case(objective, STANDARD, STANDARD_PAIRS, threshold)


def cases(objective: Objective, options: Options) -> Iterator[tuple[Objective, tuple[Case, ...]]]:
    """The cases of an objective by what must be asked of Prometheus: one history serves all targets and windows.

    Raises InputError where there are more than `MAX_CASES`.
    """
    thresholds = options.thresholds if options.thresholds and objective.threshold is not None else (None,)
    targets, windows = options.targets or (objective.target,), options.windows or {STANDARD: STANDARD_PAIRS}
    if (count := len(thresholds) * len(targets) * len(windows)) > MAX_CASES:
        field = "--targets, --thresholds, --windows"
        raise InputError("make too many cases", field=field, value=count, allowed=f"up to {MAX_CASES}")
    for threshold in thresholds:
        asked = objective if threshold is None else objective.model_copy(update={"threshold": threshold})
        yield (
            asked,
            tuple(
                Case(asked.model_copy(update={"target": target}), name, pairs, asked.threshold)
                for target in targets
                for name, pairs in windows.items()
            ),
        )


def outcome(
    case: Case, histories: Mapping[Group, Past], watch: Watch, incidents: Sequence[Incident], tolerance_s: float
) -> Outcome:
    """Replay every group of a case."""
    promise = case.promise(watch)
    groups = tuple(replay(history, promise, dict(group)) for group, history in histories.items())
    firings = in_order(one for group in groups for one in group.firings)
    left = [one.left_at(one.grid.replayed - 1) for one in groups]
    known = [one for one in left if one is not None]
    scores = None
    if incidents:
        pages = [one for one in firings if one.severity is Severity.PAGE]
        end_s = groups[0].grid.end_s
        scores = {
            name: score(some, incidents, span_end_s=end_s, tolerance_s=tolerance_s)
            for name, some in (("pages", pages), ("any", firings))
        }
    return Outcome(case, groups, firings, min(known) if len(known) == len(left) else None, scores)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parsed(option: str, text: str, read: Callable[[str], Read]) -> Read:
    try:
        return read(text)
    except ValueError as error:
        raise InputError(str(error), field=option, value=text) from error


def _target(text: str) -> float:
    if not 0 < (share := parse_share(text)) < 1:
        raise ValueError("must be above 0 % and below 100 %")
    return share


def _threshold(text: str) -> float:
    if (seconds := parse_seconds(text)) <= 0:
        raise ValueError("must be longer than nothing")
    return seconds


def _pairs(text: str) -> tuple[WindowPair, ...]:
    return STANDARD_PAIRS if text == STANDARD else tuple(_pair(part.strip()) for part in text.split("+"))


def _pair(text: str) -> WindowPair:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise ValueError(f"must be {WINDOW_FORMS}")
    long_s, short_s = parse_seconds(match[2]), parse_seconds(match[3])
    if any(window % 60 or not 300 <= window <= 7 * 86_400 for window in (long_s, short_s)) or short_s >= long_s:
        raise ValueError("must have a short window under a long one, both whole minutes, 5m to 7d")
    return WindowPair(Severity(match[1]), round(long_s), round(short_s), as_written(_target(match[4])))
