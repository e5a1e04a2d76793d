"""From planned requests to bytes: prompts, body and head, done before a request's time has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from cliffwatch.stream import DIALECTS
from cliffwatch.stream.dialect import spelled
from cliffwatch.stream.openai_chat import OpenAIChat
from cliffwatch.workload.plan import PlannedRequest
from cliffwatch.workload.prompts import Built
from loadgen.access import Access, request_bytes

_CHAT = OpenAIChat()


class Builder(Protocol):
    """Makes a plan's prompts."""

    def build(self, plan: PlannedRequest) -> Built: ...

    def build_turn(self, plan: PlannedRequest) -> Built: ...


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as this worker knows it: who builds its prompts, and the longest prompt and answer together."""

    builder: Builder
    limit_tokens: int | None = None


class Prepared(msgspec.Struct, frozen=True):
    """A request that only waits for its time. `said` is, in a session, message, answer, ..., message."""

    plan: PlannedRequest
    request: bytes
    built_input_tokens: int
    model: str = ""
    warnings: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


class Composer:
    """Writes the requests of one run."""

    def __init__(
        self,
        *,
        access: Access,
        models: Mapping[str, ServedModel],
        sampling: Mapping[str, object],
        run_id: str,
        tenant_headers: Mapping[str, str] | None = None,
    ) -> None:
        """`models` begins with the one that plans without a model ask for; `tenant_headers` names each one's header."""
        self._access = access
        self._models = models
        self._usual = next(iter(models))
        self._run_id = run_id
        self._tenant_headers = tenant_headers or {}
        self._sampling = {name: spelled(dialect, sampling) for name, dialect in DIALECTS.items()}
        self._path = cache(lambda endpoint, model: DIALECTS[endpoint].path.replace("{model}", quote(model, safe="")))

    def prepare(self, planned: PlannedRequest) -> Prepared:
        """Everything of a request that can be done before its time."""
        model = planned.model or self._usual
        served = self._models[model]
        plan = fit_to_limit(planned, served.limit_tokens)
        built = served.builder.build(plan)
        body = DIALECTS[plan.endpoint].encode(
            model=model, prompts=built.prompts, max_tokens=plan.output_tokens, sampling=self._parameters(plan)
        )
        return Prepared(
            plan,
            self._request(plan, model, body),
            built.built_input_tokens,
            model,
            () if plan is planned else (_shortened(planned, plan),),
            () if plan.session is None else built.prompts,
        )

    def next_turn(self, before: Prepared, answer: str, said_tokens: int) -> Prepared | str:
        """The turn after `before`, which was answered with `answer`; or why there cannot be one.

        `said_tokens` is what the server counted of the prompt and answer before.
        """
        then = before.plan.then
        assert then is not None  # noqa: S101
        limit = self._models[before.model].limit_tokens
        wanted = said_tokens + then.added_tokens + then.output_tokens
        if limit is not None and wanted > limit:
            return f"the next would take {wanted} tokens, prompt and answer together, and the model takes {limit}"
        plan = replace(then, input_tokens=said_tokens + then.added_tokens, prefix_tokens=said_tokens)
        built = self._models[before.model].builder.build_turn(plan)
        said = (*before.said, answer, *built.prompts)
        body = _CHAT.encode_turn(
            model=before.model, said=said, max_tokens=plan.output_tokens, sampling=self._parameters(plan)
        )
        return Prepared(
            plan, self._request(plan, before.model, body), built.built_input_tokens, before.model, said=said
        )

    def _parameters(self, plan: PlannedRequest) -> Mapping[str, object]:
        sampling = self._sampling[plan.endpoint]
        return sampling if plan.priority is None else {**sampling, "priority": plan.priority}

    def _request(self, plan: PlannedRequest, model: str, body: bytes) -> bytes:
        return request_bytes(
            self._access,
            "POST",
            self._path(plan.endpoint, model),
            body,
            request_id=f"{self._run_id}-{plan.request_id}",
            headers=() if plan.tenant is None else (f"{self._tenant_headers[plan.tenant]}: {plan.tenant}",),
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
