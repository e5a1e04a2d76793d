"""Requests on their way from a face's endpoints into the engine."""

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
from http import HTTPStatus

from cliffwatch import __version__
from services.engine import admin, faults
from services.engine.answering import Answer, Choice, Ending, stopped_ending
from services.engine.answers import Envelope, Wire
from services.engine.drills.breaking import doom_of
from services.engine.drills.conditions import Break, Refusal, befalling
from services.engine.engine import Engine
from services.engine.faces.face import Face, Routes
from services.engine.faults import RequestFault
from services.engine.http import Connection, Request
from services.engine.metrics import Metrics
from services.engine.requests import Job
from services.engine.sequence import Sequence
from services.engine.tokenizer import Token, block_hashes
from services.engine.words import Text

log = logging.getLogger(__name__)

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
    version: str  # of the server whose face it shows
    replica: str = ""


class Service:
    """Answers requests as a face does.

    Args:
        routes: the face's, those of its API or those of its metrics.
        drilled: who is told of faults.

    Attributes:
        refusals, breaks: what befalls requests now.
    """

    def __init__(
        self, identity: Identity, engine: Engine, face: Face, metrics: Metrics, routes: Routes, drilled: admin.Faults
    ) -> None:
        self.identity = identity
        self.engine = engine
        self.face = face
        self.metrics = metrics
        self.started_s = int(time.time())
        self.fault_body = face.fault_body(identity.version)
        self._served_by = b"x-served-by: %b\r\n" % identity.replica.encode() if identity.replica else b""
        self._fingerprint = f"cliffwatch-{__version__}-{identity.profile}"
        self._routes = routes
        self.drilled = drilled
        self.refusals: tuple[Refusal, ...] = ()
        self.breaks: tuple[Break, ...] = ()
        self._luck = random.Random(identity.seed)  # noqa: S311

    def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request, now or as its tokens come."""
        connection.on_finished = self._counter(request)
        given = _request_id(request)
        connection.extra = self._served_by + (b"x-request-id: %b\r\n" % given.encode() if given else b"")
        try:
            self._route(connection, request)
        except RequestFault as fault:
            connection.respond(fault.status, self.fault_body(fault))
        except Exception:
            log.exception("%s %s", request.method, request.path)
            connection.respond(500, self.fault_body(RequestFault(500, "Internal Server Error")))

    def refusal(self, status: int, message: str) -> bytes:
        """Body of an answer that the HTTP server itself makes."""
        return self.fault_body(RequestFault(status, message))

    def _route(self, connection: Connection, request: Request) -> None:
        methods = self._routes.get(request.path)
        if request.path.startswith((*self.face.guarded, admin.PREFIX)) and not self._authorised(request):
            connection.respond(401, b'{"error":"Unauthorized"}')
            return
        if methods is None:
            raise self.face.not_found(request.path)
        method = "GET" if request.method == "HEAD" else request.method
        if method not in methods:
            connection.extra += b"allow: %b\r\n" % ", ".join(methods).encode()
            raise RequestFault(405, "Method Not Allowed")
        methods[method](self, connection, request)

    def _authorised(self, request: Request) -> bool:
        key = self.identity.api_key
        if key is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.encode("latin-1"), key.encode())

    def _counter(self, request: Request) -> Callable[[int, int], None] | None:
        if request.path in self.face.uncounted or request.path.startswith(admin.PREFIX):
            return None
        handler = request.path if request.path in self._routes else "none"
        observe = self.metrics.observe
        observe("http_started", tags={"handler": handler, "method": request.method})

        def count(status: int, length: int) -> None:
            tags = {
                "handler": handler, "method": request.method, "status": str(status), "group": f"{status // 100}xx",
            }  # fmt: skip
            observe("http_ended", tags=tags)
            if status >= HTTPStatus.BAD_REQUEST and request.path in self._routes:
                observe("http_failed", tags=tags)
            observe("http_request_bytes", len(request.body), tags=tags)
            observe("http_response_bytes", length, tags=tags)
            observe("http_s", time.monotonic() - request.received_s, tags=tags)

        return count

    def answering_model(self, asked: str | None) -> str:
        """The name that an answer carries. Raises RequestFault (404) for a model that the face does not serve."""
        if asked is None or asked == self.identity.model:
            return self.identity.model
        if not self.face.any_model:
            raise faults.unknown_model(asked, self.identity.model)
        return asked

    def generate(
        self, connection: Connection, request: Request, job: Job, *, model: str = "", wire: Wire | None = None
    ) -> None:
        """Put a checked request into the engine; the answer goes out as `wire` (None: the face's own) writes it."""
        refusal = befalling(self.refusals, self._luck)
        if refusal is not None:
            self.metrics.observe("turned_away")
            raise RequestFault(refusal.status, "The engine is told to fail.")
        wire = wire or self.face.wire
        envelope = Envelope(
            answer_id=wire.answer_id(_request_id(request) or uuid.uuid4().hex[:16], chat=job.chat),
            created_s=int(time.time()),
            model=model or self.identity.model,
            fingerprint=self._fingerprint,
            chat=job.chat,
            chunked=request.chunked,
            wire=wire,
        )
        answer = Answer(job, envelope, connection, request.received_s)
        over = self.engine.over(len(job.prompts) * job.choices_per_prompt)
        if over:
            self.metrics.observe("refused", tags={"limit": over})
            raise RequestFault(503, self.face.busy[over])
        for number, prompt in enumerate(job.prompts):
            hashes = block_hashes(prompt) if self.engine.scheduler.kv.sharing else ()
            for copy in range(job.choices_per_prompt):
                self._add_choice(answer, number * job.choices_per_prompt + copy, prompt, hashes)
        if job.stream:
            connection.start("text/event-stream; charset=utf-8")
        connection.on_gone = lambda: self.engine.cancel(answer)
        self.engine.submit(answer)
        broken = befalling(self.breaks, self._luck)
        if broken is not None:
            answer.doom = doom_of(broken, self)
            answer.meet_doom()

    def _add_choice(self, answer: Answer, index: int, prompt: list[Token], hashes: tuple[int, ...]) -> None:
        """Decide a choice's text, its length and why it ends there."""
        job = answer.job
        key = repr((prompt[:8], prompt[-8:], len(prompt), index)).encode("utf-8", "surrogatepass")
        text = Text(key, self.identity.seed + job.seed)
        ending = self._ending(job, key, self.identity.max_model_len - len(prompt))
        if job.stops:
            ending = stopped_ending(text, ending, job.stops)
        sequence = Sequence(len(prompt), ending.tokens, hashes, priority=job.priority)
        answer.add(Choice(answer, index, text, ending, sequence))

    def _ending(self, job: Job, key: bytes, room: int) -> Ending:
        """Where an answer ends: at the limit asked for, else by itself, else when the model's length is full."""
        if job.max_tokens is not None:
            return Ending("length", job.max_tokens)
        drawn = random.Random(key).lognormvariate(math.log(NATURAL_MEDIAN_TOKENS), NATURAL_SIGMA)  # noqa: S311
        tokens = max(1, job.min_tokens, round(drawn))
        return Ending("length", room) if job.ignore_eos or tokens >= room else Ending("stop", tokens)


def _request_id(request: Request) -> str:
    """The client's own id of the request, where it is a plain one."""
    given = request.headers.get("x-request-id", "")
    return given if _PLAIN_ID.fullmatch(given) else ""
