"""A whole search: probe after probe until the core has an answer, everything kept as it goes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from cliffwatch.capacity.knee import find_knee
from cliffwatch.capacity.result import Capacity, Record, headroom, write
from cliffwatch.capacity.search import Answer, Limits, Step, next_step
from cliffwatch.capacity.sequential import ERROR, Outcome
from cliffwatch.capacity.table import number
from cliffwatch.capacity.variation import asked_for, unit
from cliffwatch.errors import CliffwatchError
from loadgen.capacity.idle import IdleCheck
from loadgen.capacity.prober import Plan, Prober
from loadgen.capacity.stopping import Interrupted, Stopping


@dataclass(slots=True)
class Search:
    """One search. After `run`, or whatever ended it, `result` is what was found and lies in the folder."""

    plan: Plan
    limits: Limits
    asked: str
    idle: IdleCheck
    stopping: Stopping
    probes: list[Record]
    interrupted: str | None = None

    def run(self) -> Capacity:
        """Probe until there is an answer; an interruption ends it with what is known.

        Raises:
            CliffwatchError: the target or the load generator does not go on; what was found so far is kept.
        """
        prober = Prober(self.plan, self.stopping)
        try:
            while (step := next_step(self.probes, self.limits)).rate is not None:
                self._probe(prober, step.rate)
                self._say(next_step(self.probes, self.limits))
        except Interrupted as reason:
            self.interrupted = str(reason)
        except CliffwatchError as error:
            self.interrupted = f"ended by an error ({error})"
            raise
        finally:
            write(self.plan.out, self.result)
        return self.result

    @property
    def result(self) -> Capacity:
        plan, limits, answer = self.plan, self.limits, self._answer
        known = [one for one in self.probes if one.goodput_per_s is not None and one.outcome is not Outcome.INVALID]
        rates, goodput = [one.rate for one in known], [one.goodput_per_s[0] for one in known if one.goodput_per_s]
        demand = asked_for(plan.workload)
        return Capacity(
            asked=self.asked,
            workload=plan.workload.name,
            slo=plan.slo.name,
            target=plan.target,
            unit=unit(plan.workload),
            objectives=tuple(one.label for one in plan.slo.objectives),
            targets=plan.targets,
            precision=limits.precision,
            confidence=limits.confidence,
            error=ERROR,
            max_probes=limits.max_probes,
            interrupted=self.interrupted,
            answer=answer,
            knee=find_knee(rates, goodput) if known else None,
            demand=demand,
            headroom=headroom(answer.low, demand),
            probes=tuple(self.probes),
        )

    @property
    def _answer(self) -> Answer:
        return next_step(self.probes, self.limits).answer

    def _probe(self, prober: Prober, rate: float) -> None:
        count = len(self.probes) + 1
        resting = self.idle.wait()
        self._print(f"probe {count} of {self.limits.max_probes}: {number(rate)} {unit(self.plan.workload)} ...")
        found = prober.probe(count, rate, () if resting is None else (resting,))
        self.idle.check_alive()
        self.probes.append(found)

    def _say(self, step: Step) -> None:
        """Note the decision on the last probe, keep everything, and tell the person."""
        last = self.probes[-1]
        self.probes[-1] = last.model_copy(update={"decision": _decision(step)})
        write(self.plan.out, self.result)
        shares = ", ".join(f"{one.share:.4f}" for one in last.attained if one.share is not None)
        self._print(
            f"  {last.outcome} (attained {shares or 'nothing'}, sent {last.sent_s:.0f} s); {_bracket(step.answer)}"
        )
        for note in last.notes:
            self._print(f"  {note}")

    @staticmethod
    def _print(text: str) -> None:
        print(f"cliffwatch: {text}", file=sys.stderr, flush=True)  # noqa: T201


def _decision(step: Step) -> str:
    return "done" if step.rate is None else f"next {number(step.rate)}"


def _bracket(answer: Answer) -> str:
    if answer.low is None and answer.high is None:
        return "nothing is known yet"
    return f"the capacity is within {number(answer.low)} to {number(answer.high)}"
