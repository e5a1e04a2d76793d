"""llama.cpp's own HTTP server over a GGUF file, until SIGTERM: `python -m tests.servers.llama_cpp_server FILE PORT`."""

from __future__ import annotations

import signal
import sys
import threading

import xllamacpp

SLOTS = 4
CONTEXT_PER_SLOT = 4096


def main(model: str, port: str) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {"tiny"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.n_ctx = SLOTS * CONTEXT_PER_SLOT
    parameters.n_parallel = SLOTS
    parameters.cpuparams.n_threads = 1
    parameters.endpoint_metrics = True
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = xllamacpp.Server(parameters)
    print("listening on", server.listening_address, flush=True)
    stop.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
