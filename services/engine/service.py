"""Routes of the stand-in engine: the OpenAI API with vLLM's additions."""

from __future__ import annotations

import hmac
import logging
import math
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from cliffwatch import __version__
from services.engine import faults
from services.engine.answering import Answer, Choice, Ending, stopped_ending
from services.engine.answers import Envelope
from services.engine.engine import Engine
from services.engine.faults import RequestFault
from services.engine.http import Connection, Handler, Request
from services.engine.metrics import CONTENT_TYPE
from services.engine.requests import (
    ChatBody,
    CompletionBody,
    Job,
    TokenizeBody,
    chat_job,
    completion_job,
    message_texts,
    parse,
)
from services.engine.scheduler import Sequence
from services.engine.tokenizer import Token, block_hashes, chat_prompt, completion_prompt, token_ids
from services.engine.words import Text

log = logging.getLogger(__name__)

SPOKEN_VERSION = "0.33.0"  # the vLLM whose API and metrics are spoken
UNCOUNTED = frozenset({"/metrics", "/health", "/ping", "/version"})
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]{1,256}")
NATURAL_MEDIAN_TOKENS, NATURAL_SIGMA = 128, 0.8  # how long answers are that nobody limits


@dataclass(frozen=True, slots=True)
class Identity:
    """What the server says it is."""

    model: str
    max_model_len: int
    profile: str
    seed: int
    api_key: str | None
    replica: str = ""


