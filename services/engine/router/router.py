"""Requests in, replicas' answers out, byte for byte as they come."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from services.engine.faults import RequestFault, nested_body
from services.engine.http import Connection, Request
from services.engine.router.counts import Counts
from services.engine.router.policies import Policy, Replica
from services.engine.router.upstream import Upstream

log = logging.getLogger(__name__)

PREFIX_BYTES = 4096  # of a prompt, as it is written in the request: beginnings that long are told apart
CONNECT_WITHIN_S = 5.0
IDLE_S = 10.0  # connections kept for less than engines keep them
HEALTH_EVERY_S, HEALTH_WITHIN_S = 1.0, 2.0


class _Prompted(msgspec.Struct):
    """The part of a request that its prompt stands in; whatever it is, it is not looked into."""

    prompt: msgspec.Raw = msgspec.Raw()
    messages: msgspec.Raw = msgspec.Raw()
    text_input: msgspec.Raw = msgspec.Raw()


def refusal(status: int, message: str) -> bytes:
    """Body of an answer that the router itself makes."""
    return nested_body(RequestFault(status, message))


def prefix_of(body: bytes) -> bytes:
    """How the prompt of a request begins; empty where it has none."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(body, type=_Prompted)
        return bytes(found.prompt or found.messages or found.text_input)[:PREFIX_BYTES]
    return b""


class Router:
    """Hands each request to one of `replicas`, chosen by `policy` among the healthy ones.

    `/health` says whether there is one, `/metrics` are the router's own (each replica has its own to be scraped);
    `/admin` is not passed on; everything else goes to a replica.
    """

    def __init__(self, replicas: list[Replica], policy: Policy) -> None:
        self.replicas = replicas
        self._policy = policy
        self._idle: dict[str, list[Upstream]] = {replica.address: [] for replica in replicas}
        self._tasks: set[asyncio.Task[None]] = set()
        self._counts = Counts(replicas)

    def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request, sooner or later."""
        if request.path == "/metrics":
            connection.respond(200, self._counts.expose(), content_type=CONTENT_TYPE_LATEST)
        elif request.path == "/health":
            healthy = any(replica.healthy for replica in self.replicas)
            connection.respond(200 if healthy else 503, b"")
        elif request.path.startswith("/admin/"):  # the replicas' own, for those who are on their machine
            connection.respond(404, refusal(404, "Not Found"))
        else:
            task = asyncio.get_running_loop().create_task(self._forward(connection, request))
            self._tasks.add(task)  # the loop itself holds a task only weakly
            task.add_done_callback(self._tasks.discard)

    async def watch(self) -> None:
        """Ask every replica for its health, again and again."""
        while True:
            await asyncio.gather(*(self._look(replica) for replica in self.replicas))
            await asyncio.sleep(HEALTH_EVERY_S)

    def close(self) -> None:
        """Drop what is kept."""
        for task in self._tasks:
            task.cancel()
        for kept in self._idle.values():
            for upstream in kept:
                upstream.close()

    # -- one request -------------------------------------------------------------------------------------------------

    async def _forward(self, connection: Connection, request: Request) -> None:
        gone = asyncio.Event()
        connection.on_gone = gone.set
        prefix = prefix_of(request.body)
        candidates = [replica for replica in self.replicas if replica.healthy]
        while candidates and not gone.is_set():
            replica = self._policy(candidates, prefix)
            replica.in_flight += 1
            try:
                upstream = await self._connect(replica)
            except (OSError, TimeoutError):
                replica.in_flight -= 1
                replica.healthy = False
                candidates.remove(replica)
                continue
            self._exchange(connection, request, replica, upstream)
            return
        if not gone.is_set():
            connection.respond(503, refusal(503, "no replica is there to answer"))

    def _exchange(self, connection: Connection, request: Request, replica: Replica, upstream: Upstream) -> None:
        """Send the request; what comes back goes to the client at once."""
        begun = False

        def pass_on(data: bytes) -> None:
            nonlocal begun
            begun = True
            connection.write(data)

        def end(whole: bool) -> None:
            replica.in_flight -= 1
            if not whole:
                self._counts.broken.labels(replica.address).inc()
            if whole and upstream.reusable:
                self._idle[replica.address].append(upstream)
            else:
                upstream.close()
            request.keep_alive = request.keep_alive and upstream.reusable
            if whole:
                connection.finish()
            elif begun:
                connection.abort()  # a cut answer must look cut
            else:
                connection.respond(502, refusal(502, "the replica closed the connection without an answer"))

        def leave() -> None:
            replica.in_flight -= 1
            upstream.close()  # so that the replica stops, too

        if connection.transport is None:
            leave()
            return
        connection.on_gone = leave
        self._counts.sent.labels(replica.address).inc()
        upstream.send(request, pass_on, end)

    async def _connect(self, replica: Replica) -> Upstream:
        kept = self._idle[replica.address]
        while kept:
            upstream = kept.pop()
            if upstream.open and time.monotonic() - upstream.idle_since_s < IDLE_S:
                return upstream
            upstream.close()
        host, _, port = replica.address.rpartition(":")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WITHIN_S):
            _, fresh = await loop.create_connection(Upstream, host.strip("[]"), int(port))
        return fresh

    # -- health ------------------------------------------------------------------------------------------------------

    async def _look(self, replica: Replica) -> None:
        was = replica.healthy
        try:
            async with asyncio.timeout(HEALTH_WITHIN_S):
                replica.healthy = await self._answers_health(replica)
        except (OSError, TimeoutError):
            replica.healthy = False
        if was != replica.healthy:
            log.warning("replica %s is %s", replica.address, "back" if replica.healthy else "gone")

    async def _answers_health(self, replica: Replica) -> bool:
        upstream = await self._connect(replica)
        answer = bytearray()
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def end(whole: bool) -> None:
            if not ended.done():
                ended.set_result(whole)

        request = Request("GET", "/health", "/health", {"host": replica.address}, b"", time.monotonic())
        upstream.send(request, answer.extend, end)
        try:
            whole = await ended
        finally:
            upstream.close()
        return whole and answer.split(b" ", 2)[1:2] == [b"200"]
