"""The master's books: which workers there are, which parts of the run each holds, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from cliffwatch.workload.handover import Share

MAX_EVENTS = 50


@dataclass(slots=True)
class Part:
    """A piece of the schedule with one writer. It is over when its shard is closed, or nobody will close it.

    `users` are those of a closed loop. `lost` says that what was not sent of it never will be; `handed_over` that
    others have it, under parts of their own. A part that `ships` has no journal that the master sees: where it was
    handed over, whatever is below `sent_below` may have been sent.
    """

    number: int
    ids: Share
    users: Share
    client_id: str
    host: str | None = None
    pid: int | None = None
    ready: bool = False
    refusal: str | None = None
    closed: bool = False
    cut_short: bool = False
    lost: bool = False
    handed_over: bool = False
    ships: bool = False
    sent_below: int | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be decided about it."""
        return self.lost or self.handed_over or (self.closed and not self.cut_short)

    @property
    def state(self) -> str:
        """As manifests have it."""
        return "lost" if self.lost else "handed over" if self.handed_over else "finished"


@dataclass(slots=True)
class Member:
    """A worker process that takes part in the run, or stands by. `silent_s` is since its last word."""

    client_id: str
    host: str | None = None
    pid: int | None = None
    silent_s: float = 0.0
    dead: bool = False
    unfit: bool = False  # it refused a part, or was about to leave
    returns: bool = False  # known from another master's books, and not heard yet
    parts: list[Part] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        return any(not part.closed and not part.settled for part in self.parts)


class Roster:
    """Members by client id, parts by number, and what happened to them in words.

    A part's number is given once; see `loadgen.messages`.
    """

    def __init__(self, client_ids: Iterable[str]) -> None:
        self.members = {client_id: Member(client_id) for client_id in client_ids}
        self.parts: dict[int, Part] = {}
        self.events: list[str] = []

    def join(self, client_id: str) -> Member:
        member = self.members[client_id] = Member(client_id)
        return member

    def give(self, member: Member, ids: Share, users: Share) -> Part:
        """A new part for a worker."""
        part = Part(len(self.parts), ids, users, member.client_id, member.host, member.pid)
        self.parts[part.number] = part
        member.parts.append(part)
        return part

    def holder(self, part: Part) -> Member:
        return self.members[part.client_id]

    def part_of(self, client_id: str, number: int) -> Part | None:
        """A part, if that worker has it."""
        part = self.parts.get(number)
        return part if part is not None and part.client_id == client_id else None

    def held(self, client_id: str, numbers: Iterable[int]) -> list[int]:
        """Those of a worker's parts that are still its own to send."""
        parts = (self.part_of(client_id, number) for number in numbers)
        return [part.number for part in parts if part is not None and not part.settled]

    def unheard(self, client_id: str, numbers: Iterable[int]) -> list[int]:
        """Those of a worker's parts that it has closed, for all we do not know of it: the message was lost."""
        parts = (self.part_of(client_id, number) for number in numbers)
        return [part.number for part in parts if part is not None and not part.closed]

    def unknown_to(self, member: Member, known: Collection[int]) -> list[Part]:
        """Parts that were given to a worker, which never answered and does not name them: the message was lost."""
        return [p for p in member.parts if not p.ready and not p.settled and p.number not in known]

    def welcome_back(self, member: Member, known: Collection[int]) -> None:
        """A worker outlived its master, and holds the parts that it names, or will tell that it has closed them. Any
        others it closed while there was no master."""
        member.returns = False
        for part in member.parts:
            if not part.closed and not part.settled and part.number not in known:
                part.closed = part.cut_short = True

    def open_parts(self) -> list[Part]:
        """Parts that somebody may still send or close."""
        return [part for part in self.parts.values() if not part.closed and not part.settled]

    def takers(self, silent_s: float) -> list[Member]:
        """Who can take more: those who stand by, or else all who were heard within `silent_s`."""
        living = [m for m in self.members.values() if not m.dead and not m.unfit and m.silent_s < silent_s]
        return [member for member in living if not member.busy] or living

    def gone_shards(self) -> set[int]:
        """Shards whose worker sends nothing any more."""
        return {p.number for p in self.parts.values() if not p.closed and (p.settled or self.holder(p).dead)}

    def note(self, elapsed_s: float, text: str) -> None:
        """Something that the run's manifest should tell."""
        if len(self.events) < MAX_EVENTS:
            self.events.append(f"at {max(0.0, elapsed_s):.1f} s {text}")

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members.values())
