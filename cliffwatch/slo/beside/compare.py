"""A run folder and a Prometheus in, both sides of the run out."""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from cliffwatch.engines.catalog import Engine, engine, engine_names
from cliffwatch.errors import CliffwatchError, InputError
from cliffwatch.records.manifest import Manifest, RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.slo.beside.client import ClientSide, read_client
from cliffwatch.slo.beside.document import Beside, Breakdown, FigureBeside, MeanDocument, Part, ShareBeside
from cliffwatch.slo.beside.engine import FIGURES, MAX_RUN_S, WITH_BUCKETS, EngineSide, Mean, Measured, read_engine
from cliffwatch.slo.live.asks import Asker, instant, read_answer
from cliffwatch.slo.live.clock import clock_note
from cliffwatch.slo.spec import SloFile
from cliffwatch.units import format_seconds

LABELS = {
    "ttft": "TTFT", "e2e": "E2E", "itl": "ITL (between output events)", "queue": "queue", "prefill": "prefill",
    "decode": "decode (first to last token)",
}  # fmt: skip
INSIDE = {"ttft": ("queue", "prefill"), "e2e": ("queue", "prefill", "decode")}
SAME = 0.01
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def beside(reader: RunReader, slo: SloFile | None, ask: Asker, match: Mapping[str, str] | None = None) -> Beside:
    """Lay a run beside the engine's own metrics.

    Args:
        slo: whose thresholds on TTFT and E2E are compared.
        match: labels of the engine's series, beside its model's name (which it may replace).

    Raises:
        InputError: the run is still going on, too long, or its engine is none of the catalog.
        RunError: its shards cannot be read.
        UnreachableError: Prometheus does not answer.
    """
    manifest = reader.manifest
    known, start_s, end_s = _engine(manifest), manifest.t0_unix_ns / 1e9, _end_s(manifest)
    labels = {known.labels["model"]: manifest.model} if "model" in known.labels else {}
    labels |= match or {}
    served = read_engine(known, labels, start_s, end_s, ask)
    late, early = (served.from_s or 0) > start_s, (served.to_s or end_s) < end_s
    sent = _client(reader, served.from_s if late else None, served.to_s if early else None, slo)
    ours, counted = sent.figures["ttft"].n, _n(served, "ttft")
    same = None if counted is None else abs(counted - ours) <= max(1, SAME * ours)
    return Beside(
        run_id=manifest.run_id,
        engine=known.title,
        match=labels,
        run_from_unix_s=start_s,
        run_to_unix_s=end_s,
        from_unix_s=served.from_s,
        to_unix_s=served.to_s,
        whole=served.from_s is not None and not late and not early,
        sent=sent.sent,
        ours=ours,
        served=counted,
        same=same,
        across=sent.across,
        figures=tuple(_figure(key, sent, served) for key in FIGURES),
        breakdowns=tuple(_breakdown(key, sent, served) for key in INSIDE),
        shares=tuple(_share(*one, sent, served) for one in sent.within),
        notes=(*_population(sent, served, same), *_clock(ask), *served.notes),
    )


def read_match(texts: Iterable[str]) -> dict[str, str]:
    """Labels from `LABEL=VALUE`. Raises InputError."""
    found: dict[str, str] = {}
    for text in texts:
        label, equals, value = text.partition("=")
        if not equals or not _LABEL.fullmatch(label) or label == "__name__":
            raise InputError("is no label", field="--engine-match", value=text, allowed="LABEL=VALUE, such as job=vllm")
        found[label] = value
    return found


def _engine(manifest: Manifest) -> Engine:
    name = (manifest.engine or "").split(" ")[0].replace(".", "").replace("-", "")
    if name not in engine_names():
        message = "cannot be laid beside its engine: what it was is not in the catalog"
        raise InputError(message, file=manifest.run_id, value=manifest.engine, allowed=", ".join(engine_names()))
    return engine(name)


def _end_s(manifest: Manifest) -> float:
    """When the last request's end was known; where nobody noted it, when the run was closed."""
    ended_s = None if manifest.ended_unix_s is None else manifest.ended_unix_s - manifest.t0_unix_ns / 1e9
    length_s = ended_s if manifest.load_s is None else manifest.load_s
    if manifest.state is RunState.RUNNING or length_s is None:
        message = "still goes on: the engine's side is told when it has ended"
        raise InputError(message, file=manifest.run_id, allowed="a run that has ended")
    if length_s > MAX_RUN_S:
        value, allowed = format_seconds(length_s), f"up to {format_seconds(MAX_RUN_S)}"
        raise InputError("is too long", file=manifest.run_id, field="its length", value=value, allowed=allowed)
    return manifest.t0_unix_ns / 1e9 + length_s


def _client(reader: RunReader, from_s: float | None, to_s: float | None, slo: SloFile | None) -> ClientSide:
    """The rows between two moments in Unix seconds (None: no limit)."""
    zero_ns = reader.manifest.t0_unix_ns
    from_ns, to_ns = (None if unix_s is None else round(unix_s * 1e9) - zero_ns for unix_s in (from_s, to_s))
    with reader.session() as connection:
        return read_client(connection, from_ns, to_ns, _thresholds(slo))


