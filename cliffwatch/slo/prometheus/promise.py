"""What alerts are about."""

from __future__ import annotations

from typing import Protocol

from cliffwatch.slo.slices import Slices


class Promise(Protocol):
    """An objective, or a composite of some."""

    @property
    def label(self) -> str: ...
    @property
    def target(self) -> float: ...
    @property
    def slices(self) -> Slices | None: ...
