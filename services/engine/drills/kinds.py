"""The kinds of faults: what a person writes of each, and the conditions it makes of its age."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number, Seconds, Share
from services.engine.drills.conditions import WELL, Break, Conditions, Refusal

LEAK_TICK_S = 0.1  # a leak goes in steps no finer than this
MONTH_S = 30 * 86400.0

Moment = Annotated[Seconds, Field(ge=0, le=MONTH_S)]
Span = Annotated[Seconds, Field(gt=0, le=MONTH_S)]
Times = Annotated[Number, Field(ge=1, le=1000)]
Part = Annotated[Share, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=0, le=1_000_000)]


class Fault(ConfigModel):
    """One fault; its age counts from its beginning.

    Attributes:
        at: when it begins, after the start of the drill or, by the API, after now.
        restarts: whether the engine's process starts anew at its beginning.
        of_process: what becomes of it when the process starts anew: it `stays`, `ends`, or grows `anew`.
    """

    restarts: ClassVar[bool] = False
    of_process: ClassVar[Literal["stays", "ends", "anew"]] = "stays"
    simulated: ClassVar[bool] = False
    kind: str
    at: Moment = 0.0

    @property
    def next_version(self) -> str | None:
        """Of the process that it starts; None where that stays."""
        return None

    @property
    def lives_s(self) -> float | None:
        """How old it becomes; None where only a person ends it."""
        raise NotImplementedError

    def conditions(self, age_s: float) -> Conditions:
        """What is wrong because of it at that age."""
        raise NotImplementedError

    def changes_s(self, age_s: float) -> float | None:  # noqa: ARG002  most stay as they are
        """The next age at which its conditions change while it lives; None where they stay."""
        return None


class _Lasting(Fault):
    lasts: Span | None = None

    @property
    def lives_s(self) -> float | None:
        return self.lasts


class SlowGpu(_Lasting):
    """Every step takes `factor` times as long."""

    simulated = True
    kind: Literal["slow-gpu"]
    factor: Times

    def conditions(self, age_s: float) -> Conditions:  # noqa: ARG002
        return Conditions(slowness=self.factor)


class MemoryLeak(_Lasting):
    """Blocks of the key-value cache get lost, as far as there are free ones; they are back when the fault is over."""

    of_process = "anew"
    simulated = True
    kind: Literal["memory-leak"]
    blocks_per_minute: Annotated[Number, Field(gt=0, le=1e9)]

    def conditions(self, age_s: float) -> Conditions:
        return Conditions(lost_blocks=int(self.blocks_per_minute * age_s / 60))

    def changes_s(self, age_s: float) -> float | None:
        return age_s + max(LEAK_TICK_S, 60 / self.blocks_per_minute)


class Hang(_Lasting):
    """No step ends: streams stay open, requests are taken, no token comes."""

    of_process = "ends"
    simulated = True
    kind: Literal["hang"]

    def conditions(self, age_s: float) -> Conditions:  # noqa: ARG002
        return Conditions(hung=True)


class Errors(_Lasting):
    """A share of the requests is answered with an error status."""

    kind: Literal["errors"]
    share: Part
    status: int = 500

    @field_validator("status")
    @classmethod
    def _is_an_error(cls, status: int) -> int:
        known = {each.value for each in HTTPStatus if each >= HTTPStatus.BAD_REQUEST}
        if status not in known:
            raise ValueError("is no status of an error; allowed: one that HTTP knows, 400 to 599")
        return status

    def conditions(self, age_s: float) -> Conditions:  # noqa: ARG002
        return Conditions(refusals=(Refusal(self.share, self.status),))


class StreamErrors(_Lasting):
    """A share of the answers ends in an error after some tokens; with status 500 where it is not streamed."""

    kind: Literal["stream-errors"]
    share: Part
    after_tokens: Tokens = 1

    def conditions(self, age_s: float) -> Conditions:  # noqa: ARG002
        return Conditions(breaks=(Break(self.share, self.after_tokens, "error"),))


class DroppedConnections(_Lasting):
    """The connection of a share of the answers is cut after some tokens."""

    kind: Literal["dropped-connections"]
    share: Part
    after_tokens: Tokens = 1

    def conditions(self, age_s: float) -> Conditions:  # noqa: ARG002
        return Conditions(breaks=(Break(self.share, self.after_tokens, "cut"),))


class _Start(Fault):
    """The process starts anew: it loads (503 to everybody), then is slow until it is warm."""

    restarts = True
    load: Moment = 5.0
    warm_up: Moment = 10.0
    warm_up_factor: Times = 3.0

    def phases(self) -> tuple[tuple[float, Conditions], ...]:
        """How long each lasts, and what is wrong in it."""
        return (self.load, Conditions(loading=True)), (self.warm_up, Conditions(slowness=self.warm_up_factor))

    @property
    def lives_s(self) -> float:
        return sum(length_s for length_s, _ in self.phases())

    def conditions(self, age_s: float) -> Conditions:
        return next((found for end_s, found in self._ends() if age_s < end_s), WELL)

    def changes_s(self, age_s: float) -> float | None:
        return next((end_s for end_s, _ in self._ends() if age_s < end_s), None)

    def _ends(self) -> Iterator[tuple[float, Conditions]]:
        end_s = 0.0
        for length_s, found in self.phases():
            end_s += length_s
            yield end_s, found


class ColdStart(_Start):
    """A start without anybody having noticed an end: nothing but loading and warming up."""

    kind: Literal["cold-start"]


class _Death(_Start):
    """Connections are cut and nobody is there for a while; then a cold start."""

    down: Moment = 2.0

    def phases(self) -> tuple[tuple[float, Conditions], ...]:
        return (self.down, Conditions(down=True)), *super().phases()


class Crash(_Death):
    """The process dies, and another takes its place."""

    kind: Literal["crash"]


class Upgrade(_Death):
    """The process makes place for one of another version: with its names, labels and edges."""

    kind: Literal["upgrade"]
    version: str

    @property
    def next_version(self) -> str:
        return self.version


AnyFault = Annotated[
    SlowGpu | MemoryLeak | Hang | Errors | StreamErrors | DroppedConnections | ColdStart | Crash | Upgrade,
    Field(discriminator="kind"),
]
