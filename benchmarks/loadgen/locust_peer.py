"""The peer: plain Locust, as a user writes it from its documentation (FastHttpUser, iter_lines)."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any

from locust import FastHttpUser, events, task
from locust.exception import StopUser

REQUESTS = int(os.environ["PEER_REQUESTS"])
BODY = {"model": "ref", "prompt": "hello there", "max_tokens": int(os.environ["PEER_TOKENS"]), "stream": True}
numbers = count()
seen: list[tuple[str, int, list[int]]] = []


class Streamer(FastHttpUser):
    @task
    def ask(self) -> None:
        number = next(numbers)
        if number >= REQUESTS:
            if len(seen) == REQUESTS:
                self.environment.runner.quit()
            raise StopUser
        start_ns = monotonic_ns()
        headers = {"X-Request-Id": f"locust-{number}"}
        lines = self.client.iter_lines("/v1/completions", method="POST", json=BODY, headers=headers)
        stamps = [monotonic_ns() for line in lines if line.startswith("data: {")]
        seen.append((f"locust-{number}", start_ns, stamps))


@events.quitting.add_listener
def save(**_: Any) -> None:
    Path(os.environ["PEER_RESULT"]).write_text(json.dumps(seen))
