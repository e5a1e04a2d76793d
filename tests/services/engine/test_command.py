"""`cliffwatch engine` from the outside: options, ports, keys, ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.servers import engines
from tests.servers.processes import get_text
from tests.services.engine.conftest import call, connect, raw_request

COMMAND = [str(Path(sys.executable).with_name("cliffwatch")), "engine"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--profile", "h900"), "--profile: no such engine profile; got 'h900'; allowed: h200-llama3-8b"),
        (("--profile", "/nowhere/mine.yaml"), "/nowhere/mine.yaml: cannot be read"),
        (("--hardware", "L4"), "--model: is needed with --hardware; allowed: deepseek-v2, llama-3-70b"),
        (("--hardware", "L9", "--model", "yi-34b"), "hardware: nothing is known of it; got 'L9'; allowed: A10"),
        (("--hardware", "L4", "--model", "yi-34b"), "yi-34b in bf16 (69 GB) does not fit 1 x L4; got 1; allowed: 4"),
        (("--hardware", "A10", "--model", "phi-3-mini", "--weights", "fp8"), "A10 has no matrix units for it"),
        (("--weights", "int4"), "--weights: changes an estimate"),
        (("--speed", "0"), "--speed: is out of range; got 0.0"),
        (("--speed", "nan"), "--speed: is out of range; got nan"),
        (("--max-model-len", "long"), "--max-model-len: cannot be used; got 'long'; allowed: a whole number of tokens"),
        (("--max-model-len", "1000k"), "--max-model-len: is out of range; got 1024000"),
        (("--host", "no.such.host.invalid"), "--host: cannot be resolved"),
        (("--port", "99999"), "--port"),
        (("--face", "ollama"), "--face: is no face of the engine; got 'ollama'; allowed: vllm, trtllm, triton, sglang"),
        (("--engine-version", "0.40"), "--engine-version: is no version of vLLM that is known; got '0.40'"),
        (
            ("--face", "vllm", "--metrics-port", "0"),
            "--metrics-port: vLLM has its metrics on the port of its API; got 0; allowed: with --face triton",
        ),
        (("--face", "sglang", "--engine-version", "0.33"), "is no version of SGLang that is known"),
        (("--engine-version", "new"), "allowed: from 0.6, before 0.34"),
    ],
)
def test_wrong_options_are_named(command: Command, options: tuple[str, ...], words: str) -> None:
    ended = command("engine", *options)
    assert ended.code == 2
    assert words in ended.err
    assert "Traceback" not in ended.err


def test_a_taken_port_is_said_and_ends_with_4(command: Command) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        ended = command("engine", "--port", port)
    assert ended.code == 4
    assert f"--port: the port is already taken; got {port}; allowed: a free port, or 0 for any" in ended.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_even_with_open_streams(number: signal.Signals) -> None:
    process = subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()  # it says where it listens
    assert line.startswith("engine: http://127.0.0.1:")
    address = line.split()[1]
    port = int(address.rsplit(":", 1)[1])
    assert get_text(f"{address}/health") == ""
    with closing(socket.create_connection(("127.0.0.1", port))) as stream:
        body = {"prompt": "a", "max_tokens": 4000, "stream": True}
        stream.sendall(raw_request("/v1/completions", body))
        assert stream.recv(1000)
        start_s = time.monotonic()
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - start_s < 2.0
    assert process.communicate()[1] == ""


def test_an_api_key_guards_v1_alone(tmp_path: Path) -> None:
    with engines.standin(tmp_path, "--api-key", "sesame", "--speed", "100") as server:
        body = {"prompt": "a", "max_tokens": 1}
        for header in ("", "authorization: Bearer wrong\r\n", "authorization: sesame\r\n"):
            assert call(server, "/v1/completions", body, headers=header) == (401, {"error": "Unauthorized"})
        assert call(server, "/v1/completions", body, headers="authorization: Bearer sesame\r\n")[0] == 200
        assert call(server, "/health", b"", method="GET")[0] == 200


def test_speed_shortens_every_wait(tmp_path: Path) -> None:
    """8,000 prompt tokens and 40 steps: about 0.42 s at the measured speed, a fifth of it at five times that."""
    took_s = {}
    for speed in (1, 5):
        with engines.standin(tmp_path, "--speed", str(speed)) as server, closing(connect(server)) as stream:
            prompt = " ".join(f"w{i}" for i in range(8000))
            data = raw_request("/v1/completions", {"prompt": prompt, "max_tokens": 41})
            start_s = time.monotonic()
            stream.sendall(data)
            assert stream.recv(65536).startswith(b"HTTP/1.1 200")
            took_s[speed] = time.monotonic() - start_s
    assert took_s[1] == pytest.approx(0.42, rel=0.15)
    assert took_s[5] == pytest.approx(0.42 / 5, rel=0.4)  # parsing the prompt takes a few milliseconds of its own
