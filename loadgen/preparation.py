"""Everything that can be found wrong before any load is sent, and all that a run needs to begin."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, get_args

import msgspec
import numpy as np

from cliffwatch.errors import RunError
from cliffwatch.records.calibration import Calibration
from cliffwatch.records.files import shards_dir
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState
from cliffwatch.slo.edges import histogram_edges
from cliffwatch.slo.spec import load_run_slo, parse_slo, slo_text
from cliffwatch.workload.handover import Share
from cliffwatch.workload.lexicon import Lexicon, Method
from cliffwatch.workload.recorded import manifest_fields
from cliffwatch.workload.schedule import plan_blocks
from cliffwatch.workload.spec import Workload, workload_text
from loadgen.access import Access
from loadgen.origin import Origin
from loadgen.settings import Settings
from loadgen.target import Probe, Target, inspect_target
from loadgen.tokenizing import endpoints, learn_lexicons

_NO_LIMIT = 1 << 62
_COUNTED_BLOCKS = 250  # about a million requests are looked at for prompts over the model's limit


class AssignedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the run; `lexicon` is the place of its own in the assignment's `lexicons`."""

    name: str
    limit_tokens: int | None
    lexicon: int


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What the master tells one worker: a part of the run. No secret is in it: each worker reads its own token.

    `models` begins with the one that requests without a model of their own ask for. `shard` is the part's number, `ids`
    the requests of the schedule (its sessions, where it has some), `users` those of a closed loop that it runs.
    """

    run_id: str
    run_dir: str
    workload: dict[str, Any]
    lexicons: list[Lexicon]
    target: str
    models: list[AssignedModel]
    shard: int
    ids: Share
    users: Share
    ca_file: str | None
    insecure: bool
    drain_s: float
    edges: dict[str, tuple[float, ...]]  # of live histograms, by figure
    count_rows: bool  # for the master's live metrics
    replica_header: str | None = None  # of answers: names the replica


@dataclass(frozen=True, slots=True)
class Preparation:
    """A run that may begin: everything checked, nothing sent but probes."""

    run_id: str
    settings: Settings
    workload: Workload
    workload_text: str
    slo_text: str | None
    origin: Origin
    target: Target
    lexicons: dict[str, Lexicon]
    notes: tuple[str, ...]
    calibration: Calibration | None = None

    def assignment(self, shard: int, ids: Share, users: Share) -> Assignment:
        ca_file = self.settings.ca_file
        lexicons: list[Lexicon] = []
        for lexicon in self.lexicons.values():
            if lexicon not in lexicons:
                lexicons.append(lexicon)
        return Assignment(
            run_id=self.run_id,
            run_dir=str(self.settings.out.absolute()),
            workload=self.workload.model_dump(mode="json", exclude_unset=True),
            lexicons=lexicons,
            target=self.origin.url(),
            models=[
                AssignedModel(name=name, limit_tokens=limit, lexicon=lexicons.index(self.lexicons[name]))
                for name, limit in self.target.limits.items()
            ],
            shard=shard,
            ids=ids,
            users=users,
            ca_file=None if ca_file is None else str(ca_file.absolute()),
            insecure=self.settings.insecure,
            drain_s=self.settings.drain_s,
            edges=self.edges(),
            count_rows=self.settings.metrics is not None,
            replica_header=None if self.settings.replicas is None else self.settings.replicas.header,
        )

    def tightest_s(self) -> dict[str, float]:
        """The shortest threshold of the SLO file on TTFT and on ITL, where it has one."""
        slo = None if self.slo_text is None else parse_slo(self.slo_text, source=str(self.settings.slo))
        found: dict[str, float] = {}
        for one in () if slo is None else slo.objectives:
            if one.sli in {"ttft", "itl"} and one.threshold is not None:
                found[str(one.sli)] = min(one.threshold, found.get(str(one.sli), one.threshold))
        return found

    def edges(self) -> dict[str, tuple[float, ...]]:
        """Edges of the live metrics' histograms, by figure."""
        slo = None if self.slo_text is None else parse_slo(self.slo_text, source=str(self.settings.slo))
        return histogram_edges(slo, open_loop=self.workload.open_loop, engine_name=self.target.engine)

    def manifest(self, t0_unix_ns: int) -> Manifest:
        return Manifest(
            **manifest_fields(self.workload),
            run_id=self.run_id,
            state=RunState.RUNNING,
            created_unix_s=time.time(),
            t0_unix_ns=t0_unix_ns,
            target=self.origin.url(),
            endpoint="+".join(endpoints(self.workload)),
            model="+".join(self.target.limits),
            engine=self.target.engine,
            prompt_method=_least_exact(self.lexicons.values()),
            versions={name: version(name) for name in ("cliffwatch", "locust")} | {"python": platform.python_version()},
            host={"name": platform.node(), "system": platform.platform(), "cpus": str(os.cpu_count())},
            calibration=self.calibration,
            tightest_s=self.tightest_s(),
            replicas=self.settings.replicas,
            warnings=self.notes,
        )


