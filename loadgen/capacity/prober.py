"""One probe: a `cliffwatch run` of its own, watched while it goes on, and stopped once its verdict is certain.

A process a probe costs two or three seconds of start-up and shares nothing with the others: no connection, no queue, no
worker that a probe past the edge has worn out.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from cliffwatch.capacity.evidence import Evidence, cooldown_s, weigh
from cliffwatch.capacity.result import Record, record
from cliffwatch.capacity.rows import read_series
from cliffwatch.capacity.search import Probe
from cliffwatch.capacity.sequential import LOOKS, Outcome, decide
from cliffwatch.capacity.variation import at_rate
from cliffwatch.cli.processes import die_with_parent, end
from cliffwatch.errors import ExitCode, InputError, RunError, UnreachableError
from cliffwatch.records.manifest import Manifest, RunState, VerdictState, read_manifest
from cliffwatch.records.reader import RunReader
from cliffwatch.slo.spec import SloFile
from cliffwatch.workload.spec import Workload
from loadgen.capacity.stopping import Stopping

DRAIN_S = 1.0  # of a probe that is stopped: what it has in flight cannot change its verdict any more
CLOSE_WITHIN_S = 120.0
_POLL_S = 0.25
_ERRORS = {ExitCode.BAD_INPUT: InputError, ExitCode.UNREACHABLE: UnreachableError}


@dataclass(frozen=True, slots=True)
class Plan:
    """What all probes of a search have in common; `options` are further ones of `cliffwatch run`."""

    workload: Workload
    slo: SloFile
    slo_source: str
    target: str
    out: Path
    duration_s: float
    options: tuple[str, ...]

    @property
    def targets(self) -> tuple[float, ...]:
        return tuple(one.target for one in self.slo.objectives)


@dataclass(slots=True)
class _Watched:
    """How a probe ended: `until_s` and `outcome` of the look that stopped it, None where it ran to its end."""

    code: int = 0
    until_s: float | None = None
    outcome: Outcome | None = None


class Prober:
    """Sends probes of one plan, one after the other."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        self._plan, self._stopping = plan, stopping

    def probe(self, number: int, rate: float, notes: tuple[str, ...] = ()) -> Record:
        """Send one probe and weigh it.

        Raises:
            InputError, UnreachableError: the run could not begin, as it said itself.
            RunError: its rows cannot be read.
            Interrupted: the search is to end; the probe's run is closed then.
        """
        folder, workload = self._free(number), self._workload(number, rate)
        watched = self._run(folder, workload)
        manifest = self._closed(folder, watched)
        evidence = self._evidence(folder, workload, watched.until_s)
        untrusted = _untrusted(manifest, stopped=watched.outcome is not None)
        outcome = Outcome.INVALID if untrusted else watched.outcome or decide(evidence, self._plan.targets)
        return record(
            Probe(rate=rate, outcome=outcome, evidence=evidence),
            number=number,
            folder=folder.name,
            sent_s=_sent_s(manifest, workload),
            verdict=None if manifest.verdict is None else str(manifest.verdict.state),
            notes=(*notes, *untrusted, *(() if untrusted else _doubts(manifest, watched))),
        )

    def _free(self, number: int) -> Path:
        """A folder that is not taken, as by a probe that was interrupted."""
        names = (f"probe-{number:02d}{again}" for again in ("", *(f"-again-{tries}" for tries in range(1, 1000))))
        return next(path for path in map(self._plan.out.joinpath, names) if not path.exists())

    def _workload(self, number: int, rate: float) -> Workload:
        return at_rate(self._plan.workload, rate, duration_s=self._plan.duration_s, number=number)

    def _run(self, folder: Path, workload: Workload) -> _Watched:
        file, log = folder.with_suffix(".yaml"), folder.with_suffix(".log")
        try:
            file.write_text(yaml.safe_dump(workload.model_dump(mode="json", exclude_unset=True), sort_keys=False))
            output = log.open("wb")
        except OSError as error:
            raise RunError(f"cannot be written: {error.strerror or error}", file=folder.parent) from error
        plan = self._plan
        command = [sys.executable, "-m", "cliffwatch", "run", str(file), "--target", plan.target, "--out", str(folder)]
        command += ["--slo", plan.slo_source, "--drain", f"{DRAIN_S:g}s", "--no-report", *plan.options]
        with output, _child(command, output) as process:
            return self._watch(process, folder, workload)

    def _watch(self, process: subprocess.Popen[bytes], folder: Path, workload: Workload) -> _Watched:
        """Until it has ended. Looks at its data at `LOOKS`, and stops it when a look decides."""
        looks = [share * self._plan.duration_s for share in LOOKS]
        reader: RunReader | None = None
        while process.poll() is None:
            self._stopping.sleep(_POLL_S)
            elapsed_s = _elapsed_s(folder)
            if elapsed_s is None or elapsed_s < looks[0]:
                continue
            reader = reader or RunReader(folder)
            until_s, outcome = self._look(reader, workload, looks[0])
            last = len(looks) == 1
            if outcome is Outcome.FAILS or (outcome is Outcome.HOLDS and not last):
                process.send_signal(signal.SIGINT)
                _wait(process)
                return _Watched(process.returncode, until_s, outcome)
            if last:  # sent is sent: only an overload, whose queue takes long to answer, is not waited for
                self._stopping.sleep(1.0)
            else:
                looks.pop(0)
        return _Watched(process.returncode)

    def _look(self, reader: RunReader, workload: Workload, at_s: float) -> tuple[float, Outcome]:
        try:
            series = read_series(reader, self._plan.slo, workload)
        except RunError:  # its files change right now: the next look sees more
            return 0.0, Outcome.UNDECIDED
        ended = series.ended_s[series.ended_s < float("inf")]
        if not len(ended):
            return 0.0, Outcome.UNDECIDED
        until_s = min(at_s, float(ended.max())) - cooldown_s(series)
        return until_s, decide(weigh(series, until_s=until_s), self._plan.targets)

    def _evidence(self, folder: Path, workload: Workload, until_s: float | None) -> Evidence | None:
        series = read_series(RunReader(folder), self._plan.slo, workload)
        if not len(series):
            return None
        return weigh(series, until_s=until_s or float(series.due_s[-1]) - cooldown_s(series))

    def _closed(self, folder: Path, watched: _Watched) -> Manifest:
        """The closed run's manifest. Raises what kept it from being one, in its own words."""
        known = {ExitCode.OK, ExitCode.SLO_MISSED, ExitCode.RUN_INVALID, ExitCode.INTERRUPTED}
        if watched.code not in known or not folder.exists():
            log = folder.with_suffix(".log")
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            said = lines[-1].removeprefix("cliffwatch: ") if lines else f"exit code {watched.code}"
            raise _ERRORS.get(ExitCode(watched.code) if watched.code in list(ExitCode) else ExitCode.OK, RunError)(said)
        manifest = read_manifest(folder)
        if manifest.state is RunState.RUNNING:
            raise RunError("was not closed: its process was killed", file=folder)
        return manifest


