"""Chunks a second that the stand-in engine serves over HTTP on one core (aim: 20,000).

    .venv/bin/python benchmarks/engine_throughput.py

The server is held on the first core by its affinity, clients on the last. Clients keep a number of streams open, each a
request of 256 tokens, and count events as they read. `--speed 1000` makes steps so short that the server's own work is
the limit: sends, frames, scheduling, counting. `per_cpu_s` divides by the processor time the server used, which a busy
machine disturbs less than the clock. Writes benchmarks/results/engine_throughput.json.
"""

from __future__ import annotations

import json
import os
import platform
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path

TOKENS = 256
SECONDS = 4.0
STREAMS = (1, 8, 64, 256)
AIM = 20_000
RESULTS = Path(__file__).resolve().parent / "results" / "engine_throughput.json"
END = b"0\r\n\r\n"


def request() -> bytes:
    """One streamed completion."""
    body = json.dumps({"prompt": "a short prompt", "max_tokens": TOKENS, "stream": True}).encode()
    return b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drive(port: int, streams: int, seconds: float) -> tuple[int, int, float]:
    """Keep `streams` requests open for a while; returns events, reads and the seconds they took."""
    data = request()
    poll = selectors.DefaultSelector()
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    for opened in connections:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(opened, selectors.EVENT_READ, opened)
        opened.sendall(data)
    events = reads = 0
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        for key, _ in poll.select(1.0):
            connection: socket.socket = key.data
            part = connection.recv(1 << 18)
            assert part, "the server closed a stream"
            reads += 1
            events += part.count(b"data: {")
            if part.endswith(END):
                connection.sendall(data)
    took_s = time.perf_counter() - start_s
    for opened in connections:
        opened.close()
    return events, reads, took_s


def main() -> None:
    """Run every number of streams, print and save."""
    cores = sorted(os.sched_getaffinity(0))
    command = [str(Path(sys.executable).with_name("cliffwatch")), "engine", "--port", "0", "--speed", "1000"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[1].rsplit(":", 1)[1])
        os.sched_setaffinity(server.pid, {cores[0]})
        os.sched_setaffinity(0, {cores[-1]})
        drive(port, 8, 1.0)  # warm up
        rows = []
        for streams in STREAMS:
            before_s = cpu_seconds(server.pid)
            events, reads, took_s = drive(port, streams, SECONDS)
            used_s = cpu_seconds(server.pid) - before_s
            row = {
                "streams": streams,
                "chunks": events,
                "chunks_per_s": round(events / took_s),
                "chunks_per_cpu_s": round(events / used_s),
                "chunks_per_read": round(events / reads, 2),
            }
            rows.append(row)
            print(
                f"{streams:4d} streams: {row['chunks_per_s']:7,d} chunks/s, {row['chunks_per_cpu_s']:7,d} a CPU second,"
                f" {row['chunks_per_read']} a read (n {events:,d})"
            )
    finally:
        server.terminate()
        server.wait()
    result = {
        "what": "chunks of SSE served over HTTP, server on one core",
        "aim_chunks_per_s": AIM,
        "met": min(row["chunks_per_s"] for row in rows) >= AIM,
        "machine": f"{platform.machine()}, {len(cores)} cores, Python {platform.python_version()}",
        "tokens_a_request": TOKENS,
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"aim {AIM:,d}: {'met' if result['met'] else 'missed'}; saved {RESULTS.name}")
    sys.exit(not result["met"])


if __name__ == "__main__":
    main()
