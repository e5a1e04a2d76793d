"""Surfaces as the API's answers: pure functions of a reader and checked parameters."""

from __future__ import annotations

from dataclasses import asdict

from cliffwatch.records.reader import RunReader
from cliffwatch.surface.measured import read_cells
from cliffwatch.surface.model import Surface
from cliffwatch.surface.words import said
from services.slo.parameters import AtParameters
from services.slo.surface_models import SurfaceAnswer


def at(run_id: str, reader: RunReader, asked: AtParameters) -> SurfaceAnswer:
    """The latency at a place. Raises InputError outside what was measured, or where too little was."""
    surface = Surface(read_cells(reader, asked.metric, cached=asked.cached))
    found = surface.at(asked.input_tokens, asked.batch, statistic=asked.statistic, extrapolate=asked.extrapolate)
    return SurfaceAnswer(run=run_id, says=list(said(found)), **asdict(found))
