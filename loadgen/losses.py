"""What becomes of a part whose worker died, fell silent or was stopped: counted lost, or handed over."""

from __future__ import annotations

import platform
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from cliffwatch.records.files import journal_path
from cliffwatch.records.fold import issued_ids
from cliffwatch.records.journal import is_written
from cliffwatch.workload.handover import number_of, shared_plans
from loadgen.lease import HANDOVER_S, LEASE_S
from loadgen.members import Member, Part, Roster
from loadgen.preparation import Preparation
from loadgen.resuming import save

NEWCOMER_WITHIN_S = 15.0  # how long a part waits for somebody to take it, where nobody is left
STARTED_WITHIN_S = 60.0  # the same where new workers are just being started
_SUSPICIOUS_S = 3.0  # silent for so long, it is looked at whether a worker's process still lives


class Losses:
    """Watches the members of a run and settles the parts of those who are gone."""

    def __init__(
        self, roster: Roster, preparation: Preparation, assign: Callable[[Part], None], *, resumed: bool = False
    ) -> None:
        """`assign` sends a part to its worker; `resumed`: another master began the run."""
        self._roster = roster
        self._preparation = preparation
        self._assign = assign
        self._nobody_s = 0.0
        self._patience_s = STARTED_WITHIN_S if resumed else NEWCOMER_WITHIN_S

    @property
    def _redistributes(self) -> bool:
        return self._preparation.settings.on_worker_loss == "redistribute"

    def look(self, awake_s: float, elapsed_s: float, *, stopping: bool) -> None:
        """Let `awake_s` pass, and decide about every part whose worker is gone. A run that stops hands nothing over."""
        waiting = False
        for member in self._roster:
            member.silent_s += awake_s
            member.dead = member.dead or self._has_ended(member)
        for part in list(self._roster.parts.values()):
            why = None if part.settled else self._why_gone(part, stopping=stopping)
            if why is None or (not stopping and self._redistributes and self._hand_over(part, why, elapsed_s)):
                continue
            waiting = waiting or (not stopping and self._redistributes)
            if stopping or not self._redistributes or self._nobody_s > self._patience_s:
                part.lost = True
                if part.refusal is None or not stopping:
                    self._tell(part, why, elapsed_s)
        self._nobody_s = self._nobody_s + awake_s if waiting else 0.0

    def _why_gone(self, part: Part, *, stopping: bool) -> str | None:
        holder = self._roster.holder(part)
        if part.closed:
            return "was stopped" if part.cut_short and not stopping else None
        if part.refusal is not None:
            return f"could not take its part: {part.refusal}"
        if holder.dead:
            return "died"
        if holder.silent_s > HANDOVER_S and not stopping and (self._redistributes or self._all_else_is_over()):
            return f"was not heard for {HANDOVER_S:g} s"
        return None

    def _all_else_is_over(self) -> bool:
        """Whether the run waits for silent workers only: till then they may come back."""
        return all(self._roster.holder(part).silent_s > HANDOVER_S for part in self._roster.open_parts())

    def _has_ended(self, member: Member) -> bool:
        """Whether the process of a silent worker on this machine has ended: the kernel has dropped its journals' locks.
        On another machine only time tells, since a lock need not be seen from here."""
        if member.silent_s < _SUSPICIOUS_S or member.host != platform.node():
            return False
        run_dir = self._preparation.settings.out
        open_parts = [part for part in member.parts if part.ready and not part.closed and not part.settled]
        if any(part.ships for part in open_parts):
            return False  # no journal to look at: another machine of the same name, for all we know
        if not open_parts or any(is_written(journal_path(run_dir, part.number)) for part in open_parts):
            return False
        return member.pid is not None and not _runs(member.pid)

    def _hand_over(self, part: Part, why: str, elapsed_s: float) -> bool:
        """Split what a part still holds over those who can take it. False where nobody can."""
        if part.ships and self._preparation.workload.users is not None and not part.closed:
            return False  # which requests its users had taken went with it
        takers = self._roster.takers(LEASE_S)
        users = self._preparation.workload.users
        if users is not None:
            takers = takers[: max(1, sum(1 for _ in part.users.below(users)))]
        if not takers:
            return False
        rest = part.ids.rest(self._issued(part, elapsed_s))
        part.handed_over = True
        pieces = zip(takers, rest.split(len(takers)), part.users.split(len(takers)), strict=True)
        fresh = [self._roster.give(taker, ids, of_users) for taker, ids, of_users in pieces]
        save(self._preparation, self._roster)  # before anybody sends
        for piece in fresh:
            self._assign(piece)
        numbers = ", ".join(str(piece.number) for piece in fresh)
        self._roster.note(elapsed_s, f"{_name(part)} {why}: the rest of its schedule went on as worker {numbers}")
        return True

    def _issued(self, part: Part, elapsed_s: float) -> set[int]:
        """The numbers of a part that were issued: ids, or sessions that began. Without its journal or shard: all that
        may have been, since they were due."""
        if part.ships and not part.closed:
            plans = (plan for plan in shared_plans(self._preparation.workload, part.ids) if plan is not None)
            due = {number_of(plan) for plan in takewhile(lambda plan: plan.intended_ns <= elapsed_s * 1e9, plans)}
            part.sent_below = max(due, default=-1) + 1
            return due
        ids = issued_ids(self._preparation.settings.out, part.number)
        workload = self._preparation.workload
        if workload.sessions is None or not ids:
            return ids
        last, plans_or_none = max(ids), shared_plans(workload, part.ids)
        first_turns = takewhile(lambda plan: plan is None or plan.request_id <= last, plans_or_none)
        return {number_of(plan) for plan in first_turns if plan is not None and plan.request_id in ids}

    def _tell(self, part: Part, why: str, elapsed_s: float) -> None:
        users = self._preparation.workload.users
        if users is None and part.ships and not part.closed:
            what = "all of it is lost, since its rows went with it"
        elif users is None:
            what = "what it had not sent is lost"
        else:
            what = f"its {sum(1 for _ in part.users.below(users))} users were gone from then on"
            if part.ships and not part.closed:
                what += ", and with it the rows of what they had sent: those requests are not counted"
        self._roster.note(elapsed_s, f"{_name(part)} {why}: {what}")


def _runs(pid: int) -> bool:
    """Whether there is such a process, one that has ended and was not waited for apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _name(part: Part) -> str:
    return f"worker {part.number} on {part.host or 'an unknown host'} (pid {part.pid or 'unknown'})"
