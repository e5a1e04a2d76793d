"""What can be promised about a request: one row of the table for each service level indicator."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Clock(StrEnum):
    """Where a request's time starts: when it was due (`intended`) or when its last byte left (`sent`)."""

    INTENDED = "intended"
    SENT = "sent"


class Sli(StrEnum):
    """Service level indicators that an SLO file may name (definitions: docs/timing.md)."""

    TTFT = "ttft"
    TTFA = "ttfa"
    ITL = "itl"
    TPOT = "tpot"
    NTPOT = "ntpot"
    E2E = "e2e"
    QUEUE = "queue"
    AVAILABILITY = "availability"
    GOODPUT = "goodput"
    THROUGHPUT = "throughput"
    PROMQL = "promql"


class Traits(NamedTuple):
    """How an SLI is read from a run.

    Attributes:
        label: its name for people.
        figures: the column of `requests` for each clock it can be read on; empty for availability.
        per_token: null for an answer too short to have it, which then neither meets nor misses the objective.
        help: one sentence for reports.
        needs: keys of an objective that it must have, beside the target.
        may: keys that it may have.
        on_runs: whether rows of a load run tell it; else only Prometheus does.
    """

    label: str
    figures: dict[Clock, str]
    per_token: bool
    help: str
    needs: tuple[str, ...] = ("threshold",)
    may: tuple[str, ...] = ("input_tokens", "clock", "slices")
    on_runs: bool = True


SLIS: dict[Sli, Traits] = {
    Sli.TTFT: Traits("TTFT", {Clock.INTENDED: "ttft_user_s", Clock.SENT: "ttft_s"}, False, "time to the first token"),
    Sli.TTFA: Traits(
        "TTFA", {Clock.INTENDED: "ttfa_user_s", Clock.SENT: "ttfa_s"}, False, "time to the first token of the answer"
    ),
    Sli.ITL: Traits("ITL", {Clock.SENT: "itl_s"}, True, "mean time between tokens after the first"),
    Sli.TPOT: Traits("TPOT", {Clock.SENT: "tpot_s"}, True, "(E2E - TTFT) / (output tokens - 1)"),
    Sli.NTPOT: Traits("NTPOT", {Clock.SENT: "ntpot_s"}, True, "E2E / output tokens"),
    Sli.E2E: Traits("E2E", {Clock.INTENDED: "e2e_user_s", Clock.SENT: "e2e_s"}, False, "time to the last token"),
    Sli.QUEUE: Traits("queue time", {}, False, "time in the engine's queue", may=("slices",), on_runs=False),
    Sli.AVAILABILITY: Traits(
        "availability", {}, False, "share of requests that were answered in full", (), ("input_tokens", "slices")
    ),
    Sli.GOODPUT: Traits("goodput", {}, False, "share of requests that meet every other objective", (), ()),
    Sli.THROUGHPUT: Traits("throughput", {}, False, "tokens generated a second", ("slices",), (), on_runs=False),
    Sli.PROMQL: Traits("PromQL", {}, False, "as the file's own PromQL has it", ("name", "promql"), ("slices",), False),
}
