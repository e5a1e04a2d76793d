"""What goes over the wire: head and body of every mix, each model's own limit, and turns that hold what was said."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.workload.plan import PlannedRequest
from cliffwatch.workload.prompts import Built
from cliffwatch.workload.spec import ENDPOINTS, Workload
from loadgen.access import Access
from loadgen.composer import Composer, Prepared, ServedModel
from loadgen.conversation import MAX_ANSWER_CHARS, Listening, next_turn, reading_of
from loadgen.origin import Origin


class Numbered:
    """Prompts that say which request they are."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def build(self, plan: PlannedRequest) -> Built:
        return Built((f"{self.name}{plan.request_id}",) * plan.batch, plan.input_tokens * plan.batch)

    def build_turn(self, plan: PlannedRequest) -> Built:
        return Built((f"{self.name}{plan.request_id}",), plan.input_tokens)


def plan(request_id: int = 0, **changes: Any) -> PlannedRequest:
    usual = PlannedRequest(
        request_id=request_id, intended_ns=0, input_tokens=100, output_tokens=10, batch=1, cache="none",
        prefix_group=None, phase=Phase.MEASURED, endpoint="chat",
    )  # fmt: skip
    return replace(usual, **changes)


def composer(sampling: dict[str, object] | None = None) -> Composer:
    return Composer(
        access=Access(Origin.parse("http://h/api")),
        models={"org/base": ServedModel(Numbered(), 4096), "lora": ServedModel(Numbered("L"), 64)},
        sampling=Workload.model_validate(
            {"duration": 1, "arrivals": {"kind": "constant", "rate": 1}, "sampling": sampling or {}}
        ).sampling.parameters(),
        run_id="run",
        tenant_headers={"free": "X-Tenant-Id", "paid": "X-Plan"},
    )


def sent(prepared: Prepared) -> tuple[list[str], dict[str, Any]]:
    head, _, body = prepared.request.partition(b"\r\n\r\n")
    return head.decode().split("\r\n"), json.loads(body)


def test_a_mixed_request_names_its_model_tenant_and_priority() -> None:
    prepared = composer().prepare(plan(model="lora", tenant="paid", priority=-3, input_tokens=20))
    head, body = sent(prepared)
    assert (body["model"], body["priority"], prepared.model) == ("lora", -3, "lora")
    assert "X-Plan: paid" in head
    assert body["messages"] == [{"role": "user", "content": "L0"}]


def test_without_a_mix_there_is_neither_header_nor_field() -> None:
    head, body = sent(composer().prepare(plan()))
    assert body["model"] == "org/base"
    assert "priority" not in body
    assert not any(line.startswith(("X-Tenant", "X-Plan")) for line in head)


def test_each_model_has_its_own_limit() -> None:
    assert composer().prepare(plan(model="org/base")).warnings == ()
    short = composer().prepare(plan(model="lora"))
    assert (short.plan.input_tokens, short.plan.output_tokens) == (54, 10)
    assert "prompt 100 -> 54" in short.warnings[0]


SAMPLING: dict[str, object] = {
    "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 7, "stop": ["END"], "presence_penalty": 1, "frequency_penalty": -1,
    "repetition_penalty": 1.1, "extra": {"guided_choice": "a", "flag": True, "number": 2},
}  # fmt: skip
PLAIN = {"temperature": 0.0, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 7, "presence_penalty": 1.0}
PLAIN |= {"frequency_penalty": -1.0, "guided_choice": "a", "flag": True, "number": 2}
SPELLED: dict[str, tuple[str, dict[str, object]]] = {
    "completions": ("/v1/completions", {"stop": ["END"], "repetition_penalty": 1.1, "ignore_eos": True}),
    "chat": ("/v1/chat/completions", {"stop": ["END"], "repetition_penalty": 1.1, "ignore_eos": True}),
    "llamacpp": ("/completion", {"stop": ["END"], "repeat_penalty": 1.1, "ignore_eos": True}),
    "triton": ("/v2/models/org%2Fbase/generate_stream", {"stop_words": ["END"], "repetition_penalty": 1.1}),
}


