"""A workload through the engine in simulated time: no HTTP, no clock, the same rows as those of a run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Any

from cliffwatch.records.schema import Outcome, RequestRow, TokenSource
from cliffwatch.workload.arrival_parts import ConcurrencyArrivals
from cliffwatch.workload.closed import first_start_ns, next_start_ns
from cliffwatch.workload.plan import PlannedRequest
from cliffwatch.workload.schedule import phase_at, schedule
from cliffwatch.workload.spec import Workload
from services.engine.assembly import assemble, model_length
from services.engine.core import Core
from services.engine.faults import BUSY
from services.engine.kv_cache import blocks_for
from services.engine.options import EngineOptions
from services.engine.profile import Profile
from services.engine.sequence import Sequence
from services.engine.tokenizer import BLOCK_TOKENS

_NS = 1e9
USUAL = EngineOptions()


class Mean:
    """The mean of what was added; None of nothing."""

    __slots__ = ("_total", "n")

    def __init__(self) -> None:
        self._total = 0.0
        self.n = 0

    def add(self, value: float) -> None:
        """One more."""
        self._total += value
        self.n += 1

    @property
    def value(self) -> float | None:
        """So far."""
        return self._total / self.n if self.n else None


class _Flight:
    """A request in the engine: what was planned, and when its prompts' tokens came (simulated seconds)."""

    __slots__ = ("chunks", "due_s", "firsts_s", "itls_s", "last_s", "left", "plan", "sequences", "user")

    def __init__(self, plan: PlannedRequest, due_s: float, user: int | None) -> None:
        self.plan = plan
        self.due_s = due_s
        self.user = user
        self.left = plan.batch
        self.chunks = plan.output_tokens * plan.batch  # fewer than tokens where some come together
        self.firsts_s = [0.0] * plan.batch
        self.itls_s: list[float] = []
        self.last_s = 0.0
        hashes = prefix_hashes(plan)
        self.sequences = [
            Sequence(plan.input_tokens, plan.output_tokens, hashes, (self, index), priority=plan.priority or 0)
            for index in range(plan.batch)
        ]


