"""A Prometheus that holds the compiled records of one objective, as a script for the scripted server."""

from __future__ import annotations

from tests.slo.live.scripted import Script, answer, vector

SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 99%}
watch: {engine: vllm, match: {job: vllm}, group_by: [model_name]}
"""
OBJECTIVE = {"slo": "chat", "objective": "ttft-2.5s-99pct"}
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")


def records(
    bad: float,
    *,
    events: float = 10.0,
    counted: float | None = None,
    warnings: list[str] | None = None,
    without: str | None = None,
) -> Script:
    """10 events a second of model m, this share bad in every window; 2.5 s is a bucket edge except on `without`.

    `counted`: bad events as each long window's record has them; None: rules that do not record them.
    """
    own = {**OBJECTIVE, "model_name": "m"}
    series = [({"__name__": f"cliffwatch_slo:events:rate{window}", **own}, events) for window in WINDOWS]
    series += [({"__name__": f"cliffwatch_slo:bad:rate{window}", **own}, events * bad) for window in WINDOWS]
    if counted is not None:
        series += [({"__name__": f"cliffwatch_slo:bad:count{window}", **own}, counted) for window in WINDOWS]
    if events:
        series.append(({"__name__": "cliffwatch_slo:bad:ratio30d", **own}, bad))
    edges = [
        ({"instance": at, "model_name": "m", "le": le}, 1) for at in ("a:1", "b:1") for le in ("1.0", "2.5", "+Inf")
    ]

    def script(path: str, query: str) -> tuple[int, bytes]:
        if path == "/api/v1/alerts":
            return 200, answer({"alerts": []})
        if query.startswith("{__name__"):
            return 200, vector(*series, warnings=warnings)
        if "sum_over_time" in query:
            return 200, vector((own, events * 30 * 86_400))
        if query.startswith("group by"):
            return 200, vector(*(one for one in edges if (one[0]["instance"], one[0]["le"]) != (without, "2.5")))
        return 200, vector()

    return script
