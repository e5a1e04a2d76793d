"""One HTTP answer in the making: its choices, each one sequence of the engine, and the bytes they become."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from itertools import accumulate

from services.engine.answers import Ended, Envelope, Frames
from services.engine.http import Connection
from services.engine.requests import Job
from services.engine.sequence import Sequence
from services.engine.words import COUNT, ENCODED, Text


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an answer's text ends, and where: after `tokens`, the whole text cut to `characters` by a stop string."""

    reason: str
    tokens: int
    stop: str | None = None
    characters: int | None = None


def stopped_ending(text: Text, ending: Ending, stops: Seq[str]) -> Ending:
    """The ending of a text that stops at the first of `stops` that comes up before its own ending."""
    period = COUNT + max(len(stop) for stop in stops)  # the text repeats: what is not found by then never comes
    whole = text.first(min(ending.tokens, period))
    found = [(position, stop) for stop in stops if (position := whole.find(stop)) >= 0]
    if not found:
        return ending
    position, stop = min(found)
    lengths = accumulate(len(text.first(1, after=k)) for k in range(ending.tokens))
    tokens = next(k for k, length in enumerate(lengths, 1) if length >= position + len(stop))
    return Ending("stop", tokens, stop, position)


@dataclass(frozen=True, slots=True)
class Doom:
    """What ends an answer early: `strike` is called once `after_tokens` of it are out."""

    after_tokens: int
    strike: Callable[[Answer], None]


class Choice:
    """One answer text: when its tokens came (monotonic seconds), and what the next one is."""

    __slots__ = (
        "answer", "characters", "ending", "first_s", "frames", "index", "last_s", "position", "queued_s",
        "scheduled_s", "sent", "sequence", "stride", "text",
    )  # fmt: skip

    def __init__(self, answer: Answer, index: int, text: Text, ending: Ending, sequence: Sequence) -> None:
        self.answer = answer
        self.index = index
        self.text = text
        self.ending = ending
        self.sequence = sequence
        self.position = text.start
        self.stride = text.stride
        self.sent = 0  # tokens handed over; the sequence itself may be ahead
        self.characters = 0  # handed over, counted where a stop string cuts the text
        self.queued_s = answer.received_s
        self.scheduled_s = 0.0
        self.first_s = 0.0
        self.last_s = 0.0
        self.frames: Frames | None = None
        sequence.tag = self

    def next_text(self, tokens: int) -> bytes:
        """The text of the next so many tokens."""
        text = ENCODED[self.position]
        for _ in range(tokens - 1):
            self.position = (self.position + self.stride) % COUNT
            text += ENCODED[self.position]
        self.position = (self.position + self.stride) % COUNT
        return text

    def whole_text(self) -> str:
        """The text, cut where a stop string says so."""
        return self.text.first(self.ending.tokens)[: self.ending.characters]


class Answer:
    """One request's answer, streamed or whole."""

    __slots__ = (
        "cancelled", "choices", "completion_tokens", "connection", "dirty", "doom", "envelope", "job", "out",
        "prompt_tokens", "received_s", "remaining", "roles_sent",
    )  # fmt: skip

    def __init__(self, job: Job, envelope: Envelope, connection: Connection, received_s: float) -> None:
        self.job = job
        self.envelope = envelope
        self.connection = connection
        self.received_s = received_s  # monotonic
        self.choices: list[Choice] = []
        self.prompt_tokens = sum(len(prompt) for prompt in job.prompts)
        self.completion_tokens = 0
        self.remaining = 0
        self.out: list[bytes] = []
        self.dirty = False
        self.cancelled = False
        self.doom: Doom | None = None
        self.roles_sent = not job.chat

    def add(self, choice: Choice) -> None:
        """Take a choice in, before any token comes."""
        if self.job.stream:
            choice.frames = self.envelope.wire.frames(self.envelope, choice.index)
        self.choices.append(choice)
        self.remaining += 1

    def take(self, choice: Choice, tokens: int) -> bool:
        """Some more tokens of a choice; their bytes wait for `flush`. Says whether the choice's last is among them."""
        choice.sent += tokens
        last = choice.sent >= choice.ending.tokens
        self.completion_tokens += tokens
        if last:
            self.remaining -= 1
        frames = choice.frames
        if frames is None:
            return last
        if not self.roles_sent:
            self.roles_sent = True
            self.out += [self.envelope.wire.role_frame(self.envelope, other.index) for other in self.choices]
        text = choice.next_text(tokens)
        if last or self.job.continuous_usage or choice.ending.characters is not None:
            self.out.append(self._special(choice, frames, text, last))
        else:
            self.out.append(frames.token(text))
        return last

    def flush(self) -> None:
        """Send what waits; end the answer after its last token."""
        self.dirty = False
        if self.remaining:
            if self.out:
                self.connection.write(b"".join(self.out))
                self.out.clear()
            self.meet_doom()
            return
        if self.job.stream:
            if self.job.include_usage:
                usage = self.prompt_tokens, self.completion_tokens
                self.out.append(self.envelope.wire.usage_frame(self.envelope, *usage))
            self.out.append(self.envelope.end())
            self.connection.write(b"".join(self.out))
            self.connection.finish()
        else:
            whole = self.envelope.wire.whole(self.envelope, self._ended(), self.prompt_tokens)
            self.connection.respond(200, whole)

    def meet_doom(self) -> None:
        """End early, where that is due."""
        if self.doom is not None and self.completion_tokens >= self.doom.after_tokens:
            self.doom.strike(self)

    def _special(self, choice: Choice, frames: Frames, text: bytes, last: bool) -> bytes:
        ending = choice.ending
        if ending.characters is not None:
            room = max(0, ending.characters - choice.characters)
            choice.characters += len(text)
            text = text[:room]
        return frames.special(
            text,
            finish_reason=ending.reason if last else None,
            stop_reason=ending.stop if last else None,
            usage=(self._prompt_tokens(choice), choice.sent) if self.job.continuous_usage else None,
            closes=not (self.remaining or self.job.include_usage),
        )

    def _prompt_tokens(self, choice: Choice) -> int:
        return len(self.job.prompts[choice.index // self.job.choices_per_prompt])

    def _ended(self) -> list[Ended]:
        return [
            Ended(
                index=choice.index,
                text=choice.whole_text(),
                finish_reason=choice.ending.reason,
                stop_reason=choice.ending.stop,
                prompt_tokens=self._prompt_tokens(choice),
                tokens=choice.sent,
            )
            for choice in self.choices
        ]
