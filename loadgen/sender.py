"""One planned request, from its text to its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from msgspec import structs

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.stream import DIALECTS
from cliffwatch.stream.response import StreamResult
from cliffwatch.workload.prompts import Built
from cliffwatch.workload.schedule import PlannedRequest
from loadgen.connection import Transfer
from loadgen.delivery import Courier, Delivery
from loadgen.origin import Origin
from loadgen.transport import request_bytes


class Builder(Protocol):
    """Makes a plan's prompts."""

    def build(self, plan: PlannedRequest) -> Built: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that only waits for its time."""

    plan: PlannedRequest
    request: bytes
    built_input_tokens: int
    warnings: tuple[str, ...] = ()


class Sender:
    """Builds, sends and records requests of one run."""

    def __init__(
        self,
        *,
        origin: Origin,
        courier: Courier,
        builder: Builder,
        model: str,
        sampling: Mapping[str, object],
        worker: int,
        run_id: str,
        limit_tokens: int | None = None,
        token: str | None = None,
    ) -> None:
        self._origin = origin
        self._courier = courier
        self._builder = builder
        self._model = model
        self._sampling = sampling
        self._worker = worker
        self._run_id = run_id
        self._limit_tokens = limit_tokens
        self._token = token

    def prepare(self, planned: PlannedRequest) -> Prepared:
        """Everything of a request that can be done before its time."""
        plan = fit_to_limit(planned, self._limit_tokens)
        dialect = DIALECTS[plan.endpoint]
        built = self._builder.build(plan)
        body = dialect.encode(
            model=self._model, prompts=built.prompts, max_tokens=plan.output_tokens, sampling=self._sampling
        )
        request = request_bytes(
            self._origin,
            "POST",
            dialect.path,
            body,
            token=self._token,
            request_id=f"{self._run_id}-{plan.request_id}",
        )
        warnings = () if plan is planned else (_shortened(planned, plan),)
        return Prepared(plan, request, built.built_input_tokens, warnings)

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
        )
        usual = not delivery.attempts and delivery.cancel_after_s is None
        return row if usual else _with_attempts(row, delivery, t0_ns)

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
            "model": self._model,
            "batch": plan.batch,
            "cache": plan.cache,
            "input_tokens": plan.input_tokens,
            "built_input_tokens": prepared.built_input_tokens,
            "max_output_tokens": plan.output_tokens,
            "intended_ns": intended_ns,
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


def fit_to_limit(plan: PlannedRequest, limit_tokens: int | None) -> PlannedRequest:
    """The plan itself, or a shortened one whose prompt and answer fit the model: the prompt gives way first.

    An answer longer than the model takes is cut to leave the prompt one token.
    """
    if limit_tokens is None or plan.input_tokens + plan.output_tokens <= limit_tokens:
        return plan
    output_tokens = max(1, min(plan.output_tokens, limit_tokens - 1))
    return replace(plan, input_tokens=max(1, limit_tokens - output_tokens), output_tokens=output_tokens)


def _shortened(planned: PlannedRequest, plan: PlannedRequest) -> str:
    return (
        f"shortened to the model's limit: prompt {planned.input_tokens} -> {plan.input_tokens}, "
        f"answer {planned.output_tokens} -> {plan.output_tokens} tokens"
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