def prepare(settings: Settings) -> Preparation:
    """Check files, folder and target, in the order of what is cheapest, and learn how long prompts are.

    Raises:
        InputError: a file or option cannot be used, or the target answers but not as asked.
        RunError: the run's folder is taken or cannot be written.
        UnreachableError: the target cannot be reached.
    """
    workload = settings.read_workload()
    if settings.slo is not None:
        load_run_slo(settings.slo)
    check_folder(settings.out)
    access = Access.of(settings.target, settings.secrets, ca_file=settings.ca_file, insecure=settings.insecure)
    probe = Probe(access)
    try:
        target = inspect_target(probe, workload)
        lexicons, notes = learn_lexicons(probe, target, workload, settings.tokenizer)
    finally:
        probe.close()
    unverified = ("the target's TLS certificate was not verified (--insecure)",) if settings.insecure else ()
    return Preparation(
        run_id=time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + token_hex(4),
        settings=settings,
        workload=workload,
        workload_text=workload_text(settings.workload),
        slo_text=None if settings.slo is None else slo_text(settings.slo),
        origin=access.origin,
        target=target,
        lexicons=lexicons,
        notes=(*target.notes, *notes, *unverified, *access.notes, *_over_limit(workload, target.limits)),
    )


def check_folder(path: Path) -> None:
    """Refuse a run folder that is taken or not writable, before anything is sent. Raises RunError."""
    if (path / FILE_NAME).exists() or shards_dir(path).exists():
        raise RunError("already holds a run", file=path, allowed="a new or empty folder as --out")
    nearest = path.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise RunError("is not a folder", file=nearest)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise RunError("cannot be written", file=nearest)
    try:
        stranger = min((each.name for each in path.iterdir()), default=None) if path.exists() else None
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", file=path) from error
    if stranger is not None:
        raise RunError("holds other files", file=path, value=stranger, allowed="a new or empty folder as --out")


def _over_limit(workload: Workload, limits: Mapping[str, int | None]) -> tuple[str, ...]:
    """How many requests will be shortened to fit the model, in words; nothing where none will."""
    if not any(limits.values()):
        return ()
    named = [limits[entry.name] for entry in workload.models] if workload.models else [next(iter(limits.values()))]
    most = np.array([_NO_LIMIT if limit is None else limit for limit in named])
    looked_at = over = 0
    for block in islice(plan_blocks(workload), _COUNTED_BLOCKS):
        first = block.extra["turn"] == 0 if "turn" in block.extra else np.full(len(block), True)
        limit = most[block.extra["model"]] if "model" in block.extra else most[0]
        looked_at += int(first.sum())
        over += int((first & (block.input_tokens + block.output_tokens > limit)).sum())
    if not over:
        return ()
    takes = ", ".join(str(limit) for limit in sorted({limit for limit in named if limit is not None}))
    note = (
        f"{over} of {looked_at} planned requests are longer than the model takes ({takes} tokens, prompt and "
        "answer together): they are shortened to fit, and each says so"
    )
    return (note,)


def _least_exact(lexicons: Iterable[Lexicon]) -> Method:
    return max((lexicon.method for lexicon in lexicons), key=get_args(Method).index)
