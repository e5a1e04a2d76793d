"""Single questions to a server, before and outside the load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cliffwatch.errors import UnreachableError
from cliffwatch.records.schema import Outcome
from cliffwatch.stream import StreamResult
from cliffwatch.stream.dialect import Reading
from cliffwatch.stream.http_error import classify_http
from loadgen.access import Access, request_bytes
from loadgen.answer import BodySink, StreamSink
from loadgen.connection import Timeouts, Transfer
from loadgen.transport import Transport

_PROBE_TIMEOUTS = Timeouts(connect_s=10.0, first_token_s=60.0, stall_s=60.0, total_s=60.0)
_MAX_ANSWER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a probe."""

    status: int
    kind: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def said(self) -> str:
        """The error or page in a line."""
        return classify_http(self.status, self.kind, self.body)[1]


class Probe:
    """Asks a server single questions, before and outside the load."""

    def __init__(self, access: Access) -> None:
        self.origin = access.origin
        self._access = access
        self._transport = Transport(access, _PROBE_TIMEOUTS)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Raises UnreachableError when no answer came; any HTTP status is an answer."""
        data = b"" if body is None else json.dumps(body).encode()
        sink = BodySink(_MAX_ANSWER_BYTES)
        transfer = self._transport.send(request_bytes(self._access, method, path, data), sink)
        if transfer.outcome is not None or not sink.status:
            raise UnreachableError(_why(transfer), file=self.origin.url(path))
        return Answer(sink.status, sink.headers.get("content-type", ""), sink.headers, bytes(sink.data))

    def generate(self, dialect: Reading, path: str, body: bytes) -> StreamResult:
        """A request as the load sends them. Raises UnreachableError when no answer came."""
        sink = StreamSink(dialect, 1, 1)
        transfer = self._transport.send(request_bytes(self._access, "POST", path, body), sink)
        if sink.status is None:
            raise UnreachableError(_why(transfer), file=self.origin.url(path))
        return sink.result(transfer)

    def close(self) -> None:
        self._transport.close()


def _why(transfer: Transfer) -> str:
    text = transfer.message or "the connection was closed before an answer"
    if transfer.outcome is Outcome.TLS and "certificate required" in text:
        return f"{text} (--client-cert FILE shows ours)"
    if transfer.outcome is Outcome.TLS:
        return f"{text} (--ca-file FILE trusts an authority of your own)"
    if transfer.outcome is Outcome.TIMEOUT_FIRST_TOKEN:
        return f"no answer within {_PROBE_TIMEOUTS.first_token_s:g} s"
    return text
