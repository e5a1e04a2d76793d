"""A face: what makes the one engine look like one server of the world, as a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cliffwatch.engines.catalog import Engine, engine, version_key
from cliffwatch.errors import InputError
from services.engine.answers import Wire
from services.engine.faults import BUSY, FaultBody, RequestFault
from services.engine.http import Connection, Request
from services.engine.metric_families import Shows, families
from services.engine.metrics import Metrics

if TYPE_CHECKING:
    from services.engine.service import Service

Endpoint = Callable[["Service", Connection, Request], None]
Routes = Mapping[str, Mapping[str, Endpoint]]  # path, method
Expose = Callable[[Metrics, str], tuple[bytes, str]]  # (metrics, the Accept header) to the text and its type


@dataclass(frozen=True, slots=True)
class Face:
    """One kind of server.

    Attributes:
        name: its key in the catalog of engines.
        version: the one it speaks unless asked for another.
        labels: of its metrics, with their values; `{model}` stands for the model's name.
        wire: how it writes OpenAI's answers.
        routes: of a version and a model's name.
        uncounted: paths that its HTTP metrics leave out.
        guarded: beginnings of paths that an API key is asked for.
        late: whether a metric's series appears with its first observation only.
        any_model: whether it answers for any model's name, with that name.
        not_found: what a path says that it has not.
        busy: what a full queue says, by the option whose limit it is; the status is 503.
        metrics_port: the usual port of its metrics, with `metrics_routes`; None where they are on the API's.
    """

    name: str
    version: str
    shows: Shows
    labels: Mapping[str, str]
    wire: Wire
    fault_body: Callable[[str], FaultBody]
    routes: Callable[[str, str], Routes]
    expose: Expose
    created: bool = False
    process: bool = False
    late: bool = False
    uncounted: frozenset[str] = frozenset()
    guarded: tuple[str, ...] = ("/v1/",)
    any_model: bool = False
    not_found: Callable[[str], RequestFault] = field(default=lambda path: RequestFault(404, "Not Found"))  # noqa: ARG005
    busy: Mapping[str, str] = field(default_factory=lambda: BUSY)
    metrics_port: int | None = None
    metrics_routes: Callable[[str, str], Routes] = field(default=lambda version, model: {})  # noqa: ARG005

    @property
    def engine(self) -> Engine:
        """What the catalog knows of it."""
        return engine(self.name)

    def spoken(self, version: str, *, field: str = "--engine-version") -> str:
        """The version asked for, or the face's own for an empty one. Raises InputError for one it cannot be."""
        span = self.engine.versions
        if version and not (version_key(version) and span.in_version(version)):
            allowed = f"from {span.since}, before {span.until}"
            raise InputError(
                f"is no version of {self.engine.title} that is known",
                field=field, value=version, allowed=allowed,
            )  # fmt: skip
        return version or self.version

    def metrics(self, version: str, model: str, max_model_len: int) -> Metrics:
        """Its families at that version, none of them fed yet."""
        labels = {label: value.replace("{model}", model) for label, value in self.labels.items()}
        shown = families(self.engine, version, self.shows, labels, max_model_len, late=self.late)
        return Metrics(shown, created=self.created, process=self.process)
