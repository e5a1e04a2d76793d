"""What each engine exposes: a data file an engine, read into frozen records.

Versions are compared by their numbers (`0.10.2` after `0.9.2`, `b10519` after `b6700`). `since` is the first version
that has a thing, `until` the first that has it no more; null means always.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from cliffwatch.config import ConfigModel, parse_config
from cliffwatch.errors import InputError

Sli = Literal["ttft", "itl", "tpot", "e2e", "queue", "availability", "throughput"]
Span = Literal["prefill", "decode"]
Signal = Literal["running", "waiting", "kv_usage", "generated", "preemptions"]
_DATA = resources.files("cliffwatch.engines") / "data"
_NUMBER = re.compile(r"\d+")


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison; what follows a suffix such as `rc1` or `+cpu` does not count."""
    release = re.split(r"[-+]|\.?(?:rc|post|dev)", version, maxsplit=1)[0]
    numbers = [int(part) for part in _NUMBER.findall(release)]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


class Dated(ConfigModel):
    """Something that some versions have."""

    since: str | None = None
    until: str | None = None

    def in_version(self, version: str) -> bool:
        """Whether that version has it."""
        key = version_key(version)
        return (self.since is None or key >= version_key(self.since)) and (
            self.until is None or key < version_key(self.until)
        )


class Edges(Dated):
    """Bucket edges, without +Inf, in the metric's own unit."""

    values: tuple[float, ...]

    @field_validator("values")
    @classmethod
    def _rising(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values or any(low >= high for low, high in pairwise(values)):
            raise ValueError("do not rise; allowed: each edge above the one before it")
        return values


class EdgeFlag(Dated):
    """The engine's own way to other edges; `key` is the name within the flag's value."""

    flag: str
    key: str | None = None


class LabelChange(Dated):
    """A label that not every version has."""

    label: str


class Metric(Dated):
    """One metric as exposed, a histogram by its name without `_bucket`.

    Attributes:
        unit: as measured: `s`, `ms` and `us` stay what they are.
        edges: key into the engine's edges; None where they depend on the model or are not known.
        labels: beside the engine's own; `own_labels`: it has none of the engine's.
        hidden: the first version that shows it only when asked to.
        optional: only with a feature, a flag or an event.
        trap: how people read it wrongly.
    """

    name: str
    type: Literal["counter", "gauge", "histogram", "summary"]
    unit: str
    means: str
    edges: str | None = None
    labels: tuple[str, ...] = ()
    own_labels: bool = False
    hidden: str | None = None
    optional: bool = False
    trap: str | None = None


class Series(ConfigModel):
    """Some series of a metric: those whose labels match (regular expressions of PromQL, whole values)."""

    metric: str
    match: dict[str, str] = Field(default_factory=dict)
    le: float | None = None  # of a histogram: the bucket at this edge


class SliSource(ConfigModel):
    """Where an SLI comes from: the first metric of `from` that is there; `lacking` says why there may be none.

    Attributes:
        events, bad: counters that add up to all events and to the bad ones, where the SLI is no histogram.
        without: what stands in the histogram and is no event of this SLI.
    """

    metrics: Annotated[tuple[str, ...], Field(alias="from")] = ()
    events: tuple[Series, ...] = ()
    bad: tuple[Series, ...] = ()
    without: Series | None = None
    per: str = "request"
    lacking: str | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> SliSource:
        if not self.metrics and self.lacking is None:
            raise ValueError("has neither a metric nor a reason; allowed: `from`, `lacking`, or both")
        return self


class Aborts(ConfigModel):
    """Counters of requests that ended before their answer did, and of those that ended with it."""

    aborted: Series
    finished: Series


class Engine(ConfigModel):
    """One data file.

    Attributes:
        versions: those that the file describes.
        paths: where its metrics are, the usual first; `port` where it is not the API's.
        labels: role (`model`, `replica`, `tenant`) to label.
        spans: parts of a request's time inside the engine, beside `queue`; the first metric that is there.
        signals: role (see Signal) to metric.
        awake: series that are 1 while the engine is awake and 0 while it sleeps.
        aborts: None where the engine does not count requests that were left.
    """

    name: str
    title: str
    versions: Dated
    paths: tuple[str, ...]
    port: int | None = None
    switch_on: str
    labels: dict[str, str] = Field(default_factory=dict)
    label_changes: tuple[LabelChange, ...] = ()
    edges: dict[str, tuple[Edges, ...]] = Field(default_factory=dict)
    edge_flags: dict[str, EdgeFlag] = Field(default_factory=dict)
    metrics: tuple[Metric, ...]
    slis: dict[Sli, SliSource] = Field(default_factory=dict)
    spans: dict[Span, tuple[str, ...]] = Field(default_factory=dict)
    signals: dict[Signal, str] = Field(default_factory=dict)
    awake: Series | None = None
    aborts: Aborts | None = None
    traps: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Engine:
        names = {metric.name for metric in self.metrics}
        used = {*self.signals.values(), *([self.awake.metric] if self.awake else [])}
        used |= {name for names in self.spans.values() for name in names}
        for source in self.slis.values():
            used |= {*source.metrics, *(one.metric for one in (*source.events, *source.bad))}
            used |= {source.without.metric} if source.without else set()
        used |= {self.aborts.aborted.metric, self.aborts.finished.metric} if self.aborts else set()
        if missing := used - names:
            raise ValueError(f"{', '.join(sorted(missing))} is not among the metrics; allowed: names listed there")
        edges = {metric.edges for metric in self.metrics if metric.edges} | set(self.edge_flags)
        if missing := edges - set(self.edges):
            raise ValueError(f"{', '.join(sorted(missing))} is not among the edges; allowed: keys listed there")
        return self

    def metric(self, name: str) -> Metric:
        """By its exposed name. Raises InputError, naming its neighbours, for one that the catalog has not."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise InputError(f"is no metric of {self.title}", field="metric", value=name, allowed="see `engines show`")

    def beyond(self, version: str) -> str | None:
        """What to say of a version that is newer than those that the file describes; None of any other."""
        until = self.versions.until
        if until is None or version_key(version) < version_key(until):
            return None
        return f"version {version} is newer than what this catalog describes (before {until})"

    def edges_of(self, metric: Metric, version: str | None = None) -> tuple[float, ...] | None:
        """A histogram's default edges in a version (None: the newest); None where the catalog cannot know them."""
        if metric.edges is None:
            return None
        layouts = self.edges[metric.edges]
        if version is None:
            return layouts[-1].values
        return next((layout.values for layout in layouts if layout.in_version(version)), None)


def engine_names() -> list[str]:
    """Keys of the catalog."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _DATA.iterdir() if entry.name.endswith(".yaml"))


@cache
def engine(name: str) -> Engine:
    """One engine's record. Raises InputError for a name that the catalog has not."""
    if name not in engine_names():
        raise InputError("is no engine of the catalog", field="engine", value=name, allowed=", ".join(engine_names()))
    text = (_DATA / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_config(f"name: {name}\n{text}", Engine, source=f"engine {name}")


def engines() -> list[Engine]:
    """Every engine of the catalog, by name."""
    return [engine(name) for name in engine_names()]
