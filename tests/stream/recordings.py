"""Recorded responses, and a second, slow reading of them that shares no code with the parser."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "streams"
ONE_EVENT_END = b"\n\n"


@dataclass(frozen=True)
class Recording:
    """One response. `reads` are (stamp in ns, bytes)."""

    name: str
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    body: bytes
    reads: tuple[tuple[int, int], ...]
    cut: bool
    counted: bool = False

    @property
    def dialect(self) -> str:
        return "chat" if "chat" in self.path else "completions"

    @property
    def batch(self) -> int:
        """Answers expected: prompts x samples."""
        prompt = self.request.get("prompt")
        prompts = len(prompt) if isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt) else 1
        return prompts * int(self.request.get("n", 1))

    @property
    def max_tokens(self) -> int:
        return int(self.request["max_tokens"])

    def stamped_reads(self) -> list[tuple[int, bytes]]:
        """The body as it was read."""
        parts = []
        position = 0
        for stamp_ns, size in self.reads:
            parts.append((stamp_ns, self.body[position : position + size]))
            position += size
        assert position == len(self.body)
        return parts


def own_recordings() -> list[Recording]:
    """The project's own fixtures (scripts/record_streams.py)."""
    return [_own(path) for path in sorted(FIXTURES.glob("*/*.json"))]


def _own(path: Path) -> Recording:
    meta = json.loads(path.read_text())
    request = meta["request"] if isinstance(meta["request"], dict) else {}
    return Recording(
        name=f"{path.parent.name}/{path.stem}",
        path=meta["path"],
        request=request,
        status=meta["status"],
        content_type=meta["content_type"],
        body=path.with_suffix(".body").read_bytes(),
        reads=tuple((read["t_us"] * 1000, read["bytes"]) for read in meta["reads"]),
        cut=meta["cut"],
        counted=meta["counted"],
    )


def shared_recordings(folder: Path) -> list[Recording]:
    """Recordings beside the repository: `NAME.meta.json` with `NAME.sse` or `NAME.json`."""
    found = []
    for path in sorted(folder.glob("*.meta.json")):
        meta = json.loads(path.read_text())
        name = path.name.removesuffix(".meta.json")
        body_file = next(
            folder / f"{name}{suffix}" for suffix in (".sse", ".json") if (folder / f"{name}{suffix}").is_file()
        )
        body = meta["request"]["body"]
        found.append(
            Recording(
                name=name,
                path=meta["request"]["path"],
                request=body if isinstance(body, dict) else {},
                status=meta["status"],
                content_type=next((value for key, value in meta["headers"] if key.lower() == "content-type"), ""),
                body=body_file.read_bytes(),
                reads=tuple((round(read["t"] * 1e9), read["bytes"]) for read in meta["reads"]),
                cut="abort" in name,
            )
        )
    return found


@dataclass
class Facts:
    """What a recorded stream says, by the second reading. Stamps are a token-bearing event's, per index."""

    stamps: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    finish: dict[int, str] = field(default_factory=dict)
    whole_usage: dict[str, Any] | None = None
    index_usage: dict[int, dict[str, Any]] = field(default_factory=dict)
    terminated: bool = False

    def usage(self, key: str, batch: int) -> int | None:
        if self.whole_usage is not None:
            return int(self.whole_usage[key])
        if len(self.index_usage) == batch:
            return sum(int(usage[key]) for usage in self.index_usage.values())
        return None


def read_slowly(body: bytes, stamp_of_byte: Any) -> Facts:
    """Facts of an LF-framed event stream. `stamp_of_byte(i)` is the stamp of the read that brought byte `i`."""
    facts = Facts()
    position = 0
    for block in body.split(ONE_EVENT_END):
        line_end = position + len(block)  # the LF that completes the data line
        position = line_end + len(ONE_EVENT_END)
        if not block.startswith(b"data: ") or line_end >= len(body):
            continue
        text = block[6:].decode()
        if text == "[DONE]":
            facts.terminated = True
            continue
        value = json.loads(text)
        if value is not None:
            _note(facts, value, stamp_of_byte(line_end))
    return facts


def _note(facts: Facts, value: dict[str, Any], stamp: int) -> None:
    for choice in value["choices"]:
        delta = choice.get("delta") or {}
        if choice.get("text") or delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content"):
            facts.stamps[choice["index"]].append(stamp)
        if choice.get("finish_reason"):
            facts.finish[choice["index"]] = choice["finish_reason"]
    if value.get("usage"):
        if len(value["choices"]) == 1:
            facts.index_usage[value["choices"][0]["index"]] = value["usage"]
        else:
            facts.whole_usage = value["usage"]
