"""What is found out about a target before the load, against servers that answer as real ones do, or wrongly."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from cliffwatch.errors import CliffwatchError, ExitCode, InputError, UnreachableError
from cliffwatch.workload.lexicon import WORDS
from cliffwatch.workload.spec import Workload
from loadgen.access import Access
from loadgen.origin import Origin
from loadgen.probe import Probe
from loadgen.target import Target, inspect_target
from loadgen.tokenizing import endpoints, learn_lexicon, learn_lexicons
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
        probe = Probe(Access(Origin("http", "127.0.0.1", served.port), headers=("Authorization: Bearer s3cret",)))
        yield probe, served
        probe.close()


def spec(**changes: object) -> Workload:
    return Workload.model_validate({"duration": 5, "arrivals": {"kind": "constant", "rate": 1}, **changes})


def look(probe: Probe, model: str | None = None, **changes: object) -> Target:
    return inspect_target(probe, spec(**changes) if model is None else spec(model=model, **changes))


def mix(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def test_vllm_is_recognised_with_its_limit_and_the_token_is_sent():
    with answering({"/v1/models": VLLM_MODELS, "/version": {"version": "0.32.0"}}) as (probe, served):
        target = look(probe)
        assert (target.limits, target.engine) == ({"m": 4096}, "vllm 0.32.0")
        assert look(probe, "lora").model == "lora"
        assert b"\r\nAuthorization: Bearer s3cret\r\n" in served.requests[0]


def test_llama_cpp_is_recognised_with_the_context_of_a_slot():
    routes: Routes = {"/v1/models": LLAMA_MODELS, "/props": {"default_generation_settings": {"n_ctx": 512}}}
    with answering(routes) as (probe, _):
        target = look(probe)
        assert (target.limits, target.engine) == ({"tiny": 512}, "llama.cpp")


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
        look(probe)
    assert type(caught.value) is kind
    assert part in str(caught.value)
    assert f"http://127.0.0.1:{served.port}/v1/models" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_an_unknown_model_is_refused_with_those_there_are():
    with answering({"/v1/models": VLLM_MODELS}) as (probe, _), pytest.raises(InputError, match="m, lora"):
        look(probe, "gpt")


def test_without_a_list_a_named_model_goes_on_and_the_record_says_so():
    with answering({}) as (probe, _):
        target = look(probe, "mine")
    assert target.limits == {"mine": None}
    assert "404" in target.notes[0]


def test_a_page_instead_of_json_is_said():
    page = whole("200 OK", b"<html><title>Sign in</title></html>", "text/html")
    with serving(lambda sock, _: sock.sendall(page)) as served:
        probe = Probe(Access(Origin("http", "127.0.0.1", served.port)))
        with pytest.raises(InputError, match=r"not JSON.*Sign in"):
            look(probe)
        probe.close()


def test_nobody_there_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    probe = Probe(Access(Origin("http", "127.0.0.1", port)))
    with pytest.raises(UnreachableError, match="refused") as caught:
        look(probe)
    assert caught.value.exit_code == ExitCode.UNREACHABLE
    probe.close()


def test_every_model_of_a_mix_has_its_own_limit_an_adapter_that_of_its_base():
    listed = {
        "data": [
            {"id": "base", "owned_by": "vllm", "max_model_len": 8192, "parent": None},
            {"id": "lora", "owned_by": "vllm", "max_model_len": None, "parent": "base"},
            {"id": "other", "owned_by": "vllm", "max_model_len": 512},
        ]
    }
    with answering({"/v1/models": listed}) as (probe, _):
        target = look(probe, models=mix("lora", "other"))
    assert (target.model, target.limits) == ("lora", {"lora": 8192, "other": 512})
    assert target.families == {"lora": "base", "other": "other"}


@pytest.mark.parametrize(
    ("names", "says"), [(("m", "a", "lora"), "no such model; got 'a'"), (("x", "m", "y"), "none of these.*x, y")]
)
def test_models_of_a_mix_that_are_not_served_are_named(names, says):
    with answering({"/v1/models": VLLM_MODELS}) as (probe, _), pytest.raises(InputError, match=says) as caught:
        look(probe, models=mix(*names))
    assert "m, lora" in str(caught.value)


def test_an_endpoint_of_one_engine_is_refused_on_another():
    with (
        answering({"/v1/models": VLLM_MODELS}) as (probe, _),
        pytest.raises(InputError, match=r"is vllm.*llama\.cpp only"),
    ):
        look(probe, endpoint="llamacpp")
    with answering({"/v1/models": LLAMA_MODELS}) as (probe, _):
        assert look(probe, endpoint="llamacpp").engine == "llama.cpp"


# Triton


def config(*tensors: str, **more: object) -> dict[str, object]:
    return {"input": [{"name": tensors[0]}], "output": [{"name": tensors[1]}], **more}


TRITON: Routes = {
    "/v2": {"name": "triton", "version": "2.51.0"},
    "/v2/health/ready": ("200 OK", {}),
    "/v2/repository/index": [
        {"name": "preprocessing", "version": "1", "state": "READY"},
        {"name": "ensemble", "version": "1", "state": "READY"},
        {"name": "old", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"},
    ],
    "/v2/models/preprocessing/config": config("QUERY", "INPUT_ID"),
    "/v2/models/ensemble/config": config("text_input", "text_output", max_batch_size=8),
}
SINGLE = {"endpoint": "triton", "batch": {"sizes": [1]}}


def test_triton_is_asked_in_its_own_way_and_the_text_model_found():
    with answering(TRITON) as (probe, served):
        target = look(probe, **SINGLE)
        assert (target.limits, target.engine) == ({"ensemble": None}, "triton 2.51.0")
        assert "does not say" in target.notes[0]
        assert look(probe, "ensemble", **SINGLE).model == "ensemble"
    assert not any(b" /v1/" in request for request in served.requests)


@pytest.mark.parametrize(
    ("changes", "model", "kind", "says"),
    [
        ({"/v2/health/ready": ("503 Service Unavailable", {})}, None, UnreachableError, "not ready"),
        ({"/v2/health/ready": ("400 Bad Request", {})}, "ensemble", UnreachableError, "not ready"),
        (
            {"/v2/models/ensemble/config": config("a", "b")},
            None,
            InputError,
            "got 'preprocessing, ensemble'.*text_input",
        ),
        ({"/v2/repository/index": ("404 Not Found", {})}, None, InputError, "--model NAME"),
        (
            {"/v2/models/preprocessing/config": config("text_input", "text_output")},
            None,
            InputError,
            "preprocessing, en",
        ),
        ({}, "preprocessing", InputError, "has no such model.*allowed: ensemble"),
        ({}, "nothing", InputError, "has no such model"),
    ],
)
def test_a_triton_that_cannot_serve_is_said(changes, model, kind, says):
    with answering(TRITON | changes) as (probe, _), pytest.raises(kind, match=says):
        look(probe, model, **SINGLE)


def test_a_server_that_is_no_triton_is_said():
    with answering({"/v1/models": VLLM_MODELS}) as (probe, _), pytest.raises(InputError, match="no Triton"):
        look(probe, **SINGLE)


# TensorRT-LLM


def test_tensorrt_llm_is_recognised_and_counts_by_its_own_tokenize_and_by_requests():
    listed = {"object": "list", "data": [{"id": "llama", "object": "model", "owned_by": "tensorrt_llm"}]}
    routes: Routes = {
        "/v1/models": listed,
        "/version": {"version": "1.3.0"},
        "/_internal/tokenize": lambda body: {"count": words(body["prompt"]) + 1},
        "/v1/chat/completions": generate(1, 4),
    }
    with answering(routes) as (probe, _):
        target = look(probe)
        lexicon, notes = learn_lexicon(probe, target.model, spec(), None)
    assert (target.limits, target.engine) == ({"llama": None}, "tensorrt-llm 1.3.0")
    assert (lexicon.method, lexicon.special_tokens, lexicon.chat_tokens, notes) == ("server_tokenize", 1, 11, ())


# lengths


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
        said = [body["prompt"]] if "prompt" in body else [message["content"] for message in body["messages"]]
        more = extra if "prompt" in body else extra + 7 + 5 * (len(said) - 1)
        return {"usage": {"prompt_tokens": round(sum(map(words, said)) * per_word) + more}}

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


def test_a_page_in_place_of_an_answer_is_a_matter_of_the_address():
    page = whole("200 OK", b"<html><title>Sign in</title></html>", "text/html")
    with serving(lambda sock, _: sock.sendall(page)) as served:
        probe = Probe(Access(Origin("http", "127.0.0.1", served.port)))
        with pytest.raises(InputError, match=r"v1/chat/completions: does not answer.*Sign in.*--target") as caught:
            learn_lexicon(probe, "m", spec(batch={"sizes": [1]}), None)
        probe.close()
    assert "--tokenizer" not in str(caught.value)


def test_counts_that_do_not_grow_name_where_they_came_from():
    routes: Routes = {"/v1/chat/completions": {"usage": {"prompt_tokens": 7}}}
    with (
        answering(routes) as (probe, _),
        pytest.raises(InputError, match=r"v1/chat/completions: .*do not grow") as said,
    ):
        learn_lexicon(probe, "m", spec(batch={"sizes": [1]}), None)
    assert "--tokenizer FILE" in str(said.value)


def test_a_token_the_models_list_did_not_ask_for_is_asked_for_by_the_first_request():
    routes: Routes = {"/v1/chat/completions": ("401 Unauthorized", {"error": {"message": "no key"}})}
    with answering(routes) as (probe, _), pytest.raises(InputError, match="no key"):
        learn_lexicon(probe, "m", spec(batch={"sizes": [1]}), None)


SESSIONS = {"sessions": {"turns": {"kind": "fixed", "value": 3}}}


def test_what_a_turn_gains_is_counted_by_tokenize_without_generating():
    def tokenize(body):  # a template of 3 tokens a message, and 2 that ask for the answer
        said = [message["content"] for message in body.get("messages", [])]
        return {"count": words(body["prompt"]) + 1 if "prompt" in body else sum(words(t) + 3 for t in said) + 2}

    with answering({"/tokenize": tokenize}) as (probe, served):
        lexicon, _ = learn_lexicon(probe, "m", spec(**SESSIONS), None)
    assert (lexicon.chat_tokens, lexicon.turn_tokens) == (5, 6)
    assert not any(b"/v1/" in request for request in served.requests)


def test_what_a_turn_gains_is_measured_where_nothing_counts_a_chat():
    with answering({"/v1/chat/completions": generate(1, 2)}) as (probe, _):
        lexicon, _ = learn_lexicon(probe, "m", spec(**SESSIONS), None)
    assert (lexicon.chat_tokens, lexicon.turn_tokens) == (9, 10)


def test_models_of_one_family_are_learned_once():
    asked = []

    def tokenize(body):
        asked.append(body["model"])
        extra = {"lora-a": 1, "other": 3}[body["model"]]
        return {"count": words(body["prompt"]) + extra} if "prompt" in body else {}

    target = Target({"lora-a": 1, "lora-b": 1, "other": 1}, None, families={"lora-a": "base", "lora-b": "base"})
    with answering({"/tokenize": tokenize}) as (probe, _):
        lexicons, _ = learn_lexicons(probe, target, spec(endpoint="completions"), None)
    assert set(asked) == {"lora-a", "other"}
    assert lexicons["lora-a"] is lexicons["lora-b"]
    assert [lexicons[name].special_tokens for name in target.limits] == [1, 1, 3]


def test_a_server_that_never_counts_is_taken_at_a_token_a_word_and_the_record_says_so(tmp_path):
    vocabulary = {"<s>": 0, "?": 1, **{word: number for number, word in enumerate(WORDS, 2)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with answering(TRITON) as (probe, served):
        lexicon, notes = learn_lexicon(probe, "ensemble", spec(**SINGLE), None)
        exact, also = learn_lexicon(probe, "ensemble", spec(**SINGLE), tmp_path)
    assert (lexicon.method, lexicon.tokens_per_unit, lexicon.special_tokens) == ("estimated", 1.0, 0)
    assert "estimated at a token a common word" in notes[0]
    assert (exact.method, exact.special_tokens) == ("tokenizer_file", 1)
    assert "counts no tokens" in also[0]
    assert not any(b"generate" in request for request in served.requests)
