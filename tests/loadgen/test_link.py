"""Master and worker sockets with a wire-tap between them: what is seen, what is let in, what is thrown away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent
import gevent.socket
import pytest
from gevent.server import StreamServer

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")  # this process's sockets and threads are other tests' too
    from locust.rpc import Message, zmqrpc

    from loadgen import link

from cliffwatch.errors import InputError, UnreachableError
from loadgen.link import Client, Server, check_bind, is_loopback
from loadgen.link_key import LinkKey, new_key

KEY = new_key()
PLAINTEXT = b"a workload nobody else should read"


class Tap:
    """A proxy before a master's port that keeps every byte and may change those to the master."""

    def __init__(self, port: int) -> None:
        self.seen: list[tuple[str, bytes]] = []
        self.connections = 0
        self.change: Callable[[bytes], bytes] = bytes
        self._port = port
        self._server = StreamServer(("127.0.0.1", 0), self._pass)
        self._server.start()
        self.port: int = self._server.server_port

    def to_master(self) -> bytes:
        return b"".join(data for way, data in self.seen if way == "up")

    def all(self) -> bytes:
        return b"".join(data for _, data in self.seen)

    def close(self) -> None:
        self._server.stop(timeout=0)

    def _pass(self, near: gevent.socket.socket, _address: object) -> None:
        self.connections += 1
        far = gevent.socket.create_connection(("127.0.0.1", self._port))
        ways = [gevent.spawn(self._copy, near, far, "up"), gevent.spawn(self._copy, far, near, "down")]
        gevent.joinall(ways, count=1)
        gevent.killall(ways)
        near.close()
        far.close()

    def _copy(self, source: gevent.socket.socket, sink: gevent.socket.socket, way: str) -> None:
        try:
            while data := source.recv(65536):
                self.seen.append((way, data))
                sink.sendall(self.change(data) if way == "up" else data)
        except OSError:
            return


@contextmanager
def tapped(key: LinkKey | None) -> Iterator[tuple[Server, Tap]]:
    server = Server("127.0.0.1", 0, key)
    tap = Tap(server.port)
    try:
        yield server, tap
    finally:
        tap.close()
        server.close(linger=0)


@contextmanager
def joined(port: int, key: LinkKey | None) -> Iterator[Client]:
    client = Client("127.0.0.1", port, "worker-1", key)
    try:
        client.await_master(5.0)
        yield client
    finally:
        client.close(linger=0)


def say(client: zmqrpc.Client, text: str) -> None:
    client.send(Message("assign", {"text": text}, "worker-1"))


def heard(server: Server, within_s: float = 5.0) -> object:
    """The next message's text; None when none comes."""
    with gevent.Timeout(within_s, exception=False):
        identity, message = server.recv_from_client()
        assert identity == "worker-1"
        return message.data["text"]
    return None


@pytest.mark.parametrize("key", [KEY, None])
def test_both_ways_arrive_and_only_without_a_key_can_the_wire_be_read(key):
    with tapped(key) as (server, tap), joined(tap.port, key) as client:
        say(client, PLAINTEXT.decode())
        assert heard(server) == PLAINTEXT.decode()
        server.send_to_client(Message("go", {"text": PLAINTEXT.decode()}, "worker-1"))
        assert client.recv().data["text"] == PLAINTEXT.decode()
    readable = tap.all().count(PLAINTEXT)
    assert readable == (2 if key is None else 0)
    assert KEY.text.encode() not in tap.all()
    assert (b"worker-1" in tap.all()) is (key is None)


@pytest.mark.parametrize(
    ("masters", "workers", "message"),
    [
        (KEY, new_key(), "refuses this key"),
        (KEY, None, "asks for a key"),
        (None, KEY, "the master has no key|or has none"),
    ],
)
def test_who_has_another_key_or_none_is_told_so_and_not_heard(monkeypatch, masters, workers, message):
    monkeypatch.setattr(link, "_UNSURE_S", 0.3)
    server = Server("127.0.0.1", 0, masters)
    client = Client("127.0.0.1", server.port, "worker-1", workers)
    say(client, "let me in")
    with pytest.raises(InputError, match=message) as caught:
        client.await_master(5.0)
    assert KEY.text not in str(caught.value)
    assert heard(server, 0.2) is None
    client.close(linger=0)
    server.close(linger=0)


def test_a_plain_locust_worker_is_not_heard_by_a_master_with_a_key():
    server = Server("127.0.0.1", 0, KEY)
    plain = zmqrpc.Client("127.0.0.1", server.port, "worker-1")
    say(plain, "let me in")
    assert heard(server, 0.5) is None
    plain.close(linger=0)
    server.close(linger=0)


def test_who_knows_the_masters_public_key_but_not_the_secret_is_refused(caplog):
    class Thief(LinkKey):
        def pair(self, role: str) -> tuple[bytes, bytes]:
            return KEY.pair(role) if role == "master" else super().pair(role)

    server = Server("127.0.0.1", 0, KEY)
    client = Client("127.0.0.1", server.port, "worker-1", Thief(new_key().text))
    say(client, "let me in")
    with pytest.raises(InputError, match="refuses this key"):
        client.await_master(5.0)
    assert heard(server, 0.2) is None
    assert "its key is not ours" in caplog.text
    client.close(linger=0)
    server.close(linger=0)


def test_a_message_with_one_bit_changed_is_thrown_away_and_the_connection_with_it():
    with tapped(KEY) as (server, tap), joined(tap.port, KEY) as client:
        say(client, "first")
        assert heard(server) == "first"
        tap.change = lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
        say(client, "changed on the way")
        assert heard(server, 0.3) is None
        tap.change = bytes
        gevent.sleep(0.5)
        say(client, "after it connected anew")
        assert heard(server) == "after it connected anew"
        assert tap.connections > 1


def test_a_recorded_conversation_cannot_be_played_again():
    with tapped(KEY) as (server, tap):
        with joined(tap.port, KEY) as client:
            say(client, "once")
            assert heard(server) == "once"
        with gevent.socket.create_connection(("127.0.0.1", server.port)) as replay:
            for way, data in tap.seen:
                if way == "up":
                    replay.sendall(data)
                    gevent.sleep(0.02)
            assert heard(server, 0.3) is None


def test_nobody_there_is_said(monkeypatch):
    with gevent.socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = Client("127.0.0.1", free.getsockname()[1], "worker-1", KEY)
        with pytest.raises(UnreachableError, match="no master was there"):
            client.await_master(0.3)
        client.close(linger=0)


def test_a_port_that_is_taken_is_locusts_own_error():
    server = Server("127.0.0.1", 0, KEY)
    with pytest.raises(link.RPCError, match=r"^Socket bind failure: Address already in use$"):
        Server("127.0.0.1", server.port, KEY)
    server.close(linger=0)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("127.8.8.8", True), ("::1", True), ("0.0.0.0", False), ("::", False),  # noqa: S104
     ("*", False), ("10.1.2.3", False), ("no-such-host.invalid", False)],
)  # fmt: skip
def test_what_only_this_machine_can_reach(host, expected):
    assert is_loopback(host) is expected


def test_listening_beyond_this_machine_needs_a_key_or_the_word(caplog):
    check_bind("127.0.0.1", None, insecure=False, option="--bind")
    check_bind("10.1.2.3", KEY, insecure=False, option="--bind")
    assert not caplog.records
    with pytest.raises(InputError, match="--bind: would let anybody join"):
        check_bind("10.1.2.3", None, insecure=False, option="--bind")
    check_bind("10.1.2.3", None, insecure=True, option="--bind")
    assert "WITHOUT A KEY" in caplog.text
