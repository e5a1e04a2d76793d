"""One HTTP answer in the making: its choices, each one sequence of the engine, and the bytes they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from services.engine.answers import Envelope, Frames
from services.engine.http import Connection
from services.engine.requests import Job
from services.engine.scheduler import Sequence
from services.engine.words import COUNT, ENCODED, Text


class Choice:
    """One answer text: when its tokens came (monotonic seconds), and what the next one is."""

    __slots__ = (
        "answer", "arrived_s", "cut", "finish_reason", "first_s", "frames", "index", "last_s", "position", "queued_s",
        "scheduled_s", "sequence", "stop_reason", "stride", "text",
    )  # fmt: skip

    def __init__(self, answer: Answer, index: int, text: Text, arrived_s: float) -> None:
        self.answer = answer
        self.index = index
        self.text = text
        self.position = text.start
        self.stride = text.stride
        self.arrived_s = arrived_s
        self.queued_s = arrived_s
        self.scheduled_s = 0.0
        self.first_s = 0.0
        self.last_s = 0.0
        self.finish_reason = "length"
        self.stop_reason: str | None = None
        self.cut: int | None = None  # characters of the whole text that are sent, where a stop string ends it
        self.frames: Frames | None = None
        self.sequence: Sequence | None = None

    def whole_text(self) -> str:
        """The text up to now, cut where a stop string says so."""
        assert self.sequence is not None  # noqa: S101  set when it was submitted
        return self.text.first(self.sequence.generated)[: self.cut]


class Answer:
    """One request's answer, streamed or whole.

    Args:
        on_end: called once when the last token has been handed over.
    """

    __slots__ = (
        "choices", "completion_tokens", "connection", "dirty", "envelope", "job", "on_end", "out", "prompt_tokens",
        "remaining", "roles_sent",
    )  # fmt: skip

    def __init__(self, job: Job, envelope: Envelope, connection: Connection, on_end: Callable[[Answer], None]) -> None:
        self.job = job
        self.envelope = envelope
        self.connection = connection
        self.on_end = on_end
        self.choices: list[Choice] = []
        self.prompt_tokens = sum(len(prompt) for prompt in job.prompts)
        self.completion_tokens = 0
        self.remaining = 0
        self.out: list[bytes] = []
        self.dirty = False
        self.roles_sent = not job.chat

    def add(self, choice: Choice) -> None:
        """Take a choice in, before any token comes."""
        if self.job.stream:
            choice.frames = Frames(self.envelope, choice.index)
        self.choices.append(choice)
        self.remaining += 1

    def token(self, choice: Choice, sequence: Sequence) -> None:
        """One more token of a choice; its bytes wait for `flush`."""
        last = sequence.done
        self.completion_tokens += 1
        if last:
            self.remaining -= 1
        frames = choice.frames
        if frames is None:
            return
        if not self.roles_sent:
            self.roles_sent = True
            self.out += [self.envelope.role_frame(other.index) for other in self.choices]
        text = ENCODED[choice.position]
        choice.position = (choice.position + choice.stride) % COUNT
        if last or self.job.continuous_usage:
            self.out.append(self._special(choice, sequence, text, last))
        else:
            self.out.append(frames.token(text))

    def flush(self) -> None:
        """Send what waits; end the answer after its last token."""
        self.dirty = False
        if self.remaining:
            if self.out:
                self.connection.write(b"".join(self.out))
                self.out.clear()
            return
        if self.job.stream:
            if self.job.include_usage:
                self.out.append(self.envelope.usage_frame(self.prompt_tokens, self.completion_tokens))
            self.out.append(self.envelope.end())
            self.connection.write(b"".join(self.out))
            self.on_end(self)
            self.connection.finish()
        else:
            body = self.envelope.whole(self._whole_choices(), self.prompt_tokens, self.completion_tokens)
            self.on_end(self)
            self.connection.respond(200, body)

    def _special(self, choice: Choice, sequence: Sequence, text: bytes, last: bool) -> bytes:
        assert choice.frames is not None  # noqa: S101  the caller looked
        if last and choice.cut is not None:
            before = len(choice.text.first(sequence.generated - 1))
            text = text[: max(0, choice.cut - before)]
        prompt_tokens = len(self.job.prompts[choice.index // self.job.choices_per_prompt])
        usage = (prompt_tokens, sequence.generated) if self.job.continuous_usage else None
        finish, stop = (choice.finish_reason, choice.stop_reason) if last else (None, None)
        return choice.frames.special(text, finish, stop, usage)

    def _whole_choices(self) -> list[dict[str, Any]]:
        return [
            self.envelope.whole_choice(choice.index, choice.whole_text(), choice.finish_reason, choice.stop_reason)
            for choice in self.choices
        ]