class Service:
    """Answers requests; see `routes`."""

    def __init__(self, identity: Identity, engine: Engine) -> None:
        self._identity = identity
        self._served_by = b"x-served-by: %b\r\n" % identity.replica.encode() if identity.replica else b""
        self._engine = engine
        self._started_s = int(time.time())
        self._fingerprint = f"cliffwatch-{__version__}-{identity.profile}"
        self._routes: dict[str, dict[str, Handler]] = {
            "/v1/completions": {"POST": self._completions},
            "/v1/chat/completions": {"POST": self._chat},
            "/v1/models": {"GET": self._models},
            "/tokenize": {"POST": self._tokenize},
            "/metrics": {"GET": self._metrics},
            "/version": {"GET": self._version},
            "/health": {"GET": self._empty},
            "/ping": {"GET": self._empty, "POST": self._empty},
        }

    def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request, now or as its tokens come."""
        connection.on_finished = self._counter(request)
        given = _request_id(request)
        connection.extra = self._served_by + (b"x-request-id: %b\r\n" % given.encode() if given else b"")
        try:
            self._route(connection, request)
        except RequestFault as fault:
            connection.respond(fault.status, fault.body)
        except Exception:
            log.exception("%s %s", request.method, request.path)
            connection.respond(500, faults.fault_body(500, "Internal Server Error"))

    def _route(self, connection: Connection, request: Request) -> None:
        methods = self._routes.get(request.path)
        if request.path.startswith("/v1/") and not self._authorised(request):
            connection.respond(401, b'{"error":"Unauthorized"}')
            return
        if methods is None:
            raise RequestFault(404, "Not Found")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in methods:
            connection.extra += b"allow: %b\r\n" % ", ".join(methods).encode()
            connection.respond(405, faults.fault_body(405, "Method Not Allowed"))
            return
        methods[method](connection, request)

    def _authorised(self, request: Request) -> bool:
        key = self._identity.api_key
        if key is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.encode("latin-1"), key.encode())

    def _counter(self, request: Request) -> Callable[[int, int], None] | None:
        if request.path in UNCOUNTED:
            return None
        handler = request.path if request.path in self._routes else "none"

        def count(status: int, length: int) -> None:
            metrics = self._engine.metrics
            duration_s = time.monotonic() - request.received_s
            metrics.value("http_requests", handler, f"{status // 100}xx", request.method).add()
            metrics.value("http_request_size_bytes", handler).add(len(request.body))
            metrics.value("http_response_size_bytes", handler).add(length)
            metrics.histogram("http_request_duration_highr_seconds").observe(duration_s)
            metrics.histogram("http_request_duration_seconds", handler, request.method).observe(duration_s)

        return count

    # -- generation --------------------------------------------------------------------------------------------------

    def _completions(self, connection: Connection, request: Request) -> None:
        body = parse(request.body, CompletionBody)
        self._check_model(body.model)
        self._generate(connection, request, completion_job(body, self._identity.max_model_len))

    def _chat(self, connection: Connection, request: Request) -> None:
        body = parse(request.body, ChatBody)
        self._check_model(body.model)
        self._generate(connection, request, chat_job(body, self._identity.max_model_len))

    def _generate(self, connection: Connection, request: Request, job: Job) -> None:
        prefix = "chatcmpl" if job.chat else "cmpl"
        envelope = Envelope(
            answer_id=f"{prefix}-{_request_id(request) or uuid.uuid4().hex[:16]}",
            created_s=int(time.time()),
            model=self._identity.model,
            fingerprint=self._fingerprint,
            chat=job.chat,
            chunked=request.chunked,
        )
        answer = Answer(job, envelope, connection, request.received_s)
        for number, prompt in enumerate(job.prompts):
            hashes = block_hashes(prompt) if self._engine.scheduler.kv.sharing else ()
            for copy in range(job.choices_per_prompt):
                self._add_choice(answer, number * job.choices_per_prompt + copy, prompt, hashes)
        if job.stream:
            connection.start("text/event-stream; charset=utf-8")
        connection.on_gone = lambda: self._engine.cancel(answer)
        self._engine.submit(answer)

    def _add_choice(self, answer: Answer, index: int, prompt: list[Token], hashes: tuple[int, ...]) -> None:
        """Decide a choice's text, its length and why it ends there."""
        job = answer.job
        key = repr((prompt[:8], prompt[-8:], len(prompt), index)).encode("utf-8", "surrogatepass")
        text = Text(key, self._identity.seed + job.seed)
        ending = self._ending(job, key, self._identity.max_model_len - len(prompt))
        if job.stops:
            ending = stopped_ending(text, ending, job.stops)
        answer.add(Choice(answer, index, text, ending, Sequence(len(prompt), ending.tokens, hashes)))

    def _ending(self, job: Job, key: bytes, room: int) -> Ending:
        """Where an answer ends: at the limit asked for, else by itself, else when the model's length is full."""
        if job.max_tokens is not None:
            return Ending("length", job.max_tokens)
        drawn = random.Random(key).lognormvariate(math.log(NATURAL_MEDIAN_TOKENS), NATURAL_SIGMA)  # noqa: S311
        tokens = max(1, job.min_tokens, round(drawn))
        return Ending("length", room) if job.ignore_eos or tokens >= room else Ending("stop", tokens)

    def _check_model(self, model: str | None) -> None:
        if model is not None and model != self._identity.model:
            raise faults.unknown_model(model, self._identity.model)

    # -- everything else ---------------------------------------------------------------------------------------------

    def _models(self, connection: Connection, request: Request) -> None:  # noqa: ARG002
        model = self._identity.model
        entry = {
            "id": model,
            "object": "model",
            "created": self._started_s,
            "owned_by": "vllm",
            "root": model,
            "parent": None,
            "max_model_len": self._identity.max_model_len,
            "permission": [],
        }
        connection.respond(200, msgspec.json.encode({"object": "list", "data": [entry]}))

    def _tokenize(self, connection: Connection, request: Request) -> None:
        body = parse(request.body, TokenizeBody)
        self._check_model(body.model)
        tokens: list[Token]
        if body.messages is not None:
            texts = message_texts(body.messages)
            tokens = chat_prompt(texts, open_answer=body.add_generation_prompt)
        elif body.prompt is not None:
            tokens = completion_prompt(body.prompt, special=body.add_special_tokens)
        else:
            raise RequestFault(400, "Either prompt or messages must be provided.", kind="BadRequestError")
        answer = {
            "count": len(tokens),
            "max_model_len": self._identity.max_model_len,
            "tokens": token_ids(tokens),
            "token_strs": None,
        }
        connection.respond(200, msgspec.json.encode(answer))

    def _metrics(self, connection: Connection, request: Request) -> None:  # noqa: ARG002
        self._engine.update_gauges()
        connection.respond(200, self._engine.metrics.expose(), content_type=CONTENT_TYPE)

    def _version(self, connection: Connection, request: Request) -> None:  # noqa: ARG002
        version = {"version": f"{SPOKEN_VERSION}+cliffwatch.{__version__}"}
        connection.respond(200, msgspec.json.encode(version))

    def _empty(self, connection: Connection, request: Request) -> None:  # noqa: ARG002
        connection.respond(200, b"")


def _request_id(request: Request) -> str:
    """The client's own id of the request, where it is a plain one."""
    given = request.headers.get("x-request-id", "")
    return given if _PLAIN_ID.fullmatch(given) else ""
