"""Run the `cliffwatch` command inside the test, as `main` runs it: same errors, same exit codes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from cliffwatch.cli.main import main


@dataclass(frozen=True)
class Ended:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


class Command:
    """`Command(...)("report", "DIR")` runs `cliffwatch report DIR`."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.monkeypatch = monkeypatch

    def __call__(self, *arguments: object) -> Ended:
        self.monkeypatch.setattr(sys, "argv", ["cliffwatch", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        printed = self.capsys.readouterr()
        return Ended(int(caught.value.code or 0), printed.out, printed.err)
