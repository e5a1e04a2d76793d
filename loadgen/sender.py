"""One prepared request, from its time to its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.stream.response import StreamResult
from cliffwatch.workload.plan import PlannedRequest
from loadgen.composer import Composer, Prepared
from loadgen.connection import Transfer
from loadgen.conversation import Listening, next_turn
from loadgen.delivery import Courier, Delivery
from loadgen.replica_names import ReplicaNames


class Sender:
    """Sends and records requests of one run."""

    def __init__(
        self, *, courier: Courier, composer: Composer, worker: int, replicas: ReplicaNames | None = None
    ) -> None:
        """`replicas` tells which replica answered, where that is asked."""
        self._courier = courier
        self._composer = composer
        self._worker = worker
        self._replicas = replicas
        self._following: dict[int, Prepared] = {}

    def prepare(self, planned: PlannedRequest) -> Prepared:
        """Everything of a request that can be done before its time."""
        return self._composer.prepare(planned)

    def send(self, prepared: Prepared, *, intended_ns: int, phase: Phase, t0_ns: int) -> RequestRow:
        """Send and wait for the end. `intended_ns` counts from the run's zero, which is `t0_ns` on our clock."""
        delivery = self._courier.deliver(prepared.plan, prepared.request)
        transfer, result = delivery.transfer, delivery.result

        def since_zero(at_ns: int | None) -> int | None:
            return None if at_ns is None else at_ns - t0_ns

        row = RequestRow(
            **self._identity(prepared, intended_ns, phase),
            server_input_tokens=result.server_input_tokens,
            cached_input_tokens=result.cached_input_tokens,
            output_tokens=result.output_tokens,
            output_tokens_source=result.output_tokens_source,
            sent_ns=since_zero(transfer.sent_ns),
            connect_ns=transfer.connect_ns,
            first_token_ns=since_zero(result.first_token_ns),
            first_answer_ns=since_zero(result.first_answer_ns),
            last_token_ns=since_zero(result.last_token_ns),
            ended_ns=since_zero(transfer.ended_ns),
            itl_s=result.itl_s,
            chunks=result.chunks,
            stalls=result.stalls,
            chunk_gaps_us=result.chunk_gaps_us,
            prompt_ttfts_us=_prompt_ttfts_us(result, transfer.sent_ns),
            outcome=result.outcome,
            status=delivery.status,
            error=result.error,
            finish_reason=result.finish_reason,
            warnings=_warnings(prepared, transfer, result),
            bytes_received=transfer.bytes_received,
            attempts=1,
            replica=None if self._replicas is None else self._replicas.of(delivery.headers),
        )
        if delivery.attempts or delivery.cancel_after_s is not None:
            row = _with_attempts(row, delivery, t0_ns)
        heard = delivery.reading
        return self._go_on(prepared, row, heard.text) if isinstance(heard, Listening) else row

    def _go_on(self, prepared: Prepared, row: RequestRow, answer: str | None) -> RequestRow:
        """Prepare the turn that follows; where there can be none, the row says why."""
        following = next_turn(self._composer, prepared, row, answer)
        if isinstance(following, Prepared):
            self._following[row.request_id] = following
            return row
        turns = sum(1 for _ in prepared.plan.turns())
        reason = f"the session ends {turns - 1} turns early: {following}"
        return structs.replace(row, warnings=[*(row.warnings or ()), reason])

    def following(self, request_id: int) -> Prepared | None:
        """The turn after one that was sent, once; None where the session is over."""
        return self._following.pop(request_id, None)

    def unsent(self, prepared: Prepared, outcome: Outcome, error: str, *, intended_ns: int, now_ns: int) -> RequestRow:
        """The row of a request that never left. Times count from the run's zero."""
        return RequestRow(
            **self._identity(prepared, intended_ns, prepared.plan.phase),
            ended_ns=now_ns,
            outcome=outcome,
            error=error,
            warnings=list(prepared.warnings) or None,
            attempts=0,
        )

    def _identity(self, prepared: Prepared, intended_ns: int, phase: Phase) -> dict[str, Any]:
        plan = prepared.plan
        return {
            "request_id": plan.request_id,
            "worker": self._worker,
            "phase": phase,
            "endpoint": plan.endpoint,
            "model": prepared.model,
            "batch": plan.batch,
            "cache": plan.cache,
            "input_tokens": plan.input_tokens,
            "built_input_tokens": prepared.built_input_tokens,
            "max_output_tokens": plan.output_tokens,
            "intended_ns": intended_ns,
            "tenant": plan.tenant,
            "priority": plan.priority,
            "session": plan.session,
            "turn": plan.turn,
        }


def _with_attempts(row: RequestRow, delivery: Delivery, t0_ns: int) -> RequestRow:
    """The row of a request that was tried several times, or whose user was to leave."""
    row = structs.replace(row, cancel_after_s=delivery.cancel_after_s)
    tries = delivery.attempts
    if not tries:
        return row
    return structs.replace(
        row,
        connect_ns=tries[0].connect_ns,
        attempts=len(tries),
        attempt_sent_ns=[None if one.sent_ns is None else one.sent_ns - t0_ns for one in tries],
        attempt_ended_ns=[one.ended_ns - t0_ns for one in tries],
        attempt_outcomes=[one.outcome for one in tries],
        attempt_statuses=[one.status for one in tries],
    )


def _prompt_ttfts_us(result: StreamResult, sent_ns: int | None) -> list[int] | None:
    """TTFT of each prompt by index; None unless every prompt has one."""
    firsts: Sequence[int | None] = result.prompt_first_ns
    known = [at_ns for at_ns in firsts if at_ns is not None]
    if sent_ns is None or not known or len(known) != len(firsts):
        return None
    return [max(0, at_ns - sent_ns) // 1000 for at_ns in known]


def _warnings(prepared: Prepared, transfer: Transfer, result: StreamResult) -> list[str] | None:
    resent = ("sent again: the server had closed the idle connection",) if transfer.resent else ()
    return [*prepared.warnings, *resent, *result.warnings] or None
