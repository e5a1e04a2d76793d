"""The search: which rate to probe next, or the answer. A pure function of what the probes showed.

Bracket first: grow until a probe fails, shrink until one holds. Then place probes about the edge where they tell most,
until its interval is narrow enough or the probes are spent. At the edge no probe is sure of itself; together they are:
their shares are fitted (`response`), and the interval is the fit's. Where the shares jump, so that there is nothing to
fit, the bracket of the sure verdicts is halved until it is narrow enough, and it is the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from cliffwatch.capacity.evidence import Evidence, pool
from cliffwatch.capacity.response import Crossing, crossing
from cliffwatch.capacity.sequential import Outcome, decide

GROWTH = 4.0  # far below the edge; the first rate that is too high tells by its throughput where to go back to
SHRINK = 4.0
BELOW_THROUGHPUT = 0.8  # a server keeps its latencies at about this share of what it answers when overloaded
WIDE_BRACKET = 2.0  # rates further apart than this are not halved between but reached for from the throughput
STEP_LOGITS, MIN_STEP, MAX_STEP = 0.5, 0.02, 0.10  # how far beside the estimate the next probe goes, both ways in turn
INVALID_TRIES, NEAR_BREATH = 2, 1.25  # the load generator is the limit if it fails twice this near to what it can do
# A search that ends when its interval is narrow ends rather where chance made it narrow. So a fit gets this share of
# the error that is allowed; what is left of it in simulations is in docs/capacity.md.
STOPPING = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What is searched: rates from `lowest` to `highest` (None: no end), beginning at `first`.

    `precision` is the width of the interval asked for, as a share of the capacity; `whole` is for numbers of users.
    """

    lowest: float
    highest: float | None
    first: float
    targets: tuple[float, ...]
    precision: float = 0.05
    confidence: float = 0.95
    max_probes: int = 10
    whole: bool = False


class Probe(BaseModel):
    """A finished probe: its rate (or number of users), its verdict, and what it showed, null where nothing."""

    model_config = ConfigDict(frozen=True)

    rate: float
    outcome: Outcome
    evidence: Evidence | None = None


class State(StrEnum):
    """How a search stands, or ended."""

    SEARCHING = "searching"
    FOUND = "found"  # the interval is as narrow as asked
    WIDE = "wide"  # the probes are spent, the interval is what was reached
    AT_LEAST = "at_least"  # it holds at the highest rate
    TOO_HIGH = "too_high"  # it fails at the lowest rate
    GENERATOR = "generator"  # the load generator, not the server, is the limit
    NOTHING = "nothing"  # no probe counts


class Answer(BaseModel):
    """The capacity with its interval, as far as it is known; null is unknown.

    Attributes:
        low, high: the interval; also of a search that goes on, where it is the bracket so far.
        fitted: the interval is the fit's, else that of the nearest sure verdicts on both sides.
        binding: index of the objective that is missed first as the rate rises; null where that is not known.
    """

    model_config = ConfigDict(frozen=True)

    state: State
    capacity: float | None = None
    low: float | None = None
    high: float | None = None
    fitted: bool = False
    binding: int | None = None

    @property
    def width(self) -> float | None:
        """Of the interval, as a share of the capacity."""
        if self.capacity is None or self.low is None or self.high is None:
            return None
        return (self.high - self.low) / self.capacity


@dataclass(frozen=True, slots=True)
class Step:
    """What to do: probe at `rate`, or nothing (None), `answer` being the result."""

    answer: Answer
    rate: float | None = None


def next_step(probes: Sequence[Probe], limits: Limits) -> Step:
    """The next probe, or the end, after these."""
    valid = _pooled([probe for probe in probes if probe.outcome is not Outcome.INVALID], limits)
    refused = [probe.rate for probe in probes if probe.outcome is Outcome.INVALID]
    fits = fitted(valid, limits)
    answer = _answer(valid, limits, fits)
    ended = _ended(valid, limits, answer)
    if ended is None and _out_of_breath(valid, refused, limits):
        ended = State.GENERATOR if valid else State.NOTHING
    if ended is None and len(probes) >= limits.max_probes:
        ended = State.WIDE if valid else State.NOTHING
    if ended is not None:
        return Step(answer.model_copy(update={"state": ended}))
    return Step(answer, _rounded(_within_breath(_next_rate(valid, limits, fits), valid, refused, limits), limits))


