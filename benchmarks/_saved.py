"""The end of a benchmark: what it saw is printed, kept in benchmarks/results, and told by the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

RESULTS = Path(__file__).parent / "results"


def show_and_save(name: str, result: Mapping[str, object]) -> None:
    """Print the result as JSON, and keep it as NAME.json."""
    text = json.dumps(result, indent=2)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def conclude(name: str, result: Mapping[str, object], *, passed: bool) -> NoReturn:
    """Show, save and end: exit code 1 where the goal was missed."""
    show_and_save(name, result)
    sys.exit(not passed)
