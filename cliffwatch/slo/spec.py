"""The SLO file: what is promised, in YAML, and the presets that come with the project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from cliffwatch.config import ConfigModel, parse_config, read_config_text
from cliffwatch.cost.price import HardwareCost
from cliffwatch.errors import InputError
from cliffwatch.slo.sli import SLIS, Clock, Sli
from cliffwatch.slo.slices import Name, Promql, Slices, Target
from cliffwatch.slo.watch import Watch
from cliffwatch.stats.percentile import sample_needs
from cliffwatch.units import Seconds, TokenCount, format_seconds, format_tokens, parse_share

PRESETS = Path(__file__).parent / "presets"
MAX_OBJECTIVES = 64


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("must be longer than nothing, such as 250ms or 2s")
    return seconds


Threshold = Annotated[Seconds, AfterValidator(_positive)]
_QUANTILE = re.compile(r"[pP](\d{1,2}(?:\.\d{1,5})?)")
_OPTIONAL = ("threshold", "input_tokens", "clock", "slices", "promql")  # keys that not every SLI takes


class TokenRange(ConfigModel):
    """A bucket of input lengths, in tokens a prompt; both ends belong to it."""

    min: TokenCount = Field(default=0, ge=0)
    max: TokenCount | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> TokenRange:
        if self.max is not None and self.min > self.max:
            raise ValueError(f"min ({self.min}) must not be above max ({self.max})")
        if self.max is None and self.min == 0:
            raise ValueError("give min, max or both")
        return self

    @property
    def text(self) -> str:
        """Such as `8k to 32k`, `up to 8k`, `from 8k`."""
        if self.max is None:
            return f"from {format_tokens(self.min)}"
        upper = format_tokens(self.max)
        return f"{format_tokens(self.min)} to {upper}" if self.min else f"up to {upper}"


class Objective(ConfigModel):
    """One promise: the share `target` of the requests has an `sli` of at most `threshold` seconds.

    `quantile: p95` says the same as `target: 95%`: at most 5 % are above the threshold. With `slices` it says so of
    each slice of time (`slices.share`), and `target` is of the slices.

    Attributes:
        name: of its own, in labels of rules; else one is made of what it promises.
    """

    sli: Sli
    threshold: Threshold | None = None
    target: Target
    name: Name | None = None
    input_tokens: TokenRange | None = None
    clock: Clock | None = None
    slices: Slices | None = None
    promql: Promql | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_quantile(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "quantile" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "quantile"}
        share = _share_of(data["quantile"])
        if "threshold" not in rest:
            raise ValueError("quantile needs a threshold, such as 2.5s")
        if rest.get("slices") is None:
            if "target" in rest:
                raise ValueError("quantile and target say the same; allowed: one of them, or both with slices")
            return {**rest, "target": share}
        slices = rest["slices"] if isinstance(rest["slices"], dict) else {"length": rest["slices"]}
        if "share" in slices:
            raise ValueError("quantile and slices.share say the same; allowed: one of them")
        return {**rest, "slices": {**slices, "share": share}}

    @model_validator(mode="after")
    def _fits_its_sli(self) -> Objective:
        traits = SLIS[self.sli]
        given = {key for key in _OPTIONAL if getattr(self, key) is not None}
        if self.threshold is None and "threshold" in traits.needs:
            raise ValueError(f"{self.sli} needs a threshold, such as 2.5s or 50ms")
        if not traits.figures and given & {"threshold", "clock"} - {*traits.needs}:
            raise ValueError(f"{self.sli} has neither a threshold nor a clock")
        if self.clock is not None and self.clock not in traits.figures:
            raise ValueError(f"{self.sli} is the same on every clock; leave clock out")
        for key in traits.needs:
            if getattr(self, key) is None:
                raise ValueError(f"{self.sli} needs {key}")
        if other := given - {*traits.needs, *traits.may}:
            raise ValueError(f"{self.sli} takes no {min(other)}")
        if self.slices is not None:
            needed, other_key = ("tokens_per_s", "share") if self.sli is Sli.THROUGHPUT else ("share", "tokens_per_s")
            if getattr(self.slices, needed) is None or getattr(self.slices, other_key) is not None:
                raise ValueError(f"slices of {self.sli} need {needed}, and no {other_key}")
        return self

    def figure(self, *, open_loop: bool) -> str | None:
        """The column this is judged on: by default from the intended time in open-loop runs, else from sent."""
        figures = SLIS[self.sli].figures
        preferred = self.clock or (Clock.INTENDED if open_loop else Clock.SENT)
        return figures.get(preferred) or figures.get(Clock.SENT)

    @property
    def needed(self) -> int:
        """Requests below which the target's own percentile rests on few samples: ceil(10 / (1 - target))."""
        return sample_needs(self.target).sure

    @property
    def label(self) -> str:
        """Such as `TTFT ≤ 2.5 s, 8k to 32k input tokens` or `availability`."""
        name = (self.name if self.promql is not None else None) or SLIS[self.sli].label
        text = name if self.threshold is None else f"{name} ≤ {format_seconds(self.threshold)}"
        text += f" from {self.clock}" if self.clock else ""
        text += self.slices.text if self.slices else ""
        return f"{text}, {self.input_tokens.text} input tokens" if self.input_tokens else text

    @property
    def on_runs(self) -> bool:
        """Whether rows of a load run tell it."""
        return SLIS[self.sli].on_runs and self.slices is None

    @property
    def counted(self) -> str:
        """What the target is a share of, on Prometheus."""
        return "slices" if self.slices else "events"

    def refuse_for_runs(self, *, field: str) -> None:
        """Raises InputError where rows of a load run cannot tell it; `field` names it."""
        if not self.on_runs:
            what = "slices" if SLIS[self.sli].on_runs else self.sli.value
            allowed = "an SLO file for load runs without it"
            raise InputError("is known to Prometheus only", field=field, value=what, allowed=allowed)


