"""The inference servers that tests run against: llama.cpp, vLLM on CPU, and this project's stand-in."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.servers.processes import Server, free_port, running
from tests.servers.tiny_model import Shape, write_gguf

ROOT = Path(__file__).resolve().parents[2]
VLLM_DIR = ROOT / ".tools" / "vllm"
VLLM_MAX_MODEL_LEN = 4096
# Nothing is asked of a model hub, nothing is reported to anybody, and the cache is small.
VLLM_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


@contextlib.contextmanager
def llama_cpp(folder: Path) -> Iterator[Server]:
    """llama.cpp with a tiny model: 4 slots of 4096 tokens, metrics on."""
    model = folder / "tiny.gguf"
    folder.mkdir(parents=True, exist_ok=True)
    write_gguf(model, Shape(hidden=128, layers=2))
    port = free_port()
    command: list[str | Path] = [sys.executable, "-m", "tests.servers.llama_cpp_server", model, str(port)]
    url = f"http://127.0.0.1:{port}"
    with running(
        command,
        url=url,
        health="/health",
        log=folder / "llama_cpp.log",
        ready_within_s=60,
        environment={"PYTHONPATH": str(ROOT)},
    ) as server:
        yield server


@contextlib.contextmanager
def vllm(folder: Path, venv: Path = VLLM_DIR) -> Iterator[Server]:
    """vLLM on CPU with a tiny model: 8 sequences at once, 4096 tokens each at most."""
    port = free_port()
    options: dict[str, object] = {
        "--served-model-name": "tiny",
        "--host": "127.0.0.1",
        "--port": port,
        "--max-model-len": VLLM_MAX_MODEL_LEN,
        "--dtype": "bfloat16",
        "--max-num-seqs": 8,
        "--block-size": 32,
    }
    command: list[str | Path] = [venv / "bin/vllm", "serve", venv / "model", "--enforce-eager"]
    command += [str(part) for option in options.items() for part in option]
    with running(
        command,
        url=f"http://127.0.0.1:{port}",
        health="/health",
        log=folder / "vllm.log",
        ready_within_s=240,
        environment=VLLM_ENVIRONMENT,
    ) as server:
        yield server


@contextlib.contextmanager
def standin(folder: Path, *options: str, health: str = "/health") -> Iterator[Server]:
    """The stand-in engine with `cliffwatch engine`'s own options; not every face has its health at the same path."""
    port = free_port()
    command: list[str | Path] = [Path(sys.executable).with_name("cliffwatch"), "engine", "--port", str(port), *options]
    url = f"http://127.0.0.1:{port}"
    with running(command, url=url, health=health, log=folder / "engine.log", ready_within_s=60) as server:
        yield server
