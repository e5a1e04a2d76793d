"""Cost of reading a token stream: `.venv/bin/python benchmarks/parse_stream.py` (aim: under 6 us an event, one core).

Feeds recorded streams event by event, as a busy client receives them, from framing to the finished result.
"""

from __future__ import annotations

import time
from pathlib import Path

from cliffwatch.stream import DIALECTS, ResponseReader

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "streams"
ROUNDS = 50


def microseconds_an_event(body: bytes, dialect: str, batch: int) -> tuple[float, int]:
    """Best of `ROUNDS` (the others were disturbed), and the number of events."""
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    best_s = float("inf")
    for _ in range(ROUNDS):
        reader = ResponseReader(DIALECTS[dialect], batch)
        start = time.perf_counter()
        for stamp, event in enumerate(events):
            reader.feed(stamp * 1_000_000, event)
        reader.finish(len(events) * 1_000_000, clean=True)
        best_s = min(best_s, time.perf_counter() - start)
    return best_s / len(events) * 1e6, len(events)


def main() -> None:
    for case, dialect, batch in (("chat_long", "chat", 1), ("completion_batch4", "completions", 4)):
        for path in sorted(FIXTURES.glob(f"*/{case}.body")):
            cost_us, events = microseconds_an_event(path.read_bytes(), dialect, batch)
            print(f"{path.parent.name} {case}: {cost_us:.2f} us an event, {events} events")


if __name__ == "__main__":
    main()
