"""Series for PromQL of the file's own, where it can be read: rates of counters, summed, one less the other at most.

Read from the file's text alone, and no more of PromQL than `sum(rate(METRIC{LABELS}[{window}]))` needs: of anything
else nobody here can tell what series it counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from cliffwatch.slo.prometheus.feed import Fed, NotFed, Phase, Pod, Series, counter
from cliffwatch.slo.prometheus.feed_engine import sliced
from cliffwatch.slo.prometheus.matching import Labels, Matcher, labels_for, labels_outside
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.slices import STRING, Promql, Slices
from cliffwatch.slo.watch import Watch

_SHAPE = "sum(rate(METRIC{LABELS}[{window}]))"
_SHAPES = {"all": f"no {_SHAPE}", "bad": f"neither a {_SHAPE} nor `all` less one"}
_BY = r"(?:by|without)\s*\([\w\s,:]*\)"
_SUM = re.compile(rf"sum\s*(?:{_BY}\s*)?(\(.*\))\s*(?:{_BY})?", re.DOTALL)
_OR_NOTHING = re.compile(r"(.*\S)\s+or\s+vector\s*\(\s*0\s*\)", re.DOTALL)
_RATE = re.compile(r"rate\s*\(\s*([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s*\[\{window\}\]\s*\)", re.DOTALL)
_MATCHER = re.compile(r"\s*(?:,\s*)?([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*(\"_*\"|'_*'|`_*`)\s*,?")

PerMinute = Callable[[Phase], Decimal]


@dataclass(frozen=True, slots=True)
class _Selected:
    """The series of one rate."""

    metric: str
    matchers: tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One series that is exposed; `bad`: it counts bad events and no other."""

    metric: str
    labels: Labels
    per_minute: PerMinute
    bad: bool = False


def promql_feed(promql: Promql, slices: Slices | None, watch: Watch) -> Fed | NotFed:
    """The feed of two rates, or why there is none."""
    try:
        return _fed(promql, slices, watch)
    except ValueError as error:
        return NotFed(str(error))


def _fed(promql: Promql, slices: Slices | None, watch: Watch) -> Fed:
    everything = _selected(promql.all, "all")
    rows = _rows(everything, promql)
    labels = [row.labels for row in rows]
    for label in watch.group_by:
        if len({each.get(label) for each in labels}) > 1:
            raise ValueError(f"good and bad events of its PromQL differ in the label {label} of watch.group_by")
    several = not any("instance" in each for each in labels)
    return Fed(
        _Counted(rows, watch),
        failures_counted=any(row.bad for row in rows),
        instances=several,
        slices=None if slices is None else sliced(slices),
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    rows: tuple[_Row, ...]
    watch: Watch

    def series(self, pod: Pod) -> Series:
        others = {**dict.fromkeys(self.watch.group_by, "g"), "instance": pod.instance}
        return {
            selector(row.metric, {**others, **row.labels}): counter(pod.phases, row.per_minute)
            for row in self.rows
            if not (row.bad and pod.without_bad)
        }


def _events(phase: Phase) -> Decimal:
    return phase.events


def _bad(phase: Phase) -> Decimal:
    return phase.bad


def _good(phase: Phase) -> Decimal:
    return phase.events - phase.bad


def _rows(everything: _Selected, promql: Promql) -> tuple[_Row, ...]:
    """What must be exposed so that the two rates are those of a phase."""
    first, minus, second = _difference(promql.bad)
    if not minus:
        return _split(everything, _selected(promql.bad, "bad"), _bad, _good)
    if _selected(first, "bad") != everything:
        raise ValueError("`bad` of its PromQL is a difference, and not one of `all` less what is good")
    return _split(everything, _selected(second, "bad"), _good, _bad)


def _split(everything: _Selected, part: _Selected, of_part: PerMinute, of_rest: PerMinute) -> tuple[_Row, ...]:
    """The series of a part, and of the rest of all events, or of all where the part is none of them."""
    inside = None
    if part.metric == everything.metric:
        inside = labels_for((*everything.matchers, *part.matchers))
    if inside is None:
        outer, inner = _some(everything), _some(part)
        return _Row(everything.metric, outer, _events), _Row(part.metric, inner, of_part, of_part is _bad)
    rest = labels_outside(everything.matchers, part.matchers)
    if rest is None:
        raise ValueError("no series was found that its PromQL counts in `all` and not as well in the other rate")
    return (
        _Row(everything.metric, rest, of_rest, of_rest is _bad),
        _Row(part.metric, inside, of_part, of_part is _bad),
    )


def _some(selected: _Selected) -> Labels:
    if (labels := labels_for(selected.matchers)) is None:
        raise ValueError(f"no labels were found that its PromQL's selector of {selected.metric} accepts")
    return labels


def _selected(expression: str, side: str) -> _Selected:
    """The one selector of a sum of rates. Raises ValueError for anything else."""
    text = _bare(expression)
    while True:
        masked = _masked(text)
        if found := _OR_NOTHING.fullmatch(masked) or _SUM.fullmatch(masked):
            inner = text[slice(*found.span(1))]
            if _balanced(_masked(inner)):
                text = _bare(inner)
                continue
        break
    found = _RATE.fullmatch(masked)
    if found is None:
        raise ValueError(f"`{side}` of its PromQL is {_SHAPES[side]}: what series it counts is not known")
    start, end = found.span(2)
    matchers = tuple(_matchers(text[start:end], side)) if found[2] else ()
    return _Selected(found[1], tuple(sorted(matchers, key=lambda one: (one.label, one.operator, one.value))))


def _matchers(text: str, side: str) -> Iterable[Matcher]:
    masked, at = _masked(text), 0
    while at < len(masked.rstrip()):
        found = _MATCHER.match(masked, at)
        if found is None:
            raise ValueError(f'labels of `{side}` of its PromQL are not written LABEL="VALUE": {text.strip()}')
        yield Matcher(found[1], found[2], _unquoted(text[slice(*found.span(3))]))
        at = found.end()


def _unquoted(text: str) -> str:
    """A string of PromQL. Raises ValueError for escapes that JSON does not have."""
    if text.startswith("`"):
        return text[1:-1]
    inner = text[1:-1]
    if text.startswith("'"):
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        value: str = json.loads(f'"{inner}"', strict=False)
    except ValueError as error:
        raise ValueError(f"a string of its PromQL has escapes that are not read here: {text}") from error
    return value


def _masked(text: str) -> str:
    """The text with what stands within quotes replaced: brackets and words in there are none."""
    return STRING.sub(lambda found: f"{found[0][0]}{'_' * (len(found[0]) - 2)}{found[0][-1]}", text)


def _balanced(masked: str) -> bool:
    """Whether no bracket closes what was not opened before it."""
    depth = 0
    for sign in masked:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _bare(expression: str) -> str:
    """Without brackets around all of it."""
    text = expression.strip()
    while text.startswith("(") and text.endswith(")") and _balanced(_masked(text)[1:-1]):
        text = text[1:-1].strip()
    return text


def _difference(expression: str) -> tuple[str, str, str]:
    """Both sides of the one minus that stands outside of brackets; else all of it, and nothing."""
    text = _bare(expression)
    masked, depth = _masked(text), 0
    for at, sign in enumerate(masked):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "-" and not depth:
            return text[:at], "-", text[at + 1 :]
    return text, "", ""
