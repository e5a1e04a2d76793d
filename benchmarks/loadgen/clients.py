"""The clients of a round: the floor, Cliffwatch, and the peers, all asked for the same load of one server."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.loadgen.rig import CLIENT_CORE, ROOT, Rig, Server, Watch, pinned, watched
from benchmarks.loadgen.truth import Numbers, Request, window_ns
from cliffwatch.records.reader import RunReader

VLLM = ROOT / ".tools" / "vllm"
_WORKLOAD = """\
name: benchmark
{amount}
arrivals: {arrivals}
input_tokens: {{kind: fixed, value: 16}}
output_tokens: {{kind: fixed, value: {tokens}}}
batch: {{sizes: [1]}}
endpoint: completions
cold_start: {{requests: 0}}
"""


@dataclass(frozen=True)
class Load:
    """A closed loop: `streams` users, `requests` in all, `tokens` a answer."""

    streams: int
    requests: int
    tokens: int


@dataclass(frozen=True)
class Seen:
    """What a client said of its requests, by the id it sent, beside what the server did.

    `ttft_ms` and `itl_ms` are one a request, in the order of `true`; `gaps_ms` and the true ones one a gap, where the
    client kept every gap. `core` is the share of a core that the client's processes used while it sent.
    """

    true: list[Request]
    ttft_ms: Numbers
    itl_ms: Numbers
    gaps: list[tuple[int, Numbers]] = field(default_factory=list)
    chunks: int = 0
    core: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """A finished `cliffwatch run`: its folder and the watch on its processes."""

    folder: Path
    watch: Watch

    @property
    def run_id(self) -> str:
        return RunReader(self.folder).manifest.run_id

    def rows(self, columns: str, where: str = "outcome = 'ok'") -> list[tuple[object, ...]]:
        with RunReader(self.folder).connect() as connection:
            found: list[tuple[object, ...]] = connection.execute(
                f"SELECT {columns} FROM requests WHERE {where}"  # noqa: S608  our own text
            ).fetchall()
        return found


def cliffwatch(
    rig: Rig,
    server: Server,
    *,
    arrivals: str,
    tokens: int,
    amount: str,
    workers: int = 1,
    core: int | None = CLIENT_CORE,
    timeout_s: float = 300.0,
) -> Run:
    """`cliffwatch run` as a user starts it, master and workers on `core`."""
    folder = rig.new_folder()
    workload = folder / "workload.yaml"
    workload.write_text(_WORKLOAD.format(amount=amount, arrivals=arrivals, tokens=tokens))
    command = [sys.executable, "-m", "cliffwatch", "run", workload, "--target", server.url, "--no-report"]
    command += ["--model", "ref", "--workers", workers, "--out", folder / "run"]
    watch, _ = watched(pinned(core, *command), cwd=folder, timeout_s=timeout_s)
    return Run(folder / "run", watch)


def run_closed(rig: Rig, server: Server, load: Load) -> Seen:
    """Cliffwatch on a closed loop, joined with the server's log."""
    arrivals = f"{{kind: concurrency, users: {load.streams}}}"
    run = cliffwatch(rig, server, arrivals=arrivals, tokens=load.tokens, amount=f"requests: {load.requests}")
    log = server.log().of(run.run_id)
    rows = run.rows("request_id, ttft_s * 1e3, itl_s * 1e3, chunk_gaps_us, chunks")
    true = [log[f"{run.run_id}-{row[0]}"] for row in rows]
    seen = [(t.seq, np.array(row[3] or [], np.float64) / 1e3) for t, row in zip(true, rows, strict=True)]
    chunks = sum(int(str(row[4])) for row in rows)
    return _seen(log, true, [row[1] for row in rows], [row[2] for row in rows], seen, chunks, run.watch, "worker")


