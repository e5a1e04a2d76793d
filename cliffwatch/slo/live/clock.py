"""How far Prometheus's clock, which stamps its samples, is from that of the machine that asks."""

from __future__ import annotations

from cliffwatch.units import format_seconds

ALIKE_S = 1.0


def clock_note(server_s: float, before_s: float, after_s: float) -> str | None:
    """What to say of clocks that differ by over `ALIKE_S`; None where they need not.

    `server_s` is the server's time (all are Unix seconds) at some moment between `before_s` and `after_s` of ours, so
    that only what lies outside is told: the least by which they differ.
    """
    off_s = max(before_s - server_s, server_s - after_s)
    if off_s <= ALIKE_S:
        return None
    return f"Prometheus's clock is at least {format_seconds(off_s)} off this machine's: the two times may not be one"
