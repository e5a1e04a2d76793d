"""Prometheus's own `promtool`, run on generated tests of rules."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from cliffwatch.cli.files import write_text
from cliffwatch.errors import InputError, UnreachableError

DEADLINE_S = 300
_FETCHED = Path(".tools/prometheus/bin/promtool")  # where `make` puts it, beside the project
_LEAST = "2.42"
_VERSION = re.compile(r"promtool, version (\d+\.\d+[.\d]*)")


def find_promtool(given: str) -> str:
    """The promtool that was given, else of the search path, else of `.tools`, by its absolute path: it is run in the
    folder of its test files. Raises UnreachableError, InputError."""
    if given:
        if found := shutil.which(given) or shutil.which(Path(given).absolute()):
            return str(Path(found).absolute())
        raise InputError("is no program", field="--promtool", value=given, allowed="the path of an executable promtool")
    if found := shutil.which("promtool") or shutil.which(Path.cwd() / _FETCHED):
        return str(Path(found).absolute())
    allowed = f"promtool {_LEAST} or newer, which comes with Prometheus, on the search path or as --promtool PATH"
    raise UnreachableError("is not on this machine", field="promtool", allowed=allowed)


class PromtoolTests:
    """Test files and the rules they test, in one folder."""

    def __init__(self, program: str, folder: Path, rule_file: str) -> None:
        self._program = program
        self._folder = folder
        self.rule_file = rule_file

    def keep(self, name: str, text: str) -> Path:
        """Write a file of the folder. Raises InputError where it cannot."""
        path = self._folder / name
        write_text(path, text)
        return path

    def version(self) -> str:
        """Such as `3.5.0`. Raises InputError for a program that is no promtool."""
        done = self._run("--version")
        if found := _VERSION.search(done.stdout + done.stderr):
            return found[1]
        raise InputError(
            "is no promtool", field="--promtool", value=self._program, allowed=f"promtool {_LEAST} or newer"
        )

    def check(self) -> None:
        """Raises InputError where promtool refuses the rules."""
        done = self._run("check", "rules", self.rule_file)
        if done.returncode:
            raise InputError(f"is refused by promtool: {_said(done)}", file=self._folder / self.rule_file)

    def test(self, name: str, text: str, *, keep: bool = True) -> str:
        """What promtool printed of expectations that do not hold; empty where all do."""
        path = self.keep(name, text)
        done = self._run("test", "rules", name)
        if not keep:
            path.unlink()
        if done.returncode == 0:
            return ""
        if "expr: " not in done.stdout + done.stderr:
            raise InputError(f"promtool could not run it: {_said(done)}", file=path)
        return done.stdout + done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._program, *arguments],
                cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=DEADLINE_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            message = f"did not end within {DEADLINE_S} s; it was stopped"
            raise UnreachableError(message, file=self._program) from error
        except OSError as error:
            raise UnreachableError(f"cannot be started: {error.strerror or error}", file=self._program) from error


def _said(done: subprocess.CompletedProcess[str]) -> str:
    words = " ".join((done.stderr or done.stdout).split())
    return words[-500:] or f"exit code {done.returncode}"
