"""Surfaces as the API's answers: pure functions of a reader and checked parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from cliffwatch.records.figures import FIGURES
from cliffwatch.records.reader import RunReader
from cliffwatch.roofline.hardware import load_hardware
from cliffwatch.roofline.model import load_model
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.knees import KneeCurve, Knees, knees, moves
from cliffwatch.surface.measured import read_cells
from cliffwatch.surface.model import Surface
from cliffwatch.surface.use import PARTS, Share, UsedCell, UseTable, laid, use
from cliffwatch.surface.words import said, said_knee, said_move, said_use
from services.slo.parameters import AtParameters, KneeParameters, UseParameters, label
from services.slo.surface_models import (
    BreakItem,
    KneeCurves,
    KneeItem,
    KneeMove,
    KneeMoves,
    ShareTable,
    SurfaceAnswer,
    UseAnswer,
)


def at(run_id: str, reader: RunReader, asked: AtParameters) -> SurfaceAnswer:
    """The latency at a place. Raises InputError outside what was measured, or where too little was."""
    surface = Surface(read_cells(reader, asked.metric, cached=asked.cached))
    found = surface.at(asked.input_tokens, asked.batch, statistic=asked.statistic, extrapolate=asked.extrapolate)
    return SurfaceAnswer(run=run_id, says=list(said(found)), **asdict(found))


def knees_of(reader: RunReader, asked: KneeParameters) -> Knees:
    """The curves along an axis. Raises InputError as `knees`."""
    return knees(reader, asked.metric, asked.axis)


def curves_of(run_id: str, found: Knees) -> KneeCurves:
    """Curves with their knees as an answer."""
    return KneeCurves(
        run=run_id,
        metric=found.metric,
        label=label(found.metric),
        unit=FIGURES[found.metric].unit,
        axis=found.axis,
        axis_words=found.axis.replace("_", " "),
        by=found.by,
        by_words=found.by.replace("_", " "),
        curves=[_curve(one, found.metric) for one in found.curves],
        surest=None if found.surest is None else found.surest.of,
    )


def moves_between(run_id: str, against_id: str, found: Knees, against: Knees) -> KneeMoves:
    """How far this run's knees are from the other one's."""
    items = [
        KneeMove(of=of, shown=moved.shown, says=said_move(moved), **asdict(moved))
        for of, moved in moves(against, found)
    ]
    return KneeMoves(run=run_id, against=against_id, metric=found.metric, axis=found.axis, moves=items)


def used(run_id: str, reader: RunReader, asked: UseParameters) -> UseAnswer:
    """Shares of the hardware. Raises InputError where the part or the number format cannot be told."""
    deployment = Deployment(
        hardware=load_hardware(asked.hardware),
        model=load_model(asked.model),
        weights=asked.weights,
        cache=asked.kv_cache_dtype,
        tensor_parallel=asked.tensor_parallel,
    )
    cells = read_cells(reader, PARTS[asked.part].metric, cached=asked.cached)
    found = use(deployment, cells, asked.part)
    table = laid(found)
    return UseAnswer(
        run=run_id,
        hardware=deployment.hardware.name,
        model=deployment.model.name,
        part=asked.part,
        metric=cells.metric,
        cache=cells.cache,
        peak_flop_s=deployment.peak_flop_s,
        bandwidth_byte_s=deployment.bandwidth_byte_s,
        rows=list(table.rows),
        columns=[str(batch) for batch in table.batches],
        counts=[[0 if one is None else one.n for one in line] for line in table.cells],
        arithmetic=_shares(table, lambda one: one.arithmetic),
        bandwidth=_shares(table, lambda one: one.bandwidth),
        says=said_use(deployment, found),
    )


def _shares(table: UseTable, chosen: Callable[[UsedCell], Share | None]) -> ShareTable:
    shares = [[None if one is None else chosen(one) for one in line] for line in table.cells]
    return ShareTable(
        values=[[share and share.value for share in line] for line in shares],
        lows=[[share and share.low for share in line] for line in shares],
        highs=[[share and share.high for share in line] for line in shares],
    )


def _curve(one: KneeCurve, metric: str) -> KneeItem:
    return KneeItem(
        of=one.of,
        x=[point.x for point in one.points],
        values=[point.value for point in one.points],
        lows=[point.low for point in one.points],
        highs=[point.high for point in one.points],
        counts=[point.n for point in one.points],
        corners=list(one.corners),
        breaks=[BreakItem(**asdict(each)) for each in one.knee.breaks],
        says=said_knee(one.knee, metric),
    )
