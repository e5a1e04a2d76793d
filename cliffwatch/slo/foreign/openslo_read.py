"""OpenSLO v1 becomes an SLO file: one that `slo export` wrote without any loss, others as PromQL or a known SLI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from cliffwatch.config import check_config
from cliffwatch.errors import InputError
from cliffwatch.slo.foreign.document import ForeignFile, Pledge, not_kept
from cliffwatch.slo.foreign.openslo_model import Indicator, Service, Slo, Threshold
from cliffwatch.slo.foreign.openslo_write import API, FILE, OBJECTIVE, openslo_documents
from cliffwatch.slo.foreign.take import Imported, take
from cliffwatch.slo.spec import SloFile

Documents = Sequence[dict[str, Any]]


def is_openslo(document: dict[str, Any]) -> bool:
    """Whether a document says that it is OpenSLO's, of any version."""
    return str(document.get("apiVersion", "")).startswith("openslo/")


def read_openslo(documents: Documents, *, engine_name: str | None, source: str) -> Imported:
    """All documents of one service. Raises InputError."""
    for number, one in enumerate(documents):
        if one.get("apiVersion") != API:
            raise InputError("is no version that is known", file=_place(source, number), field="apiVersion",
                             value=one.get("apiVersion"), allowed=API)  # fmt: skip
    slos = [check_config(one, Slo, source=_place(source, at)) for at, one in _of_kind(documents, "SLO")]
    services = [check_config(one, Service, source=_place(source, at)) for at, one in _of_kind(documents, "Service")]
    _of_one_service(slos, source)
    service = next((one for one in services if one.metadata.name == slos[0].spec.service), None)
    notes = [f"not kept: the {one.get('kind')} {_name(one)}" for one in documents if one.get("kind") not in _KINDS]
    described: list[Slo | Service] = [*slos, *([service] if service else [])]
    notes += [f"not kept: {key} of {model.metadata.name}" for model in described for key in not_kept(model)]
    if all(OBJECTIVE in one.metadata.annotations for one in slos) and service and FILE in service.metadata.annotations:
        slo = _ours(slos, service, source=source)
        return Imported(slo, (*notes, *_changed(slo, documents)))
    notes += [f"not kept: annotation {key} of {one.metadata.name}" for one in slos for key in one.metadata.annotations]
    pledges = tuple(pledge for one in slos for pledge in _pledges(one, documents, source=source))
    title = service.metadata.displayName or service.metadata.name if service else slos[0].spec.service
    description = service.spec.description if service else ""
    return take(
        ForeignFile(title, pledges, description, _period(slos, source), notes=tuple(notes)),
        engine_name=engine_name,
        source=source,
    )


_KINDS = ("SLO", "Service", "SLI")


def _of_kind(documents: Documents, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, one) for number, one in enumerate(documents) if one.get("kind") == kind)


def _place(source: str, number: int) -> str:
    return source if number == 0 else f"{source} (document {number + 1})"


def _name(document: dict[str, Any]) -> object:
    metadata = document.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def _of_one_service(slos: Sequence[Slo], source: str) -> None:
    if not slos:
        raise InputError("holds no SLO", file=source, field="kind", allowed="documents of kind SLO")
    if len(named := sorted({one.spec.service for one in slos})) > 1:
        raise InputError("holds several services", file=source, field="spec.service", value=", ".join(named),
                         allowed="a file for each service")  # fmt: skip


def _period(slos: Sequence[Slo], source: str) -> dict[str, Any]:
    periods = [window.period for one in slos for window in one.spec.timeWindow]
    if any(one != periods[0] for one in periods) or 0 < len(periods) < len(slos):
        raise InputError("differs among the SLOs", file=source, field="spec.timeWindow", allowed="one for all of them")
    return periods[0] if periods else {}


def _ours(slos: Sequence[Slo], service: Service, *, source: str) -> SloFile:
    """What annotations hold, and what OpenSLO has words for from there: it may have been changed."""
    file = _held(service.metadata.annotations[FILE], FILE, source)
    file = {
        "description": service.spec.description,
        **file,
        "name": service.metadata.displayName or service.metadata.name,
    }
    if "watch" in file:
        file["watch"] = {**file["watch"], **_period(slos, source)}
    objectives = []
    for one in slos:
        (threshold,) = one.spec.objectives[:1]
        held = _held(one.metadata.annotations[OBJECTIVE], OBJECTIVE, source)
        objectives.append({**held, "target": threshold.share, **_slices(threshold, held.get("slices"))})
    return check_config({**file, "objectives": objectives}, SloFile, source=source)


def _held(text: str, key: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON", file=source, field=key, value=text) from error
    if not isinstance(found, dict) or not isinstance(found.get("watch", {}), dict):
        raise InputError("must be a mapping of keys to values", file=source, field=key, value=text)
    return found


def _slices(threshold: Threshold, held: object = None) -> dict[str, Any]:
    if threshold.timeSliceWindow is None:
        return {}
    rest = held if isinstance(held, dict) else {}
    share = {} if "tokens_per_s" in rest else {"share": threshold.timeSliceTarget}
    return {"slices": {**rest, "length": threshold.timeSliceWindow, **share}}


def _changed(slo: SloFile, documents: Documents) -> Iterator[str]:
    """Queries that are not those that would be written now: the annotations are what counts."""
    again = [one["spec"].get("indicator") for one in openslo_documents(slo)[1:]]
    for (_, before), now in zip(_of_kind(documents, "SLO"), again, strict=True):
        if (before["spec"].get("indicator") or {}).get("spec") != now["spec"]:
            yield f"the indicator of {_name(before)} was not read: annotation {OBJECTIVE} says what is counted"
        if len(before["spec"]["objectives"]) > 1:
            yield f"not kept: objectives after the first of {_name(before)}"


def _pledges(one: Slo, documents: Documents, *, source: str) -> Iterator[Pledge]:
    ratio = _indicator(one, documents, source=source).spec.ratioMetric
    total = ratio.total.metricSource.spec.query
    side = ratio.bad or ratio.good
    assert side is not None  # noqa: S101  checked when it was read
    query = side.metricSource.spec.query
    bad = query if ratio.bad else f"{total} - {query}" if _plain(total, query) else f"({total}) - ({query})"
    several = len(one.spec.objectives) > 1
    for number, threshold in enumerate(one.spec.objectives, start=1):
        name = f"{one.metadata.name}-{number}" if several else one.metadata.name
        yield Pledge(name, threshold.share, total, bad, _slices(threshold).get("slices"))


def _plain(*queries: str) -> bool:
    return all(query.startswith("sum(") for query in queries)


def _indicator(one: Slo, documents: Documents, *, source: str) -> Indicator:
    place = f"{source}: {one.metadata.name}"
    if one.spec.indicator is not None:
        return check_config(one.spec.indicator, Indicator, source=f"{place}, indicator")
    for _, document in _of_kind(documents, "SLI"):
        if _name(document) == one.spec.indicatorRef:
            return check_config(document, Indicator, source=f"{place}, SLI {one.spec.indicatorRef}")
    raise InputError("names no SLI of this file", file=place, field="spec.indicatorRef", value=one.spec.indicatorRef)
