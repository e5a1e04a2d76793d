"""Child processes are ended whatever happens to their parent; ports that are taken are avoided."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cliffwatch.cli.processes import Children, end, free_port, wait_for
from cliffwatch.errors import UnreachableError

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"


def _alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_free_port_keeps_a_free_one_and_avoids_a_taken_one() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        other = free_port(taken)
        assert other != taken
    assert free_port(other) == other


def test_end_kills_a_process_that_ignores_sigterm() -> None:
    stubborn = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nimport time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    end(process, grace_s=0.2)
    assert process.returncode == -signal.SIGKILL


def test_children_are_gone_after_the_context_and_their_output_is_in_the_log(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        process = children.start("version", ["--version"])
        assert wait_for(lambda: process.poll() is not None, timeout_s=20)
    assert "cliffwatch 0." in children.log("version").read_text()
    assert not _alive(process.pid)


def test_a_child_that_fails_to_start_is_reported_with_its_own_words(tmp_path: Path) -> None:
    with (
        Children(tmp_path) as children,
        pytest.raises(UnreachableError, match="engine did not come up") as caught,
    ):
        children.start("engine", ["no-such-command"])
        children.wait_until_up("engine", "http://127.0.0.1:1/health", timeout_s=20)
    assert caught.value.exit_code == 4


def test_a_child_dies_with_its_killed_parent(tmp_path: Path) -> None:
    parent = f"""
import subprocess, sys
from cliffwatch.cli.processes import die_with_parent
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], preexec_fn=die_with_parent, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
import time; time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    child_pid = int(process.stdout.readline())
    assert _alive(child_pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert wait_for(lambda: not _alive(child_pid), timeout_s=5)


def test_wait_for_says_when_time_ran_out() -> None:
    start_s = time.monotonic()
    assert not wait_for(lambda: False, timeout_s=0.1)
    assert time.monotonic() - start_s < 2
