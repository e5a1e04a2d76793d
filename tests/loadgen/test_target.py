"""What is found out about a target before the load, against servers that answer as real ones do, or wrongly."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cliffwatch.errors import CliffwatchError, ExitCode, InputError, UnreachableError
from cliffwatch.workload.spec import Workload
from loadgen.origin import Origin
from loadgen.target import Probe, inspect_target
from loadgen.tokenizing import endpoints, learn_lexicon
from tests.loadgen.scripted import Served, serving, whole

VLLM_MODELS = {"object": "list", "data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {"id": "lora"}]}
LLAMA_MODELS = {"object": "list", "data": [{"id": "tiny", "owned_by": "llamacpp", "meta": {"n_ctx_train": 99}}]}

Routes = dict[str, Callable[[object], object] | object]


@contextmanager
def answering(routes: Routes, head: str = "") -> Iterator[tuple[Probe, Served]]:
    """A JSON server: path to body, to (status line, body), or to a function of the request's JSON."""

    def behave(sock: socket.socket, request: bytes) -> None:
        first, _, body = request.partition(b"\r\n\r\n")
        path = first.split(b" ")[1].decode()
        found = routes.get(path, ("404 Not Found", {"detail": "Not Found"}))
        if callable(found):
            found = found(json.loads(body or b"null"))
        status, answer = found if isinstance(found, tuple) else ("200 OK", found)
        sock.sendall(whole(status, json.dumps(answer).encode(), "application/json", *([head] if head else [])))

    with serving(behave) as served:
        probe = Probe(Origin("http", "127.0.0.1", served.port), None, "s3cret")
        yield probe, served
        probe.close()


def test_vllm_is_recognised_with_its_limit_and_the_token_is_sent():
    with answering({"/v1/models": VLLM_MODELS, "/version": {"version": "0.32.0"}}) as (probe, served):
        target = inspect_target(probe, None)
        assert (target.model, target.engine, target.limit_tokens) == ("m", "vllm 0.32.0", 4096)
        assert inspect_target(probe, "lora").model == "lora"
        assert b"\r\nAuthorization: Bearer s3cret\r\n" in served.requests[0]


def test_llama_cpp_is_recognised_with_the_context_of_a_slot():
    routes: Routes = {"/v1/models": LLAMA_MODELS, "/props": {"default_generation_settings": {"n_ctx": 512}}}
    with answering(routes) as (probe, _):
        target = inspect_target(probe, None)
        assert (target.model, target.engine, target.limit_tokens) == ("tiny", "llama.cpp", 512)


@pytest.mark.parametrize(
    ("answer", "kind", "part"),
    [
        (("401 Unauthorized", {"error": {"message": "Invalid key"}}), InputError, "Invalid key"),
        (("403 Forbidden", {}), InputError, "refuses access"),
        (("404 Not Found", {"detail": "Not Found"}), InputError, "--model NAME"),
        (("302 Found", {}), InputError, "redirects"),
        (("400 Bad Request", {"error": {"message": "odd"}}), InputError, "odd"),
        (("503 Service Unavailable", {"error": {"message": "Loading model"}}), UnreachableError, "Loading model"),
        (("429 Too Many Requests", {}), UnreachableError, "not ready"),
        ({"models": []}, InputError, "no list of models"),
        ({"data": []}, InputError, "names no model"),
        ([1], InputError, "no list of models"),
    ],
)
def test_a_list_of_models_that_is_none_is_said_with_its_address(answer, kind, part):
    with answering({"/v1/models": answer}) as (probe, served), pytest.raises(CliffwatchError) as caught:
        inspect_target(probe, None)
    assert type(caught.value) is kind
    assert part in str(caught.value)
    assert f"http://127.0.0.1:{served.port}/v1/models" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_an_unknown_model_is_refused_with_those_there_are():
    with answering({"/v1/models": VLLM_MODELS}) as (probe, _), pytest.raises(InputError, match="m, lora"):
        inspect_target(probe, "gpt")


def test_without_a_list_a_named_model_goes_on_and_the_record_says_so():
    with answering({}) as (probe, _):
        target = inspect_target(probe, "mine")
    assert (target.model, target.limit_tokens) == ("mine", None)
    assert "404" in target.notes[0]


def test_a_page_instead_of_json_is_said():
    page = whole("200 OK", b"<html><title>Sign in</title></html>", "text/html")
    with serving(lambda sock, _: sock.sendall(page)) as served:
        probe = Probe(Origin("http", "127.0.0.1", served.port), None, None)
        with pytest.raises(InputError, match=r"not JSON.*Sign in"):
            inspect_target(probe, None)
        probe.close()


