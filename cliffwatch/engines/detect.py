"""Which engine exposes these metrics, which versions it can be, and which SLIs it can carry."""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.engines.catalog import Engine, Metric, SliSource, engines, version_key
from cliffwatch.engines.exposition import Exposed, plain

_ENOUGH = 3  # metrics in common; names without a prefix are too common for fewer
_USABLE = {"histogram", "counter"}


@dataclass(frozen=True, slots=True)
class SliSupport:
    """Whether one SLI can be had from one server.

    Attributes:
        metric: the exposed name; None where it cannot.
        reason: why not, or what to know about it.
        edges: bucket edges as exposed, in the metric's own unit; empty for a counter.
        edges_are_default: whether they are the catalog's; None where that is not known.
    """

    sli: str
    metric: str | None
    per: str | None = None
    unit: str | None = None
    reason: str | None = None
    edges: tuple[float, ...] = ()
    edges_are_default: bool | None = None

    @property
    def supported(self) -> bool:
        return self.metric is not None


@dataclass(frozen=True, slots=True)
class Detection:
    """What a server is. `since` and `until` bound its version: from `since` on, before `until`; None is no bound."""

    engine: Engine
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: int
    version: str | None
    since: str | None
    until: str | None
    slis: tuple[SliSupport, ...]
    notes: tuple[str, ...]


def detect(exposed: dict[str, Exposed], *, version: str | None = None) -> Detection | None:
    """The engine that has most of these metrics; None where none of the catalog fits.

    `version` is what the server says of itself, if it does; else the range is told from the names and edges there.
    """
    known = engines()
    scores = {engine.name: len(_matched(engine, exposed)) for engine in known}
    best = max(known, key=lambda engine: scores[engine.name])
    if scores[best.name] < _ENOUGH:
        return None
    matched = _matched(best, exposed)
    since, until = _range(best, exposed)
    at = version or since
    expected = [metric for metric in best.metrics if not metric.optional and (at is None or metric.in_version(at))]
    missing = tuple(metric.name for metric in expected if plain(metric.name) not in exposed) if at else ()
    names = {plain(metric.name) for metric in best.metrics}
    return Detection(
        engine=best,
        matched=tuple(metric.name for metric in matched),
        missing=missing,
        unknown=sum(1 for name in exposed if name not in names),
        version=version,
        since=None if version else since,
        until=None if version else until,
        slis=tuple(_support(best, sli, source, exposed, version) for sli, source in best.slis.items()),
        notes=_notes(best, exposed, version),
    )


def _matched(engine: Engine, exposed: dict[str, Exposed]) -> list[Metric]:
    return [metric for metric in engine.metrics if plain(metric.name) in exposed and not metric.own_labels]


def _range(engine: Engine, exposed: dict[str, Exposed]) -> tuple[str | None, str | None]:
    """Bounds from names and edges that are there, and from labels; absence proves nothing, series may come late."""
    since: set[str] = {engine.versions.since} if engine.versions.since else set()
    until: set[str] = set()
    for metric in engine.metrics:
        found = exposed.get(plain(metric.name))
        if found is None:
            continue
        since |= {metric.since} if metric.since else set()
        until |= {metric.until} if metric.until else set()
        for layout in engine.edges.get(metric.edges or "", ()):
            if layout.values in found.layouts:
                since |= {layout.since} if layout.since else set()
                until |= {layout.until} if layout.until else set()
        for change in engine.label_changes:
            if change.label in found.labels and change.since:
                since.add(change.since)
    return max(since, key=version_key, default=None), min(until, key=version_key, default=None)


def _support(
    engine: Engine, sli: str, source: SliSource, exposed: dict[str, Exposed], version: str | None
) -> SliSupport:
    present = [name for name in source.metrics if plain(name) in exposed]
    if not present:
        absent = f"{' or '.join(source.metrics)} is not exposed" if source.metrics else None
        reason = "; ".join(part for part in (absent, source.lacking) if part)
        return SliSupport(sli, None, reason=reason)
    metric, found = engine.metric(present[0]), exposed[plain(present[0])]
    if found.type not in _USABLE:
        return SliSupport(sli, None, reason=f"{found.name} is a {found.type}: it holds no share of requests")
    if found.type == "histogram" and not found.layouts:
        return SliSupport(sli, None, reason=f"{found.name} has no buckets")
    if len(found.layouts) > 1:
        return SliSupport(sli, None, reason=f"{found.name} has {len(found.layouts)} layouts of buckets on one server")
    edges = found.layouts[0] if found.layouts else ()
    usual = engine.edges_of(metric, version) if edges else None
    note = "; ".join(part for part in (metric.trap, source.note) if part) or None
    return SliSupport(sli, found.name, source.per, metric.unit, note, edges, None if usual is None else edges == usual)


def _notes(engine: Engine, exposed: dict[str, Exposed], version: str | None) -> tuple[str, ...]:
    notes = list(engine.traps)
    model = engine.labels.get("model")
    values = {value for one in exposed.values() for value in one.labels.get(model or "", ())}
    if "undefined" in values:
        notes.append(f'label {model} reads "undefined": give the model\'s name when you compile rules')
    if version and (beyond := engine.beyond(version)):
        notes.append(beyond)
    if any(plain(metric.name) in exposed and ":" in metric.name for metric in engine.metrics) and not any(
        ":" in one.name for one in exposed.values()
    ):
        notes.append("the names came with underscores in place of colons; rules must name them so")
    return tuple(notes)
