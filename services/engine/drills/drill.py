"""The faults of an engine in time: which are to come, there, or over. Pure: the caller has the clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from cliffwatch.config import ConfigModel, load_config
from cliffwatch.errors import InputError
from services.engine.drills.conditions import WELL, Conditions
from services.engine.drills.kinds import AnyFault, Fault

MAX_FAULTS = 100  # that are known at a time; of more, those that are over are forgotten

State = Literal["planned", "active", "over"]


class DrillFile(ConfigModel):
    """A schedule of faults."""

    faults: Annotated[tuple[AnyFault, ...], Field(max_length=MAX_FAULTS)]

    @field_validator("faults")
    @classmethod
    def _has_some(cls, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        if not faults:
            raise ValueError("is empty; allowed: one fault or more")
        return faults


def load_drill(path: Path) -> tuple[Fault, ...]:
    """The faults of a file. Raises InputError."""
    return load_config(path, DrillFile).faults


@dataclass(slots=True)
class _Entry:
    fault: Fault
    begins_s: float
    grows_from_s: float  # its beginning, or the process's since then, where it is one of the process
    begun: bool = False
    ended: bool = False

    @property
    def ends_s(self) -> float:
        lives_s = self.fault.lives_s
        return float("inf") if lives_s is None else self.begins_s + lives_s

    def state(self, now_s: float) -> State:
        if self.ended or now_s >= self.ends_s:
            return "over"
        return "active" if now_s >= self.begins_s else "planned"

    def next_event_s(self, now_s: float) -> float:
        """When something about it changes next; infinity for never."""
        state = self.state(now_s)
        if state != "active":
            return self.begins_s if state == "planned" else float("inf")
        changes_s = self.fault.changes_s(now_s - self.grows_from_s)
        return min(self.ends_s, float("inf") if changes_s is None else self.grows_from_s + changes_s)


@dataclass(frozen=True, slots=True)
class Turn:
    """What holds now, and the faults that began since the last turn, in their order."""

    conditions: Conditions
    began: list[Fault] = field(default_factory=list)


class Drill:
    """Faults by their numbers. Times are seconds of the caller's clock.

    Args:
        faults: the schedule; each begins its `at` after `now_s`.
        now_s: the start of the drill.
    """

    def __init__(self, faults: Iterable[Fault] = (), *, now_s: float = 0.0) -> None:
        self._entries: dict[int, _Entry] = {}
        self._number = 0
        for fault in faults:
            self.add(fault, now_s)

    def add(self, fault: Fault, now_s: float) -> int:
        """Plan a fault `fault.at` after now; returns its number. Raises InputError where there are too many."""
        if len(self._entries) >= MAX_FAULTS:
            over = [number for number, entry in self._entries.items() if entry.state(now_s) == "over"]
            if not over:
                raise InputError("too many faults are planned or active", field="faults", allowed=f"{MAX_FAULTS}")
            del self._entries[over[0]]
        self._number += 1
        begins_s = now_s + fault.at
        self._entries[self._number] = _Entry(fault, begins_s, begins_s)
        return self._number

    def clear(self, number: int | None = None) -> int:
        """Forget one fault, or all of them; returns how many there were of it."""
        found = [each for each in self._entries if number in {None, each}]
        for each in found:
            del self._entries[each]
        return len(found)

    def advance(self, now_s: float) -> Turn:
        """Begin what is due. Where a process starts anew, faults of the one before end or grow anew."""
        began = []
        for entry in sorted(self._entries.values(), key=lambda entry: entry.begins_s):
            if not entry.begun and entry.begins_s <= now_s:
                entry.begun = True
                began.append(entry.fault)
                if entry.fault.restarts:
                    self._start_anew(entry.begins_s)
        active = [entry for entry in self._entries.values() if entry.state(now_s) == "active"]
        found = (entry.fault.conditions(now_s - entry.grows_from_s) for entry in active)
        return Turn(reduce(or_, found, WELL), began)

    def next_event_s(self, now_s: float) -> float:
        """When `advance` would find something else; infinity for never."""
        return min((entry.next_event_s(now_s) for entry in self._entries.values()), default=float("inf"))

    def listed(self, now_s: float) -> list[dict[str, Any]]:
        """Each fault: its number, state, beginning and end in seconds from now (null: not known), and what it is."""
        return [
            {
                "id": number,
                "state": entry.state(now_s),
                "begins_in_s": round(entry.begins_s - now_s, 3),
                "ends_in_s": None if entry.fault.lives_s is None else round(entry.ends_s - now_s, 3),
                **entry.fault.model_dump(),
            }
            for number, entry in self._entries.items()
        ]

    def _start_anew(self, at_s: float) -> None:
        for entry in self._entries.values():
            if entry.state(at_s) != "active":
                continue
            if entry.fault.of_process == "anew":
                entry.grows_from_s = at_s
            entry.ended = entry.ended or entry.fault.of_process == "ends"