@contextmanager
def _child(command: list[str], output: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, so that Ctrl-C is ours to pass on; however the block ends, so does it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        process_group=0,
        preexec_fn=die_with_parent,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=CLOSE_WITHIN_S)
    except subprocess.TimeoutExpired:
        end(process)


def _elapsed_s(folder: Path) -> float | None:
    """Since the run's zero; None before it began."""
    try:
        return time.time() - read_manifest(folder).t0_unix_ns / 1e9
    except RunError:
        return None


def _untrusted(manifest: Manifest, *, stopped: bool) -> tuple[str, ...]:
    """Why a run says nothing about the server: its own verdict, or an end that was not ours."""
    verdict = manifest.verdict
    if verdict is not None and verdict.state is VerdictState.INVALID:
        return tuple(one.message for one in verdict.reasons if one.state is VerdictState.INVALID)
    if manifest.state is RunState.PARTIAL and not stopped:
        return (manifest.partial_reason or "the run is partial",)
    return ()


def _doubts(manifest: Manifest, watched: _Watched) -> Iterator[str]:
    """What makes a run DEGRADED, but for our own stopping it and the few requests that this left."""
    own = {"partial run", "few samples"} if watched.outcome is not None else set()
    for reason in manifest.verdict.reasons if manifest.verdict else ():
        if reason.check not in own:
            yield reason.message


def _sent_s(manifest: Manifest, workload: Workload) -> float:
    return min(workload.duration or 0.0, manifest.load_s or 0.0)
