"""The link between master and workers: Locust's ZeroMQ sockets, encrypted and authenticated by one shared key.

Locust's own port has neither. With a key, both ends speak CURVE (Curve25519, fresh session keys each connection): the
long-term key pairs of master and workers are derived from the shared secret, so who has not got it can neither join,
nor read, nor change or replay a message. Without one, a master listens on this machine only, unless told otherwise.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import time
from typing import Any

import gevent
import locust.runners
import zmq.green as zmq
from locust.exception import RPCError
from locust.rpc import zmqrpc
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from cliffwatch.errors import CliffwatchError, InputError, UnreachableError
from loadgen.link_key import KEY_HELP, LinkKey

INSECURE_HELP = "Let a master without a key listen beyond this machine: whoever reaches its port can join and read."
MAX_MESSAGE_BYTES = 64 << 20

_JOIN_WITHIN_S = 300.0  # as long as Locust's workers look for a master
_LINGER_MS = 2000  # last words to a master that is gone do not keep a worker for ever, as ZeroMQ would
_UNSURE_S = 2.0  # closed without a word: a wrong key, or something before a master that is not up yet
_ZAP_ADDRESS = "inproc://zeromq.zap.01"
_VERDICTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
logger = logging.getLogger("cliffwatch.link")


class Server(zmqrpc.Server):
    """Locust's master socket; with a key, only those who have it are let in."""

    def __init__(self, host: str, port: int, key: LinkKey | None) -> None:
        """Raises RPCError where the address cannot be had."""
        zmqrpc.BaseSocket.__init__(self, zmq.ROUTER, self.ipv4_only(host, port))  # type: ignore[no-untyped-call]
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self._doorkeeper = None if key is None else _Doorkeeper(self.socket, key)
        try:
            if port:
                self.socket.bind(f"tcp://{host}:{port}")
            self.port = port or self.socket.bind_to_random_port(f"tcp://{host}")
        except zmq.ZMQError as error:
            self.close(linger=0)
            raise RPCError(f"Socket bind failure: {zmq.strerror(error.errno or 0)}") from error  # Locust compares this

    def close(self, linger: int | None = None) -> None:
        super().close(linger)  # type: ignore[no-untyped-call]
        if self._doorkeeper is not None:
            self._doorkeeper.close()


class _Doorkeeper:
    """Answers ZeroMQ when it asks (ZAP, RFC 27) whether a client's key is the workers' key."""

    def __init__(self, sock: Any, key: LinkKey) -> None:
        self._allowed = z85.decode(key.pair("worker")[0])
        self._questions = sock.context.socket(zmq.REP)
        self._questions.bind(_ZAP_ADDRESS)
        self._answering = gevent.spawn(self._answer)
        sock.curve_server = True
        sock.curve_secretkey = key.pair("master")[1]
        sock.zap_domain = b"cliffwatch"
        sock.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # nobody is let in while nobody answers

    def close(self) -> None:
        self._answering.kill(block=False)
        self._questions.close(linger=0)

    def _answer(self) -> None:
        while True:
            version, request_id, _, address, _, mechanism, *credentials = self._questions.recv_multipart()
            verdict, reason = b"200", b"OK"
            if mechanism != b"CURVE" or credentials != [self._allowed]:
                verdict, reason = b"400", b"unknown key"
                logger.warning("refused a worker at %s: its key is not ours", address.decode("ascii", "replace"))
            self._questions.send_multipart([version, request_id, verdict, reason, b"", b""])


class Client(zmqrpc.Client):
    """Locust's worker socket; with a key, it speaks only to a master that has the same."""

    def __init__(self, host: str, port: int, identity: str, key: LinkKey | None) -> None:
        zmqrpc.BaseSocket.__init__(self, zmq.DEALER, self.ipv4_only(host, port))  # type: ignore[no-untyped-call]
        self.socket.setsockopt(zmq.IDENTITY, identity.encode())
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        self.socket.setsockopt(zmq.LINGER, _LINGER_MS)
        if key is not None:
            self.socket.curve_serverkey = key.pair("master")[0]
            self.socket.curve_publickey, self.socket.curve_secretkey = key.pair("worker")
        self._keyed = key is not None
        self._address = f"{host}:{port}"
        self._news = self.socket.get_monitor_socket(_VERDICTS)
        self.socket.connect(f"tcp://{self._address}")

    def await_master(self, within_s: float = _JOIN_WITHIN_S) -> None:
        """Until the master has let us in; to be called once.

        Raises:
            InputError: it does not take our key, or our lack of one.
            UnreachableError: nobody has answered.
        """
        nobody = UnreachableError(f"no master was there to join within {within_s:.0f} s", file=self._address)
        try:
            with gevent.Timeout(within_s, nobody):
                self._await_verdict()
        finally:
            self.socket.disable_monitor()
            self._news.close(linger=0)

    def _await_verdict(self) -> None:
        sure_s: float | None = None
        while True:
            news = parse_monitor_message(self._news.recv_multipart())
            if news["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return
            if news["event"] == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                if self._keyed:
                    raise InputError("the master has no key, this worker has one", file=self._address)
                raise InputError("the master asks for a key", file=self._address, allowed=KEY_HELP)
            sure_s = sure_s or time.monotonic() + _UNSURE_S
            if news["event"] == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise InputError("the master refuses this key", file=self._address)
            if time.monotonic() > sure_s and self._keyed:
                raise InputError("the master refuses this key, or has none", file=self._address)
            if time.monotonic() > sure_s:
                raise InputError("the master asks for a key, or is no master", file=self._address, allowed=KEY_HELP)


class _Sockets:
    """Stands where Locust's runners look for `rpc.Server` and `rpc.Client`."""

    def __init__(self, key: LinkKey | None) -> None:
        self._key = key
        self._joined = False

    def Server(self, host: str, port: int) -> Server:  # noqa: N802  Locust's names
        return Server(host, port, self._key)

    def Client(self, host: str, port: int, identity: str) -> Client:  # noqa: N802
        client = Client(host, port, identity, self._key)
        try:
            client.await_master()
        except CliffwatchError as error:
            client.close(linger=0)  # type: ignore[no-untyped-call]
            if self._joined:  # Locust connects anew, and tries again after an error of its own kind
                raise RPCError(str(error)) from error
            raise
        self._joined = True
        return client


def use_key(key: LinkKey | None) -> None:
    """From now on, runners made in this process use our sockets with this key (None: without)."""
    locust.runners.rpc = _Sockets(key)  # type: ignore[assignment, attr-defined]


def try_key(host: str, port: int, key: LinkKey | None) -> None:
    """Join and leave again, to tell a person at once that a key does not fit. Raises what `await_master` raises."""
    client = Client(host, port, "trial", key)
    try:
        client.await_master()
    finally:
        client.close(linger=0)  # type: ignore[no-untyped-call]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens at `host`; False for names that nobody knows."""
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def check_bind(host: str, key: LinkKey | None, *, insecure: bool, option: str) -> None:
    """Refuse to listen beyond this machine without a key, or say loudly what that means. Raises InputError."""
    if key is not None or is_loopback(host):
        return
    if not insecure:
        allowed = "127.0.0.1, or a key (see cliffwatch link-key), or --insecure-link (--cliffwatch-insecure-link)"
        raise InputError("would let anybody join who reaches it", field=option, value=host, allowed=allowed)
    logger.warning("WITHOUT A KEY at %s: whoever reaches it can join, read and change this run's messages", host)