def test_nobody_there_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    probe = Probe(Origin("http", "127.0.0.1", port), None, None)
    with pytest.raises(UnreachableError, match="refused") as caught:
        inspect_target(probe, None)
    assert caught.value.exit_code == ExitCode.UNREACHABLE
    probe.close()


# lengths


def spec(**changes: object) -> Workload:
    return Workload.model_validate({"duration": 5, "arrivals": {"kind": "constant", "rate": 1}, **changes})


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("chat", "completions")),
        ({"batch": {"sizes": [1]}}, ("chat",)),
        ({"endpoint": "completions"}, ("completions",)),
        ({"endpoint": "chat", "batch": {"sizes": [1]}}, ("chat",)),
    ],
)
def test_the_endpoints_of_a_workload(changes, expected):
    assert endpoints(spec(**changes)) == expected


def test_vllms_form_of_tokenize_counts_template_and_start_token():
    def tokenize(body):
        extra = 1 if "prompt" in body else 9
        text = body.get("prompt", body.get("messages", [{}])[0].get("content"))
        return {"count": words(text) + extra, "max_model_len": 4096}

    with answering({"/tokenize": tokenize}) as (probe, served):
        lexicon, notes = learn_lexicon(probe, "m", spec(), None)
    assert (lexicon.method, lexicon.special_tokens, lexicon.chat_tokens, notes) == ("server_tokenize", 1, 9, ())
    assert not any(b"/v1/" in request for request in served.requests)  # nothing was generated


def test_llama_cpps_form_of_tokenize_and_its_template():
    def tokenize(body):
        return {"tokens": list(range(words(body["content"]) + 1))} if "content" in body else {}

    def template(body):
        return {"prompt": f"<s> user {body['messages'][0]['content']} end"}

    with answering({"/tokenize": tokenize, "/apply-template": template}) as (probe, _):
        lexicon, notes = learn_lexicon(probe, "m", spec(), None)
    assert (lexicon.method, lexicon.special_tokens, lexicon.chat_tokens, notes) == ("server_tokenize", 1, 4, ())


def generate(per_word: float, extra: int):
    def behave(body):
        text = body.get("prompt") or body["messages"][0]["content"]
        more = extra if "prompt" in body else extra + 7
        return {"usage": {"prompt_tokens": round(words(text) * per_word) + more}}

    return behave


def test_without_tokenize_lengths_are_estimated_and_the_record_says_so():
    routes: Routes = {"/v1/completions": generate(1.25, 2), "/v1/chat/completions": generate(1.25, 2)}
    with answering(routes) as (probe, served):
        lexicon, notes = learn_lexicon(probe, "m", spec(), None)
    assert lexicon.method == "estimated"
    assert lexicon.tokens_per_unit == pytest.approx(1.25, abs=0.01)
    assert (lexicon.special_tokens, lexicon.chat_tokens) == (2, 9)
    assert "estimated" in notes[0]
    bodies = [json.loads(request.split(b"\r\n\r\n")[1]) for request in served.requests if b"/v1/" in request]
    assert {body["max_tokens"] for body in bodies} == {1}


def test_a_tokenizer_that_does_not_add_up_falls_back_to_an_estimate():
    def tokenize(body):  # joins pairs of words, as no usable tokenizer does
        text = body.get("prompt", body.get("messages", [{}])[0].get("content"))
        return {"count": len(text) // 7 + 1}

    routes: Routes = {"/tokenize": tokenize, "/v1/completions": generate(1, 1), "/v1/chat/completions": generate(1, 1)}
    with answering(routes) as (probe, _):
        lexicon, notes = learn_lexicon(probe, "m", spec(), None)
    assert lexicon.method == "estimated"
    assert "add up" in notes[0]


def test_a_server_that_tells_no_lengths_is_refused_with_the_way_out():
    routes: Routes = {"/v1/chat/completions": {"choices": []}}
    with answering(routes) as (probe, _), pytest.raises(InputError, match="--tokenizer FILE"):
        learn_lexicon(probe, "m", spec(batch={"sizes": [1]}), None)


def test_a_token_the_models_list_did_not_ask_for_is_asked_for_by_the_first_request():
    routes: Routes = {"/v1/chat/completions": ("401 Unauthorized", {"error": {"message": "no key"}})}
    with answering(routes) as (probe, _), pytest.raises(InputError, match="no key"):
        learn_lexicon(probe, "m", spec(batch={"sizes": [1]}), None)
