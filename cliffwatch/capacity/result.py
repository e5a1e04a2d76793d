"""What a search gives, as `capacity.json` has it: every probe, the answer, the knee, one replica fewer."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cliffwatch.capacity.knee import Knee
from cliffwatch.capacity.search import Answer, Probe
from cliffwatch.config import ConfigModel
from cliffwatch.errors import RunError
from cliffwatch.stats.wilson import wilson

FORMAT = 1
FILE_NAME = "capacity.json"


class Attained(ConfigModel):
    """Share of an objective's requests that were good, with n and a 95 % interval that allows for correlation."""

    n: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


class Record(Probe, ConfigModel):
    """One probe as it is kept.

    Attributes:
        number: of the probe; `folder` is its run, below the search's folder.
        sent_s: how long it sent.
        verdict: of the load generator on itself, null where the run was not closed; `notes` says why it is not VALID,
            and what else is to know.
        attained: by objective; `goodput` of all requests sent, `goodput_per_s` in time.
        decision: what was concluded, in words.
    """

    number: int
    folder: str
    sent_s: float
    verdict: str | None = None
    notes: tuple[str, ...] = ()
    attained: tuple[Attained, ...] = ()
    goodput: Attained | None = None
    goodput_per_s: tuple[float, float, float] | None = None
    decision: str = ""


class Fewer(ConfigModel):
    """The same service with one replica fewer.

    Attributes:
        measured: whether that was probed, else linear scaling is assumed.
        demand: what the workload file itself asks for; null where that is not one rate.
        headroom: share of the capacity (its lower end) that the demand leaves free; negative where it does not fit.
    """

    replicas: int
    measured: bool
    capacity: float | None
    low: float | None
    high: float | None
    demand: float | None
    headroom: float | None


class Capacity(ConfigModel):
    """One search. `unit` is `requests/s` or `users`; `asked` is a digest of what was searched, for a resumed one."""

    format: int = FORMAT
    asked: str
    workload: str
    slo: str
    target: str
    unit: str
    objectives: tuple[str, ...]
    targets: tuple[float, ...]
    precision: float
    confidence: float
    error: float
    max_probes: int
    interrupted: str | None = None
    answer: Answer
    knee: Knee | None = None
    demand: float | None = None
    headroom: float | None = None
    fewer: Fewer | None = None
    notes: tuple[str, ...] = ()
    probes: tuple[Record, ...] = ()


def record(probe: Probe, **facts: object) -> Record:
    """A probe with the shares and the goodput that its evidence gives."""
    evidence = probe.evidence
    shares: dict[str, object] = {}
    if evidence is not None:
        goodput = attained(evidence.goodput.good, evidence.goodput.n, evidence.goodput.inflation)
        sent = evidence.goodput.n / evidence.seconds
        shares = {
            "attained": tuple(attained(count.good, count.n, count.inflation) for count in evidence.counts),
            "goodput": goodput,
            "goodput_per_s": None
            if goodput.share is None or goodput.low is None or goodput.high is None
            else (goodput.share * sent, goodput.low * sent, goodput.high * sent),
        }
    return Record.model_validate({**probe.model_dump(), **facts, **shares})


def attained(good: int, n: int, inflation: float) -> Attained:
    """A share with its Wilson interval of n / inflation requests; unknown where there are none."""
    if not n:
        return Attained(n=0)
    low, high = wilson(good / inflation, n / inflation)
    return Attained(n=n, share=good / n, low=low, high=high)


def one_fewer(answer: Answer, replicas: int, demand: float | None, measured: Answer | None = None) -> Fewer:
    """Capacity without one of `replicas` (2 or more): as measured, or by linear scaling of what all of them have."""
    scale = (replicas - 1) / replicas
    source = measured or answer

    def scaled(value: float | None) -> float | None:
        return value if value is None or measured is not None else value * scale

    low = scaled(source.low)
    return Fewer(
        replicas=replicas - 1,
        measured=measured is not None,
        capacity=scaled(source.capacity),
        low=low,
        high=scaled(source.high),
        demand=demand,
        headroom=headroom(low, demand),
    )


def headroom(low: float | None, demand: float | None) -> float | None:
    """Share of a capacity that a demand leaves free."""
    return None if not low or demand is None else 1 - demand / low


def write(folder: Path, capacity: Capacity) -> None:
    """Replace `capacity.json` atomically. Raises RunError where the folder cannot be written."""
    path = folder / FILE_NAME
    fresh = path.with_suffix(".json.new")
    try:
        fresh.write_text(capacity.model_dump_json(indent=2) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise RunError(f"cannot be written: {error.strerror or error}", file=path) from error


def read(folder: Path) -> Capacity:
    """Raises RunError where there is none, or none of this version."""
    path = folder / FILE_NAME
    try:
        return Capacity.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError("holds no capacity search", file=folder, allowed=f"a folder with a {FILE_NAME}") from error
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise RunError(f"cannot be read: {str(error).splitlines()[0]}", file=path) from error
