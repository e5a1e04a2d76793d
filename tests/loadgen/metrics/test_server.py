"""`/metrics` over HTTP: who may ask what, that requests have their turn in between, and the last scrape."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import gevent
import gevent.socket
import pytest

from cliffwatch.errors import InputError
from loadgen.metrics.exposure import Exposure, worker_addresses
from loadgen.metrics.server import MetricsServer, metrics_address

ANYWHERE = ("127.0.0.1", 0)


def exchange(port: int, head: str) -> bytes:
    with gevent.socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while data := sock.recv(65536):
            answer += data
    return answer


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    served = MetricsServer("127.0.0.1", 0, lambda: iter(["a 1\n", "b 2\n"]), option="--metrics")
    yield served
    served.close()


def port_of(server: MetricsServer) -> int:
    return int(server.url.removesuffix("/metrics").rpartition(":")[2])


def test_answers_at_one_path_to_one_method(server: MetricsServer) -> None:
    found = exchange(port_of(server), "GET /metrics HTTP/1.1")
    assert found.startswith(b"HTTP/1.1 200 OK") and b"text/plain; version=0.0.4" in found and b"a 1\nb 2\n" in found
    assert exchange(port_of(server), "GET / HTTP/1.1").startswith(b"HTTP/1.1 404")
    assert exchange(port_of(server), "POST /metrics HTTP/1.1").startswith(b"HTTP/1.1 405")
    assert exchange(port_of(server), "nonsense").startswith(b"HTTP/1.1 400")


def test_others_have_their_turn_while_a_long_text_is_made(server: MetricsServer) -> None:
    """Others that wait for a socket, that is; all of them ours, so that only the event loop decides."""
    here, there = gevent.socket.socketpair()
    received = 0

    def send() -> None:
        while True:
            here.send(b"x")
            gevent.sleep(0.0001)

    def receive() -> None:
        nonlocal received
        while True:
            received += len(there.recv(1))

    seen = []

    def text() -> Iterator[str]:
        for _ in range(100):
            seen.append(received)
            yield "x" * 4096 + " 1\n"

    server.text = text
    others = [gevent.spawn(send), gevent.spawn(receive)]
    exchange(port_of(server), "GET /metrics HTTP/1.1")
    gevent.killall(others)
    here.close()
    there.close()
    assert len(set(seen)) > 25  # of 50 pieces


def test_a_name_that_is_no_text_does_not_end_the_answer(server: MetricsServer) -> None:
    server.text = lambda: iter(['a{model="\ud800"} 1\n', "b 2\n"])
    assert b'a{model="?"} 1\nb 2\n' in exchange(port_of(server), "GET /metrics HTTP/1.1")


def test_a_taken_address_is_refused_and_named(server: MetricsServer) -> None:
    taken = f"127.0.0.1:{port_of(server)}"
    with pytest.raises(InputError, match=rf"--metrics.*{taken}.*free address"):
        MetricsServer("127.0.0.1", port_of(server), lambda: iter(()), option="--metrics")
    with pytest.raises(InputError, match=rf"--worker-metrics.*{taken}"):
        Exposure(None, 0.0, taken, 1, ANYWHERE)
    with pytest.raises(InputError, match=r"--metrics.*cannot be listened on"):
        MetricsServer("192.0.2.1", 0, lambda: iter(()), option="--metrics")


@pytest.mark.parametrize("twice", ["--bind", "--metrics"])
def test_an_address_that_is_asked_for_twice_is_refused_before_anything_begins(twice: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place, metrics = (("127.0.0.1", port), None) if twice == "--bind" else (ANYWHERE, str(port))
    with pytest.raises(InputError, match=rf"--worker-metrics: is {twice}'s already.*{port}"):
        Exposure(metrics, 0.0, str(port), 1, place)
    with pytest.raises(InputError, match=rf"--metrics: is --bind's already.*{port}"):
        Exposure(f"0.0.0.0:{port}", 0.0, "", 2, ("127.0.0.1", port))
    Exposure(str(port), 0.0, "", 1, ANYWHERE).close()  # what was refused is free again


def test_addresses_as_people_write_them() -> None:
    assert metrics_address("9100", "--metrics") == ("127.0.0.1", 9100)
    assert metrics_address("192.0.2.1:9100", "--metrics") == ("192.0.2.1", 9100)
    assert metrics_address("[::1]:9100", "--metrics") == ("::1", 9100)
    for bad in ("somewhere", "70000", ":9100", "h:x", "-1"):
        with pytest.raises(InputError, match="--metrics"):
            metrics_address(bad, "--metrics")


def test_workers_have_one_port_each() -> None:
    with gevent.socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert worker_addresses("", 3) == []
    assert worker_addresses(str(port), 1) == [f"127.0.0.1:{port}"]
    for bad in ("0", "65535"):
        with pytest.raises(InputError, match=r"--worker-metrics.*for 2 workers"):
            worker_addresses(bad, 2)


# the last scrape


def test_without_a_scraper_nobody_is_waited_for(server: MetricsServer) -> None:
    started = time.monotonic()
    server.linger(30)
    assert time.monotonic() - started < 1


def test_lingers_until_the_scraper_came_once_more(server: MetricsServer, capsys) -> None:
    exchange(port_of(server), "GET /metrics HTTP/1.1")
    lingering = gevent.spawn(server.linger, 30)
    gevent.sleep(0.05)
    assert not lingering.ready()
    exchange(port_of(server), "GET /metrics HTTP/1.1")
    lingering.get(timeout=2)
    assert "up to 30 s for a last scrape" in capsys.readouterr().err


def test_lingers_no_longer_than_allowed_or_until_released(server: MetricsServer) -> None:
    exchange(port_of(server), "GET /metrics HTTP/1.1")
    started = time.monotonic()
    server.linger(0.1)
    assert 0.1 <= time.monotonic() - started < 2
    lingering = gevent.spawn(server.linger, 30)
    gevent.sleep(0.05)
    server.release()
    lingering.get(timeout=2)