def _share_of(quantile: object) -> float:
    """0.95 of `p95` and of `95%`. Raises ValueError."""
    match = _QUANTILE.fullmatch(quantile) if isinstance(quantile, str) else None
    try:
        return parse_share(f"{match[1]}%" if match else quantile)
    except ValueError as error:
        raise ValueError("quantile must be written such as p95, p99.9 or 95%") from error


def _some(objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
    """A check of its own, since pydantic reports a wrong length as well wherever one element is wrong."""
    if not 1 <= len(objectives) <= MAX_OBJECTIVES:
        raise ValueError(f"must be a list of 1 to {MAX_OBJECTIVES} objectives")
    return objectives


class SloFile(ConfigModel):
    """A named set of objectives, and what the hardware costs.

    `count_client_errors` also holds the target to account for HTTP 4xx other than 429: by default a wrong model name or
    an over-long prompt is the caller's mistake and no bad event of availability. `watch` says how Prometheus is asked;
    load runs are judged without it.
    """

    name: str = Field(min_length=1, max_length=100)
    description: str = Field(default="", max_length=2000)
    objectives: Annotated[tuple[Objective, ...], AfterValidator(_some)]
    cost: HardwareCost | None = None
    count_client_errors: bool = False
    watch: Watch | None = None

    @field_validator("objectives")
    @classmethod
    def _no_twins(cls, value: tuple[Objective, ...]) -> tuple[Objective, ...]:
        seen: set[str] = set()  # by label, which tells objectives apart in reports and in the service's metrics
        for number, one in enumerate(value):
            if one.label in seen:
                raise ValueError(
                    f"objective {number + 1} ({one.label}) stands twice, to three digits; allowed: one of each promise"
                )
            seen.add(one.label)
        if {one.sli for one in value} == {Sli.GOODPUT}:
            raise ValueError("goodput is of requests that meet every other objective; allowed: others beside it")
        return value


def refuse_for_runs(slo: SloFile, *, source: str) -> None:
    """Raises InputError for the first objective that rows of a load run cannot tell."""
    for number, one in enumerate(slo.objectives):
        try:
            one.refuse_for_runs(field=f"objectives[{number}]")
        except InputError as error:
            error.file = source
            raise


def presets() -> dict[str, Path]:
    """The SLO files that come with the project, by name."""
    return {path.stem: path for path in sorted(PRESETS.glob("*.yaml"))}


def load_slo(path_or_preset: str | Path) -> SloFile:
    """Read an SLO file, or a preset by its name where no such file exists. Raises InputError."""
    return parse_slo(slo_text(path_or_preset), source=str(path_or_preset))


def load_run_slo(path_or_preset: str | Path) -> SloFile:
    """`load_slo` for load runs: refused where an objective is one that their rows cannot tell. Raises InputError."""
    slo = load_slo(path_or_preset)
    refuse_for_runs(slo, source=str(path_or_preset))
    return slo


def slo_text(path_or_preset: str | Path) -> str:
    """The text of an SLO file or preset, as a run folder keeps it. Raises InputError."""
    path = Path(path_or_preset)
    if not path.exists():
        known = presets()
        if (preset := known.get(str(path_or_preset))) is None:
            raise InputError("no such file", file=path, allowed=f"an SLO file, or a preset: {', '.join(known)}")
        path = preset
    return read_config_text(path)


def parse_slo(text: str, *, source: str) -> SloFile:
    """Check the text of an SLO file; errors name `source`. Raises InputError."""
    return parse_config(text, SloFile, source=source)