def _pooled(valid: Sequence[Probe], limits: Limits) -> list[Probe]:
    """Probes of one rate as one: what each could not decide, they may together."""
    found: dict[float, Probe] = {}
    for probe in valid:
        before = found.get(probe.rate)
        if before is None or before.evidence is None or probe.evidence is None:
            found[probe.rate] = probe
            continue
        evidence = pool(before.evidence, probe.evidence)
        found[probe.rate] = Probe(rate=probe.rate, outcome=decide(evidence, limits.targets), evidence=evidence)
    return list(found.values())


def fitted(valid: Sequence[Probe], limits: Limits) -> dict[int, Crossing]:
    """The crossing of each objective whose probes show one. Overloaded probes have no steady share and stay out."""
    steady = [probe for probe in valid if probe.evidence is not None and not probe.evidence.growing]
    found, confidence = {}, 1 - (1 - limits.confidence) * STOPPING
    for number, target in enumerate(limits.targets):
        counts = [probe.evidence.counts[number] for probe in steady if probe.evidence is not None]
        one = crossing([probe.rate for probe in steady], counts, target, confidence)
        if one is not None:
            found[number] = one
    return found


def _answer(valid: Sequence[Probe], limits: Limits, fits: dict[int, Crossing]) -> Answer:
    low = max((probe.rate for probe in valid if probe.outcome is Outcome.HOLDS), default=None)
    high = min((probe.rate for probe in valid if probe.outcome is Outcome.FAILS), default=None)
    if fits:
        binding = min(fits, key=lambda number: fits[number].rate)
        rate = fits[binding].rate
        inside = min(probe.rate for probe in valid) <= rate <= max(probe.rate for probe in valid)
        if inside:
            ends = min(one.low for one in fits.values()), min(one.high for one in fits.values())
            return Answer(
                state=State.SEARCHING, capacity=rate, low=max(0.0, ends[0]), high=ends[1], fitted=True, binding=binding
            )
    capacity = None if low is None or high is None or low >= high else math.sqrt(low * high)
    return Answer(state=State.SEARCHING, capacity=capacity, low=low, high=high, binding=_worst(valid, limits, high))


def _worst(valid: Sequence[Probe], limits: Limits, rate: float | None) -> int | None:
    """The objective furthest below its target at the lowest rate that fails."""
    counts = next((probe.evidence.counts for probe in valid if probe.evidence and probe.rate == rate), ())
    short = [
        (count.good / count.n - target) / (1 - target) if count.n else 0.0
        for count, target in zip(counts, limits.targets, strict=False)
    ]
    return None if not short or min(short) >= 0 else short.index(min(short))


def _ended(valid: Sequence[Probe], limits: Limits, answer: Answer) -> State | None:
    highest = limits.highest
    if highest is not None and any(p.rate >= highest and p.outcome is Outcome.HOLDS for p in valid):
        return State.AT_LEAST
    if any(p.rate <= limits.lowest and p.outcome is Outcome.FAILS for p in valid):
        return State.TOO_HIGH
    if answer.width is None:
        return None
    neighbours = limits.whole and not answer.fitted and answer.high is not None and answer.high - (answer.low or 0) <= 1
    return State.FOUND if answer.width <= limits.precision or neighbours else None