def prefix_hashes(plan: PlannedRequest) -> tuple[Any, ...]:
    """One name a full block of the prompt that other prompts may share: the same beginning, the same names."""
    if plan.prefix_blocks:
        each = plan.prefix_block_tokens // BLOCK_TOKENS
        whole = min(len(plan.prefix_blocks) * each, (plan.input_tokens - 1) // BLOCK_TOKENS)
        return tuple((plan.prefix_blocks[: at // each + 1], at) for at in range(whole)) if each else ()
    if plan.session is not None:  # a turn begins with all that was said before it
        return tuple(("session", plan.session, at) for at in range(plan.input_tokens // BLOCK_TOKENS))
    if plan.prefix_group is None:
        return ()
    return tuple((plan.prefix_group, at) for at in range(plan.prefix_tokens // BLOCK_TOKENS))


class Simulation:
    """One engine and one workload.

    Args:
        workload: open or closed loop, with sessions; requests are neither tried again nor cancelled.
        profile: the engine.
        options: how it schedules.
        leaps: whether steps that are alike are ended at once, which changes nothing but the time that it takes.

    Attributes:
        tokens: generated so far.
        now_s: how far simulated time has come.
        unused: share of the reserved cache without a token in it, as each request that came found it.
    """

    def __init__(
        self, workload: Workload, profile: Profile, options: EngineOptions = USUAL, *, leaps: bool = True
    ) -> None:
        self._workload = workload
        scheduler = assemble(profile, options, seed=workload.seed)
        self._kv = scheduler.kv
        self._max_model_len = model_length(profile, options)
        self._core = Core(scheduler, profile.intake)
        self._leaps = leaps
        self._planned = schedule(workload)
        self._due: list[tuple[float, int, PlannedRequest, int | None]] = []
        self._order = count()
        self._done: dict[int, int] = {}  # requests that each user has behind it
        self._ended: list[RequestRow] = []
        self._scheduler = scheduler
        self.tokens = 0
        self.now_s = 0.0
        self.unused = Mean()

    def rows(self) -> Iterator[RequestRow]:
        """Every request's row, as they end."""
        arrivals = self._workload.arrivals
        if isinstance(arrivals, ConcurrencyArrivals):
            for user in range(arrivals.users):
                self._next_of(user, first_start_ns(arrivals, user))
        else:
            self._next_planned()
        while True:
            event_s = self._core.next_event_s()
            if self._due and (event_s is None or self._due[0][0] <= event_s):
                self._send()
            elif event_s is None:
                break
            else:
                self._step(event_s)
            yield from self._ended
            self._ended.clear()

    def _next_planned(self) -> None:
        plan = next(self._planned, None)
        if plan is not None:
            self._push(plan.intended_ns / _NS, plan, None)

    def _next_of(self, user: int, start_ns: int) -> None:
        seconds = self._workload.duration
        plan = next(self._planned, None) if seconds is None or start_ns < seconds * _NS else None
        if plan is not None:
            self._push(start_ns / _NS, plan, user)

    def _push(self, due_s: float, plan: PlannedRequest, user: int | None) -> None:
        heapq.heappush(self._due, (due_s, next(self._order), plan, user))

    def _send(self) -> None:
        due_s, _, plan, user = heapq.heappop(self._due)
        self.now_s = due_s
        share = self._scheduler.unused_share
        if share is not None:
            self.unused.add(share)
        if user is None and plan.turn in {None, 0}:
            self._next_planned()
        flight = _Flight(plan, due_s, user)
        longest = plan.input_tokens + plan.output_tokens
        if longest > self._max_model_len or blocks_for(longest) > self._kv.capacity_blocks:
            error = f"{longest} tokens are more than the engine takes ({self._max_model_len})"
            self._refuse(flight, Outcome.HTTP_4XX, 400, error)
        elif over := self._core.over(plan.batch):
            self._refuse(flight, Outcome.HTTP_5XX, 503, BUSY[over])
        else:
            self._core.submit(flight.sequences, due_s)

    def _step(self, event_s: float) -> None:
        self.now_s = event_s
        turn = self._core.advance(event_s)
        for sequence in turn.emitted:
            flight, index = sequence.tag
            self.tokens += sequence.burst
            flight.chunks -= sequence.burst - 1
            if sequence.generated == 1:
                flight.firsts_s[index] = event_s
            if sequence.done:
                self._finished(flight, index, event_s)
        if self._leaps:
            self.tokens += self._core.leap(self._due[0][0] if self._due else float("inf"))

    def _finished(self, flight: _Flight, index: int, at_s: float) -> None:
        if flight.plan.output_tokens > 1:
            flight.itls_s.append((at_s - flight.firsts_s[index]) / (flight.plan.output_tokens - 1))
        flight.left -= 1
        flight.last_s = at_s
        if not flight.left:
            self._ended.append(self._row(flight))
            self._go_on(flight, at_s)

    def _refuse(self, flight: _Flight, outcome: Outcome, status: int, error: str) -> None:
        due_ns = round(flight.due_s * _NS)
        self._ended.append(
            RequestRow(**self._planned_fields(flight), sent_ns=due_ns, ended_ns=due_ns, outcome=outcome,
                       status=status, error=error)
        )  # fmt: skip
        self._go_on(flight, flight.due_s)

    def _go_on(self, flight: _Flight, at_s: float) -> None:
        """The turn of a session, or the request of a user, that follows one which ended."""
        plan, arrivals = flight.plan, self._workload.arrivals
        if plan.then is not None:
            self._push(at_s + plan.then.pause_ns / _NS, plan.then, flight.user)
        elif flight.user is not None and isinstance(arrivals, ConcurrencyArrivals):
            done = self._done[flight.user] = self._done.get(flight.user, 0) + 1
            start_ns = next_start_ns(
                arrivals, self._workload.seed, flight.user, done,
                started_ns=round(flight.due_s * _NS), ended_ns=round(at_s * _NS),
            )  # fmt: skip
            self._next_of(flight.user, start_ns)

    def _planned_fields(self, flight: _Flight) -> dict[str, Any]:
        plan = flight.plan
        due_ns = round(flight.due_s * _NS)
        return {
            "request_id": plan.request_id,
            "worker": 0,
            "phase": phase_at(self._workload, plan.request_id, due_ns),
            "endpoint": plan.endpoint,
            "model": plan.model or "simulated",
            "batch": plan.batch,
            "cache": plan.cache,
            "input_tokens": plan.input_tokens,
            "built_input_tokens": plan.input_tokens * plan.batch,
            "max_output_tokens": plan.output_tokens,
            "intended_ns": due_ns,
            "tenant": plan.tenant,
            "priority": plan.priority,
            "session": plan.session,
            "turn": plan.turn,
        }

    def _row(self, flight: _Flight) -> RequestRow:
        plan = flight.plan
        firsts_ns = [round(first_s * _NS) for first_s in flight.firsts_s]
        sent_ns = round(flight.due_s * _NS)
        tokens = plan.output_tokens * plan.batch
        return RequestRow(
            **self._planned_fields(flight),
            server_input_tokens=plan.input_tokens * plan.batch,
            cached_input_tokens=sum(sequence.cached_tokens for sequence in flight.sequences),
            output_tokens=tokens,
            output_tokens_source=TokenSource.SERVER,
            sent_ns=sent_ns,
            first_token_ns=max(firsts_ns),
            first_answer_ns=max(firsts_ns),
            last_token_ns=round(flight.last_s * _NS),
            ended_ns=round(flight.last_s * _NS),
            itl_s=sum(flight.itls_s) / len(flight.itls_s) if flight.itls_s else None,
            chunks=flight.chunks,
            prompt_ttfts_us=[(first_ns - sent_ns) // 1000 for first_ns in firsts_ns],
            outcome=Outcome.OK,
            status=200,
            finish_reason="length",
            attempts=1,
        )
