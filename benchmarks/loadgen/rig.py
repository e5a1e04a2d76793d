"""The rig: a server of exactly known latency on one core, clients on the other, and a watch on their processor time."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from benchmarks.loadgen.truth import ServerLog
from cliffwatch.cli.processes import die_with_parent, end, free_port, wait_for
from cliffwatch.errors import ExitCode
from tests.servers.processes import descendants

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(os.environ.get("CLIFFWATCH_SHARED", ROOT.parent / "shared")) / "bench"
SERVER_CORE, CLIENT_CORE = 0, 1
WORKER_MARK = b"locustfile.py"  # in the command line of a worker of `cliffwatch run`
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") / 1024


@dataclass
class Rig:
    """Compiled server and floor, and a folder to work in."""

    folder: Path
    refserver: Path
    rawclient: Path
    runs: int = 0

    def new_folder(self) -> Path:
        self.runs += 1
        made = self.folder / f"{self.runs:03d}"
        made.mkdir()
        return made

    @contextlib.contextmanager
    def server(self, *options: object, chunks: bool = False) -> Iterator[Server]:
        """The reference server on its core; `log()` is complete when the block has ended."""
        folder, port = self.new_folder(), free_port(0)
        command = [self.refserver, "--port", port, *options, "--log", folder / "requests.csv"]
        command += ["--chunk-log", folder / "chunks.bin"] if chunks else []
        process = subprocess.Popen(pinned(SERVER_CORE, *command), stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        try:
            assert wait_for(lambda: (folder / "requests.csv").exists(), timeout_s=5)
            time.sleep(0.2)
            with Watch(process.pid) as watch:
                yield Server(port, folder, watch)
                time.sleep(0.5)  # it flushes its logs five times a second
        finally:
            end(process)


@dataclass(frozen=True)
class Server:
    port: int
    folder: Path
    watch: Watch

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> ServerLog:
        time.sleep(0.4)  # as above
        return ServerLog.read(self.folder)


def pinned(core: int | None, *command: object) -> list[str]:
    """A command held on one core; on any for None."""
    words = [str(word) for word in command]
    return words if core is None else ["taskset", "-c", str(core), *words]


def build(folder: Path) -> Rig | str:
    """The rig, or why there is none."""
    for needed in ("rustc", "taskset"):
        if shutil.which(needed) is None:
            return f"{needed} is not installed"
    made = {}
    for name in ("refserver", "rawclient"):
        source = SOURCES / f"{name}.rs"
        if not source.is_file():
            return f"{source} is not there (CLIFFWATCH_SHARED names the folder that holds bench/)"
        made[name] = folder / name
        subprocess.run(["rustc", "-O", "-o", str(made[name]), str(source)], check=True, capture_output=True)
    return Rig(folder, made["refserver"], made["rawclient"])


@dataclass
class Track:
    """One process over time: instants in monotonic ns, processor seconds used, resident megabytes."""

    role: str
    at_ns: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)

    def used_s(self, window_ns: tuple[int, int]) -> float:
        """Processor seconds within a window."""
        start, stop = np.interp(window_ns, self.at_ns, self.cpu_s)
        return float(stop - start)

    def rss_at(self, at_ns: int) -> float:
        return float(np.interp(at_ns, self.at_ns, self.rss_mb))


class Watch:
    """Looks at a process and its descendants 20 times a second."""

    def __init__(self, pid: int) -> None:
        self._root = pid
        self._over = threading.Event()
        self._tracks: dict[int, Track] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def tracks(self) -> dict[str, list[Track]]:
        """By role: `root` (one), `worker`, `other`."""
        found: dict[str, list[Track]] = defaultdict(list)
        for track in list(self._tracks.values()):
            if track.at_ns:
                found[track.role].append(track)
        return found

    def used_s(self, window_ns: tuple[int, int], role: str | None = None) -> float:
        """Processor seconds of all processes of a role (all of them for None)."""
        return sum(t.used_s(window_ns) for r, some in self.tracks().items() if role in {None, r} for t in some)

    def _look(self) -> None:
        looks = 0
        while not self._over.wait(0.05):
            if looks % 10 == 0:
                for pid in (self._root, *descendants(self._root)):
                    track = self._tracks.setdefault(pid, Track("root" if pid == self._root else "other"))
                    if track.role == "other":  # a child that was only forked still bears its parent's name
                        track.role = _role(pid)
            looks += 1
            for pid, track in self._tracks.items():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                    track.at_ns.append(time.monotonic_ns())
                    track.cpu_s.append((int(fields[11]) + int(fields[12])) * _TICK_S)
                    track.rss_mb.append(int(fields[21]) * _PAGE_KB / 1024)


def _role(pid: int) -> str:
    with contextlib.suppress(OSError):
        return "worker" if WORKER_MARK in Path(f"/proc/{pid}/cmdline").read_bytes() else "other"
    return "other"


def watched(command: Sequence[str], *, timeout_s: float = 300.0, cwd: Path | None = None) -> tuple[Watch, str]:
    """Run a client to its end under a watch; the watch and what it printed.

    A run that ended but judges itself invalid (3) is measured all the same; other failures end the benchmark.
    """
    with (cwd or Path("/tmp")).joinpath("client.log").open("w+") as said:  # noqa: S108  cwd is always given
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=cwd, env=environment())
        with Watch(process.pid) as watch:
            try:
                code = process.wait(timeout_s)
            finally:
                end(process)
        said.seek(0)
        text = said.read()
    if code not in {ExitCode.OK, ExitCode.SLO_MISSED, ExitCode.RUN_INVALID}:
        raise SystemExit(f"{' '.join(command[:8])} ... ended with {code}:\n{text[-2000:]}")
    return watch, text


def environment() -> dict[str, str]:
    """Ours, with this tree first and the peers told to stay off the network."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return os.environ | offline | {"PYTHONPATH": str(ROOT)}
