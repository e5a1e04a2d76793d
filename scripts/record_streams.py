#!/usr/bin/env python3
"""Record how a running OpenAI-compatible server answers, as fixtures for the stream parser's tests.

    scripts/record_streams.py --target http://127.0.0.1:8000 --engine vllm-0.32.0 [--model tiny] [--out tests/fixtures]

Writes `streams/ENGINE/CASE.body` (the bytes of the HTTP body), `streams/ENGINE/CASE.json` (request, status, size and
time of each read) and `metrics/ENGINE.{before,after}.prom`: the engine's counters around the cases marked `counted`, so
that a test can hold our totals against the engine's own. Run it against a server that does nothing else.
Standard library only; it starts nothing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
PROMPT = "def parse(line):\n    return"
BATCH = [PROMPT, "class Token:", "import", "for name in names: print(name)"]
USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Case:
    """One request. `counted`: its usage is known and the engine's counters should move by just that much."""

    name: str
    path: str
    fields: dict[str, object]
    counted: bool = False
    raw_body: str | None = None
    stop_after_reads: int | None = None

    def body(self, model: str) -> str:
        return self.raw_body if self.raw_body is not None else json.dumps({"model": model, **self.fields})


def completion(name: str, *, counted: bool = True, prompt: object = PROMPT, **fields: object) -> Case:
    return Case(name, COMPLETIONS, {"prompt": prompt, "temperature": 0, **fields}, counted)


def chat(name: str, *, counted: bool = True, text: str = "parse this line", **fields: object) -> Case:
    return Case(name, CHAT, {"messages": [{"role": "user", "content": text}], "temperature": 0, **fields}, counted)


CASES = (
    completion("completion_usage", max_tokens=12, **USAGE),
    completion("completion_max1", max_tokens=1, **USAGE),
    completion("completion_batch4", prompt=BATCH, max_tokens=6, ignore_eos=True, **USAGE),
    completion("completion_whole", max_tokens=8),
    chat("chat_usage", max_tokens=10, **USAGE),
    chat("chat_long", max_tokens=120, temperature=1, seed=7, ignore_eos=True, **USAGE),
    chat("chat_whole", max_tokens=8),
    completion("completion_no_usage", counted=False, max_tokens=8, stream=True),
    completion("completion_logprobs", counted=False, max_tokens=3, logprobs=2, **USAGE),
    completion("completion_two_samples", counted=False, n=2, max_tokens=4, temperature=0.7, seed=1, **USAGE),
    completion("completion_batch4_whole", counted=False, prompt=BATCH, max_tokens=6, ignore_eos=True),
    completion(
        "completion_usage_continuous",
        counted=False,
        max_tokens=6,
        stream=True,
        stream_options={"include_usage": True, "continuous_usage_stats": True},
    ),
    completion(
        "completion_batch4_usage_continuous",
        counted=False,
        prompt=BATCH,
        max_tokens=5,
        ignore_eos=True,
        stream=True,
        stream_options={"include_usage": True, "continuous_usage_stats": True},
    ),
    Case("chat_no_usage", CHAT, {"messages": [{"role": "user", "content": "go"}], "max_tokens": 6, "stream": True}),
    Case(
        "completion_cut",
        COMPLETIONS,
        {"prompt": PROMPT, "max_tokens": 400, "temperature": 1, "seed": 5, "ignore_eos": True, **USAGE},
        stop_after_reads=6,
    ),
    Case("error_bad_json", COMPLETIONS, {}, raw_body='{"model": "tiny", '),
    completion("error_bad_value", counted=False, max_tokens=-5),
    completion("error_prompt_too_long", counted=False, prompt="word " * 9000, max_tokens=4, **USAGE),
    Case("error_unknown_model", COMPLETIONS, {"model": "nope", "prompt": PROMPT, "max_tokens": 4, **USAGE}),
    Case("error_unknown_path", "/v1/nothing", {"prompt": PROMPT}),
)


class Recorder:
    """Asks one server and writes what it answers under `out`."""

    def __init__(self, target: str, engine: str, model: str, out: Path) -> None:
        parts = urlsplit(target)
        if parts.scheme != "http" or parts.hostname is None:
            raise SystemExit(f"--target must be http://host:port, got {target!r}")
        self._address = (parts.hostname, parts.port or 80)
        self._engine = engine
        self._model = model
        self._streams = out / "streams" / engine
        self._metrics = out / "metrics"
        self._streams.mkdir(parents=True, exist_ok=True)
        self._metrics.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        self.metrics("before")
        for case in CASES:
            if case.counted:
                self.record(case)
        time.sleep(2)  # engines publish their counters a moment after the last token
        self.metrics("after")
        for case in CASES:
            if not case.counted:
                self.record(case)

    def metrics(self, moment: str) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read()
        connection.close()
        (self._metrics / f"{self._engine}.{moment}.prom").write_bytes(text)

    def record(self, case: Case) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=120)
        sent = time.monotonic()
        connection.request("POST", case.path, case.body(self._model), {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = b""
        reads = []
        for stamp, data in read_chunks(response, case.stop_after_reads):
            body += data
            reads.append({"t_us": round((stamp - sent) * 1e6), "bytes": len(data)})
        connection.close()
        meta = {
            "engine": self._engine,
            "path": case.path,
            "request": shortened(case.fields) if case.raw_body is None else case.raw_body,
            "counted": case.counted,
            "cut": case.stop_after_reads is not None,
            "status": response.status,
            "content_type": response.headers.get("Content-Type", ""),
            "reads": reads,
        }
        (self._streams / f"{case.name}.body").write_bytes(body)
        (self._streams / f"{case.name}.json").write_text(json.dumps(meta) + "\n", encoding="utf-8")
        print(f"{case.name}: HTTP {response.status}, {len(body)} bytes in {len(reads)} reads")


def read_chunks(response: http.client.HTTPResponse, limit: int | None) -> Iterator[tuple[float, bytes]]:
    """Each read of the body with its time, as the HTTP layer hands them out; at most `limit` of them."""
    count = 0
    while (limit is None or count < limit) and (data := response.read1(1 << 16)):
        yield time.monotonic(), data
        count += 1


def shortened(fields: dict[str, object]) -> dict[str, object]:
    """The request without its bulk: a prompt of thousands of words says nothing that its length does not."""
    prompt = fields.get("prompt")
    if isinstance(prompt, str) and len(prompt) > 500:
        return {**fields, "prompt": f"{prompt[:20]}... ({len(prompt)} characters)"}
    return fields


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="base URL, such as http://127.0.0.1:8000")
    parser.add_argument("--engine", required=True, help="name and version; the folder the fixtures go to")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "tests" / "fixtures")
    options = parser.parse_args()
    try:
        Recorder(options.target, options.engine, options.model, options.out).run()
    except OSError as error:
        sys.exit(f"record_streams: {options.target}: {error}")


if __name__ == "__main__":
    main()