def _next_rate(valid: Sequence[Probe], limits: Limits, fits: dict[int, Crossing]) -> float:
    if not valid:
        return limits.first
    leaning = {probe.rate: _leans(probe, limits) for probe in valid}
    low = max((rate for rate, holds in leaning.items() if holds), default=None)
    high = min((rate for rate, holds in leaning.items() if not holds), default=None)
    if fits:
        return _beside(min(fits.values(), key=lambda one: one.rate), valid, low, high)
    if high is None:
        return max(leaning) * GROWTH
    throughput = min((p.evidence.answers_per_s for p in valid if p.evidence and p.evidence.growing), default=math.inf)
    reach = high if limits.whole else min(high, throughput)
    if low is not None and _blurred(valid, low, high):
        return _other_side(math.sqrt(low * high), MAX_STEP, valid)
    if low is None:
        return min(BELOW_THROUGHPUT * reach, high / SHRINK if reach == high else high)
    if reach / low > WIDE_BRACKET:
        return max(BELOW_THROUGHPUT * reach if reach < high else math.sqrt(low * high), low * math.sqrt(WIDE_BRACKET))
    return math.sqrt(low * high)


def _blurred(valid: Sequence[Probe], low: float, high: float) -> bool:
    """Whether the bracket is of noise: its ends cross, or are close though not sure. Further out more is seen."""
    unsure = any(probe.outcome is Outcome.UNDECIDED for probe in valid if probe.rate in {low, high})
    return low >= high or (unsure and high / low < 1 + 2 * MAX_STEP)


def _beside(fit: Crossing, valid: Sequence[Probe], low: float | None, high: float | None) -> float:
    """A little beside the estimate, on the side that knows less: both sides give the slope, which gives the edge."""
    wanted = _other_side(fit.rate, min(MAX_STEP, max(MIN_STEP, STEP_LOGITS / (fit.slope * fit.rate))), valid)
    # an estimate far outside of what was seen is reached for in steps
    return min(max(wanted, (high or wanted) / SHRINK), (low or wanted) * GROWTH)


def _other_side(rate: float, share: float, valid: Sequence[Probe]) -> float:
    """Beside `rate` by a share of it, where there was less load so far within twice that distance."""
    near = [(p.rate, p.evidence.seconds) for p in valid if p.evidence and abs(p.rate / rate - 1) <= 2 * share]
    below = sum(seconds for at, seconds in near if at <= rate)
    return rate * (1 + share if sum(seconds for _, seconds in near) < 2 * below else 1 - share)


def _leans(probe: Probe, limits: Limits) -> bool:
    """Whether a probe is rather on the side that holds: its verdict, or its shares where that is open."""
    if probe.outcome is not Outcome.UNDECIDED or probe.evidence is None:
        return probe.outcome is Outcome.HOLDS
    pairs = zip(probe.evidence.counts, limits.targets, strict=True)
    return all(count.n > 0 and count.good / count.n >= target for count, target in pairs)


def _rounded(rate: float, limits: Limits) -> float:
    """Within the limits: a whole number of users, or a rate of four digits."""
    rate = max(limits.lowest, rate if limits.highest is None else min(rate, limits.highest))
    return float(max(1, round(rate))) if limits.whole else float(f"{rate:.4g}")


def _out_of_breath(valid: Sequence[Probe], refused: Sequence[float], limits: Limits) -> bool:
    """Whether the load generator is the limit: twice at its lowest such rate, nothing being left to try below it."""
    if not refused or any(not _leans(probe, limits) for probe in valid):
        return False
    floor = max([probe.rate for probe in valid if probe.rate < min(refused)], default=limits.lowest)
    near = [rate for rate in refused if rate <= floor * NEAR_BREATH]
    return len(near) >= INVALID_TRIES


def _within_breath(rate: float, valid: Sequence[Probe], refused: Sequence[float], limits: Limits) -> float:
    """The wanted rate, or one nearer to what the load generator could do, where it could not do as much before."""
    able = max((probe.rate for probe in valid), default=None)
    if not refused or rate < min(refused):
        return rate
    ceiling = min(refused)
    if able is None:
        return ceiling if refused.count(ceiling) < INVALID_TRIES else max(limits.lowest, ceiling / SHRINK)
    return ceiling if ceiling <= able * NEAR_BREATH else math.sqrt(able * ceiling)
