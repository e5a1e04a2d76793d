"""Whether two runs may be compared: what differs between them besides what was measured."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from cliffwatch.errors import InputError, shorten
from cliffwatch.records.manifest import Manifest, VerdictState
from cliffwatch.slo.judge import partial_note

# Another of these is another experiment: refused, unless the person says that it is meant so.
REFUSED = {
    "workload": "the workload",
    "model": "the model",
    "endpoint": "the endpoint",
    "loop": "whether arrivals wait for answers",
}
# Another of these may be what is compared, or may explain what is found: said.
SAID = {"engine": "engine", "target": "target", "prompt_method": "prompts' length", "seed": "seed"}
# Parts of a workload file that send no other traffic, or that have a line of their own.
_BESIDE = frozenset({"name", "description", "cost", "seed", "model", "endpoint"})
SHOWN_DIFFERENCES = 4


def check_comparable(base: Manifest, new: Manifest, allowed: Collection[str] = ()) -> tuple[str, ...]:
    """Remarks on what differs.

    Args:
        allowed: keys of `REFUSED` that may differ.

    Raises:
        InputError: something differs that may not; all of it is named.
    """
    refused = {key: text for key in REFUSED if (text := _differs(key, base, new))}
    if stopping := [f"{REFUSED[key]} ({text})" for key, text in refused.items() if key not in allowed]:
        options = " ".join(f"--allow {key}" for key in refused if key not in allowed)
        raise InputError(f"the runs are not comparable: {'; '.join(stopping)}", allowed=f"like runs, or {options}")
    remarks = [f"{REFUSED[key]} differs: {text}" for key, text in refused.items()]
    remarks += [f"{label} differs: {text}" for key, label in SAID.items() if (text := _unlike(base, new, key))]
    for key in ("versions", "host"):
        names = sorted(_differences(getattr(base, key), getattr(new, key)))
        remarks += [f"{key} differ: {'; '.join(names[:SHOWN_DIFFERENCES])}"] if names else []
    return (*remarks, *_trust("base", base), *_trust("new", new))


def _differs(key: str, base: Manifest, new: Manifest) -> str | None:
    if key == "workload":
        return _workload(base, new)
    return _unlike(base, new, "open_loop" if key == "loop" else key)


def _unlike(base: Manifest, new: Manifest, key: str) -> str | None:
    first, second = getattr(base, key), getattr(new, key)
    return None if first == second else f"{shorten(first)} against {shorten(second)}"


def _workload(base: Manifest, new: Manifest) -> str | None:
    """What differs in the workload files; two seeds of one file are one workload."""
    first, second = ({key: one for key, one in run.workload.items() if key not in _BESIDE} for run in (base, new))
    found = list(_differences(first, second))
    if found:
        more = len(found) - SHOWN_DIFFERENCES
        return "; ".join(found[:SHOWN_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")
    if base.seed == new.seed and base.schedule_hash != new.schedule_hash:
        return f"schedule {base.schedule_hash[:12]} against {new.schedule_hash[:12]}"
    return None


def _differences(base: Any, new: Any, path: str = "") -> Iterator[str]:
    if isinstance(base, dict) and isinstance(new, dict):
        for key in [*base, *(key for key in new if key not in base)]:
            yield from _differences(base.get(key), new.get(key), f"{path}.{key}".removeprefix("."))
    elif base != new:
        yield f"{path} {shorten(base)} against {shorten(new)}"


def _trust(which: str, run: Manifest) -> Iterator[str]:
    if note := partial_note(run):
        yield f"{which}: {note[0].lower()}{note[1:].rstrip('.')}"
    if run.verdict is None:
        yield f"{which}: the run has no verdict yet"
    elif run.verdict.state is not VerdictState.VALID:
        yield f"{which} is {run.verdict.state}: {'; '.join(reason.message for reason in run.verdict.reasons)}"
