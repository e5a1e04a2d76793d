"""Whole runs over a keyed link: who has the key joins, nobody else does, and the key is nowhere to be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.link_key import FILE_VARIABLE, INSECURE_VARIABLE, KEY_VARIABLE, new_key
from loadgen.processes import LOCUSTFILE
from tests.loadgen.test_run import balanced, refused, run, start, workers_of, write_workload
from tests.servers.engines import standin
from tests.servers.processes import end, free_port

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standin(tmp_path_factory.mktemp("engine"), "--speed", "20") as server:
        yield server.url


def plain_locust(*options: str, **variables: str) -> tuple[int, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CLIFFWATCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", *options], env=clean | variables,
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_who_has_the_key_joins_and_nobody_else(engine, tmp_path):
    key, wrong, port = new_key().text, tmp_path / "wrong", str(free_port())
    wrong.touch(0o600)
    wrong.write_text(new_key().text)
    address, out = f"127.0.0.1:{port}", tmp_path / "run"
    master = start(
        write_workload(tmp_path), "--target", engine, "--out", out, "--workers", 0, "--expect", 1, "--bind", address,
        **{KEY_VARIABLE: key},
    )  # fmt: skip
    try:
        for said, variables in (("asks for a key", {}), ("refuses this key", {FILE_VARIABLE: str(wrong)})):
            code, err = plain_locust("--worker", "--master-port", port, **variables)
            assert (code, said in err) == (2, True), err
        code, _, err = run("--master", address, "--link-key-file", wrong)
        assert (code, "refuses this key" in err) == (2, True), err
        code, _, err = run("--master", address)
        assert (code, "asks for a key" in err) == (2, True), err
        lent = start("--master", address, **{KEY_VARIABLE: key})
        out_text, err_text = master.communicate(timeout=60)
        assert lent.wait(60) == 0
    finally:
        end(master)
    assert master.returncode == 0, err_text
    assert balanced(out) == {"ok": 80}
    assert key not in out_text + err_text
    assert not any(key.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_local_workers_have_a_key_of_the_run_which_no_command_line_shows(engine, tmp_path):
    process = start(
        write_workload(tmp_path, requests=400, rate=40), "--target", engine, "--out", tmp_path / "run", "--workers", 1
    )
    try:
        while not (found := workers_of(process)):
            assert process.poll() is None
        place = Path(f"/proc/{found[0]}")
        variables = dict(line.split(b"=", 1) for line in (place / "environ").read_bytes().split(b"\0") if b"=" in line)
        command = (place / "cmdline").read_bytes()
        key = variables[KEY_VARIABLE.encode()]
        assert len(key) >= 32
        assert key not in command
        port = command.split(b"--master-port\0")[1].split(b"\0")[0].decode()
        code, err = plain_locust("--worker", "--master-port", port)
        assert (code, "asks for a key" in err) == (2, True), err
    finally:
        end(process)


def test_a_master_without_a_key_stays_on_this_machine(tmp_path):
    workload, nobody = write_workload(tmp_path), "http://127.0.0.1:9"
    anywhere = ["--bind", "0.0.0.0", "--expect", "1"]  # noqa: S104
    refused(2, "--bind: would let anybody join", workload, "--target", nobody, "--out", tmp_path / "run", *anywhere)
    code, _, err = run(
        workload, "--target", nobody, "--out", tmp_path / "run", *anywhere, "--insecure-link", "--workers", 0
    )
    assert (code, "WITHOUT A KEY" in err) == (4, True)  # nobody is there to be asked
    short = {KEY_VARIABLE: "letmein"}
    refused(2, f"{KEY_VARIABLE}: is no key of a link", workload, "--target", nobody, "--out", tmp_path / "run", **short)
    master = ["--master", "--master-bind-port", str(free_port()), "--master-bind-host"]
    code, err = plain_locust(*master, "0.0.0.0")  # noqa: S104
    assert (code, "would let anybody join" in err) == (2, True), err
    code, err = plain_locust(*master, "no-such-host.invalid", **{INSECURE_VARIABLE: "true"})
    assert (code, "WITHOUT A KEY" in err, "bind failure" in err) == (2, True, True), err
