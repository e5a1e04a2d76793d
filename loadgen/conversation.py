"""What makes turns a conversation: the answer is heard, and the next prompt holds it."""

from __future__ import annotations

from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.stream import DIALECTS
from cliffwatch.stream.dialect import Chunk, Reading
from cliffwatch.workload.plan import PlannedRequest
from loadgen.composer import Composer, Prepared

MAX_ANSWER_CHARS = 4 << 20
MAX_SAID_CHARS = 16 << 20


class Listening:
    """A dialect that keeps what the answer says. Reasoning is not part of it: chats do not send it back."""

    def __init__(self, dialect: Reading) -> None:
        self.ends_by_close = dialect.ends_by_close
        self._decode = dialect.decode
        self._pieces: list[str] = []
        self._chars = 0

    @property
    def text(self) -> str | None:
        """The answer; None where it was longer than is kept."""
        return None if self._chars > MAX_ANSWER_CHARS else "".join(self._pieces)

    def decode(self, data: bytes) -> Chunk:
        """See `Reading.decode`."""
        chunk = self._decode(data)
        for delta in chunk.deltas:
            self._chars += len(delta.text)
            if delta.kind == "answer" and self._chars <= MAX_ANSWER_CHARS:
                self._pieces.append(delta.text)
        return chunk


def reading_of(plan: PlannedRequest) -> Reading:
    """What a request's answer is read by: its dialect, or one that listens where a turn follows."""
    dialect = DIALECTS[plan.endpoint]
    return dialect if plan.then is None else Listening(dialect)


def next_turn(composer: Composer, prepared: Prepared, row: RequestRow, answer: str | None) -> Prepared | str:
    """The turn after `prepared`, which ended as `row`; or why there cannot be one."""
    if row.outcome is not Outcome.OK:
        return f"this turn ended as {row.outcome}"
    if answer is None or sum(map(len, prepared.said)) + len(answer) > MAX_SAID_CHARS:
        return "what was said is longer than is kept"
    if not answer:
        return "the answer has no text to go on from"
    counted = row.server_input_tokens
    input_tokens = row.input_tokens if counted is None else counted
    return composer.next_turn(prepared, answer, input_tokens + (row.output_tokens or row.max_output_tokens))