def _thresholds(slo: SloFile | None) -> tuple[tuple[str, float], ...]:
    """Of the objectives that the engine's histogram can tell too: those on all requests."""
    found = {
        (one.sli.value, one.threshold): None
        for one in (slo.objectives if slo is not None else ())
        if one.threshold is not None and one.sli.value in WITH_BUCKETS and one.input_tokens is None
    }
    return tuple(found)


def _n(served: EngineSide, key: str) -> int | None:
    return served.figures[key].mean.n if key in served.figures else None


def _said(mean: Mean | None) -> MeanDocument | None:
    return None if mean is None else MeanDocument(mean_s=mean.mean_s, n=mean.n)


def _minus(value: float | None, *others: float | None) -> float | None:
    known = [one for one in others if one is not None]
    return None if value is None or len(known) < len(others) else value - sum(known)


def _mean_s(served: EngineSide, key: str) -> float | None:
    return served.figures[key].mean.mean_s if key in served.figures else None


def _figure(key: str, sent: ClientSide, served: EngineSide) -> FigureBeside:
    client, own = sent.figures.get(key), served.figures.get(key)
    return FigureBeside(
        figure=key,
        label=LABELS[key],
        client=_said(client),
        engine=_said(own.mean if own else None),
        difference_s=None if client is None else _minus(client.mean_s, _mean_s(served, key)),
        lacking=served.lacking.get(key),
    )


def _breakdown(key: str, sent: ClientSide, served: EngineSide) -> Breakdown:
    client_s, whole_s = sent.figures[key].mean_s, _mean_s(served, key)
    inside = {part: _mean_s(served, part) if _alike(served, part, key) else None for part in INSIDE[key]}
    parts = {
        **inside,
        "rest of the engine": _minus(whole_s, *inside.values()),
        "network and client": _minus(client_s, whole_s),
    }
    shown = tuple(Part(name=name, mean_s=value) for name, value in parts.items())
    return Breakdown(figure=key, label=LABELS[key], client_s=client_s, parts=shown)


def _alike(served: EngineSide, part: str, whole: str) -> bool:
    """Some engines leave requests that did not wait out of the queue's histogram: its mean is of others then."""
    one, other = _n(served, part), _n(served, whole)
    return one is not None and other is not None and abs(one - other) <= max(1, SAME * other)


def _share(key: str, threshold_s: float, sent: ClientSide, served: EngineSide) -> ShareBeside:
    measured = served.figures.get(key, Measured(Mean(0.0, 0)))
    edges, n, client_n = list(measured.up_to), measured.mean.n, sent.figures[key].n
    below, above = bisect_right(edges, threshold_s) - 1, bisect_left(edges, threshold_s)
    low = edges[below] if below >= 0 else None
    high = edges[above] if above < len(edges) else None
    known = n > 0 and bool(edges)
    return ShareBeside(
        label=LABELS[key],
        threshold_s=threshold_s,
        client=sent.within[key, threshold_s] / client_n if client_n else None,
        client_n=client_n,
        low=None if not known else (0.0 if low is None else measured.up_to[low] / n),
        high=None if not known else (1.0 if high is None else measured.up_to[high] / n),
        low_edge_s=low,
        high_edge_s=high,
        engine_n=n,
    )


def _population(sent: ClientSide, served: EngineSide, same: bool | None) -> list[str]:
    ours, counted = sent.figures["ttft"].n, _n(served, "ttft")
    notes = []
    if counted is not None and same is False:
        more = "its means are of all" if counted > ours else "some of ours are not in its means"
        notes.append(f"the engine counted {counted:,} first tokens, we {ours:,}: {more}")
    if sent.batches:
        notes.append(f"{sent.batches:,} requests are batches: our E2E and decode of each prompt are its batch's")
    if sent.retried:
        notes.append(f"{sent.retried:,} requests were tried again: ours is the last attempt, the engine counts each")
    if sent.across:
        notes.append(f"{sent.across:,} requests were under way at an end of the engine's samples: they are left out")
    if sent.unended:
        notes.append(f"{sent.unended:,} requests were sent and their end was not seen: the engine may have served them")
    notes += [
        f"{key} was counted for {_n(served, key):,} of {_n(served, 'e2e'):,} requests: no part of E2E"
        for key in INSIDE["e2e"]
        if key in served.figures and "e2e" in served.figures and not _alike(served, key, "e2e")
    ]
    return notes


def _clock(ask: Asker) -> list[str]:
    """Whether Prometheus's clock, which stamps its samples, is that of the machine that asks."""
    before_s = time.time()
    try:
        (point,) = read_answer(ask([instant("vector(time())")])[0]).series
    except (CliffwatchError, ValueError):
        return ["how Prometheus's clock stands to this machine's is not known"]
    note = clock_note(point.value, before_s, time.time())
    return [] if note is None else [note]