def run_floor(rig: Rig, server: Server, load: Load) -> dict[str, float | int | None]:
    """rawclient's own percentiles (ms), its rate and the share of a core it used: what this rig allows."""
    folder = rig.new_folder()
    words = (rig.rawclient, server.port, load.streams, load.requests, load.tokens, "stream")
    watch, text = watched(pinned(CLIENT_CORE, *words), cwd=folder)
    said: dict[str, float | int | None] = json.loads(text)
    track = watch.tracks()["root"][0]
    said["core"] = track.cpu_s[-1] / float(said["seconds"] or 1)
    return said


def run_locust(rig: Rig, server: Server, load: Load) -> Seen:
    """Locust's FastHttpUser, one process."""
    folder = rig.new_folder()
    os.environ.update(PEER_REQUESTS=str(load.requests), PEER_TOKENS=str(load.tokens), PEER_RESULT=f"{folder}/seen.json")
    file = Path(__file__).with_name("locust_peer.py")
    command = [sys.executable, "-m", "locust", "-f", file, "--headless", "--host", server.url, "--loglevel", "ERROR"]
    command += ["--users", load.streams, "--spawn-rate", load.streams, "--only-summary"]
    watch, _ = watched(pinned(CLIENT_CORE, *command), cwd=folder)
    log = server.log().of("locust-")
    rows = json.loads((folder / "seen.json").read_text())
    true = [log[name] for name, _, _ in rows]
    gaps = [(t.seq, np.diff(stamps) / 1e6) for t, (_, _, stamps) in zip(true, rows, strict=True)]
    ttft = [(stamps[0] - start) / 1e6 for _, start, stamps in rows]
    itl = [(stamps[-1] - stamps[0]) / 1e6 / max(1, len(stamps) - 1) for _, _, stamps in rows]
    return _seen(log, true, ttft, itl, gaps, sum(len(stamps) for _, _, stamps in rows), watch, None)


def run_vllm(rig: Rig, server: Server, load: Load) -> Seen | None:
    """`vllm bench serve`, where `make tools-vllm` has brought it."""
    program = VLLM / "bin" / "vllm"
    if not program.exists():
        return None
    folder = rig.new_folder()
    command = [program, "bench", "serve", "--backend", "openai", "--base-url", server.url, "--model", "ref"]
    command += ["--endpoint", "/v1/completions", "--tokenizer", VLLM / "model", "--dataset-name", "random"]
    command += ["--random-input-len", 16, "--random-output-len", load.tokens, "--num-prompts", load.requests]
    command += ["--max-concurrency", load.streams, "--request-id-prefix", "vllm-", "--ignore-eos", "--disable-tqdm"]
    command += ["--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", "seen.json"]
    watch, _ = watched(pinned(CLIENT_CORE, *command), cwd=folder)
    log = server.log().of("vllm-")
    said = json.loads((folder / "seen.json").read_text())
    true = [log[f"vllm-{number}"] for number in range(load.requests)]
    gaps = [(t.seq, np.array(gaps) * 1e3) for t, gaps in zip(true, said["itls"], strict=True)]
    ttft = [ttft_s * 1e3 for ttft_s in said["ttfts"]]
    itl = [float(np.sum(some)) / max(1, load.tokens - 1) for _, some in gaps]
    return _seen(log, true, ttft, itl, gaps, sum(len(some) + 1 for _, some in gaps), watch, None)


PEERS: dict[str, Callable[[Rig, Server, Load], Seen | None]] = {"Locust": run_locust, "vLLM": run_vllm}


def _seen(
    log: dict[str, Request],
    true: list[Request],
    ttft_ms: list[object],
    itl_ms: list[object],
    gaps: list[tuple[int, Numbers]],
    chunks: int,
    watch: Watch,
    role: str | None,
) -> Seen:
    window = window_ns(log)
    seconds = (window[1] - window[0]) / 1e9
    times = (np.array(values, np.float64) for values in (ttft_ms, itl_ms))
    return Seen(true, *times, gaps, chunks, watch.used_s(window, role) / seconds, seconds)