@pytest.mark.parametrize("endpoint", [name for name in ENDPOINTS if name != "auto"])
def test_every_endpoint_has_its_path_and_its_words_for_sampling(endpoint: str) -> None:
    head, body = sent(composer(SAMPLING).prepare(plan(endpoint=endpoint)))
    path, words = SPELLED[endpoint]
    assert head[0] == f"POST /api{path} HTTP/1.1"
    own = {"model", "prompt", "messages", "text_input", "max_tokens", "n_predict", "stream", "stream_options"}
    assert {name: value for name, value in body.items() if name not in own} == PLAIN | words
    assert body["stream"] is True
    assert body.get("max_tokens", body.get("n_predict")) == 10


def row(prepared: Prepared, **changes: Any) -> RequestRow:
    fields: dict[str, Any] = {
        "request_id": prepared.plan.request_id, "worker": 0, "phase": Phase.MEASURED, "endpoint": "chat", "model": "m",
        "batch": 1, "cache": "none", "input_tokens": prepared.plan.input_tokens,
        "max_output_tokens": prepared.plan.output_tokens, "intended_ns": 0, "outcome": Outcome.OK,
        "server_input_tokens": 101, "output_tokens": 12,
    }  # fmt: skip
    return RequestRow(**fields | changes)


def session(turns: int = 3, **changes: Any) -> PlannedRequest:
    then: PlannedRequest | None = None
    for turn in reversed(range(turns)):
        then = plan(turn, session=5, turn=turn, then=then, added_tokens=30, tenant="free", **changes)
    assert then is not None
    return then


def test_a_turn_holds_what_was_said_and_counts_from_the_servers_count() -> None:
    subject = composer()
    first = subject.prepare(session())
    second = next_turn(subject, first, row(first), "first answer")
    assert isinstance(second, Prepared)
    head, body = sent(second)
    roles = [(message["role"], message["content"]) for message in body["messages"]]
    assert roles == [("user", "0"), ("assistant", "first answer"), ("user", "1")]
    assert "X-Tenant-Id: free" in head
    assert second.plan.input_tokens == 101 + 12 + 30
    third = next_turn(subject, second, row(second, server_input_tokens=None, output_tokens=None), "second")
    assert isinstance(third, Prepared)
    assert [message["content"] for message in sent(third)[1]["messages"]] == ["0", "first answer", "1", "second", "2"]
    assert third.plan.input_tokens == 143 + 10 + 30  # as planned, where the server counts nothing


@pytest.mark.parametrize(
    ("changes", "answer", "reason"),
    [
        ({"outcome": Outcome.HTTP_5XX}, "text", "ended as http_5xx"),
        ({}, "", "no text"),
        ({}, None, "longer than is kept"),
        ({"server_input_tokens": 4040}, "text", "would take 4092 tokens.*the model takes 4096"),
    ],
)
def test_a_session_ends_with_its_reason(changes: dict[str, Any], answer: str | None, reason: str) -> None:
    subject = composer()
    first = subject.prepare(session())
    if "server_input_tokens" in changes:  # up to the limit is allowed
        assert isinstance(next_turn(subject, first, row(first, **changes), answer), Prepared)
        changes["server_input_tokens"] += 5
        reason = reason.replace("4092", "4097")
    found = next_turn(subject, first, row(first, **changes), answer)
    assert isinstance(found, str)
    assert re.search(reason, found)


def test_only_answers_that_are_needed_are_heard() -> None:
    last = plan(session=0, turn=0)
    assert not isinstance(reading_of(last), Listening)
    heard = reading_of(session())
    assert isinstance(heard, Listening)
    for delta in ({"role": "assistant"}, {"content": "one "}, {"reasoning": "hm"}, {"content": "two"}):
        heard.decode(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())
    assert heard.text == "one two"
    long = {"choices": [{"index": 0, "delta": {"content": "x" * (MAX_ANSWER_CHARS + 1)}}]}
    heard.decode(json.dumps(long).encode())
    assert heard.text is None
