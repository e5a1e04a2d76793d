"""Ways to a target: certificates of our own, proxies, headers; over real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from cliffwatch.errors import InputError
from cliffwatch.records.schema import Outcome
from cliffwatch.workload.spec import Workload
from loadgen.access import Access, request_bytes
from loadgen.answer import BodySink
from loadgen.connection import Timeouts, Transfer
from loadgen.identity import SecretFiles
from loadgen.origin import Origin, tls_context
from loadgen.probe import Probe
from loadgen.proxy import Proxy, proxy_for
from loadgen.target import inspect_target
from loadgen.transport import Transport
from tests.loadgen.scripted import Served, say, serving, whole

ROOMY = Timeouts(connect_s=3.0, first_token_s=3.0, stall_s=3.0, total_s=3.0)
HELLO = whole("200 OK", b"{}")


def ask(access: Access) -> tuple[Transfer, BodySink]:
    transport, sink = Transport(access, ROOMY), BodySink(1000)
    transfer = transport.send(request_bytes(access, "GET", "/v1/models"), sink)
    transport.close()
    return transfer, sink


# certificates


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def files_of(authority: trustme.CA, folder: Path) -> tuple[Path, Path, Path]:
    """Our chain, our key, and both in one file."""
    ours = authority.issue_cert("client@example.com")
    chain, key, both = folder / "chain.pem", folder / "key.pem", folder / "both.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in ours.cert_chain_pems))
    ours.private_key_pem.write_to_path(key)
    ours.private_key_and_cert_chain_pem.write_to_path(both)
    return chain, key, both


@contextmanager
def wanting_certificates(authority: trustme.CA) -> Iterator[Served]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(say(HELLO), tls=context) as server:
        yield server


def access_to(port: int, authority: trustme.CA, folder: Path, **files: Path) -> Access:
    ca_file = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    return Access.of(f"https://127.0.0.1:{port}", SecretFiles(**files), ca_file=ca_file)


def test_a_server_that_wants_a_certificate_gets_ours(authority, tmp_path):
    chain, key, both = files_of(authority, tmp_path)
    with wanting_certificates(authority) as server:
        for files in ({"client_cert": chain, "client_key": key}, {"client_cert": both}):
            transfer, sink = ask(access_to(server.port, authority, tmp_path, **files))
            assert (transfer.outcome, sink.status) == (None, 200)


def test_without_one_it_is_a_matter_of_trust_not_a_cut_stream(authority, tmp_path):
    with wanting_certificates(authority) as server:
        transfer, _ = ask(access_to(server.port, authority, tmp_path))
    assert transfer.outcome is Outcome.TLS
    assert "certificate required" in (transfer.message or "")


def test_a_key_with_a_password_is_opened_by_the_environment_and_never_asked_for(authority, tmp_path, monkeypatch):
    chain, key, _ = files_of(authority, tmp_path)
    plain = load_pem_private_key(key.read_bytes(), None)
    locked = BestAvailableEncryption(b"s3cret")
    key.write_bytes(plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    origin, files = Origin.parse("https://h"), SecretFiles(client_cert=chain, client_key=key)
    with pytest.raises(InputError, match=r"is encrypted.*CLIFFWATCH_CLIENT_KEY_PASSWORD"):
        tls_context(origin, files)
    monkeypatch.setenv("CLIFFWATCH_CLIENT_KEY_PASSWORD", "wr0ng")
    with pytest.raises(InputError) as caught:
        tls_context(origin, files)
    assert "wr0ng" not in str(caught.value)
    monkeypatch.setenv("CLIFFWATCH_CLIENT_KEY_PASSWORD", "s3cret")
    assert tls_context(origin, files) is not None


def test_certificates_that_cannot_be_used_are_named(authority, tmp_path):
    chain, key, _ = files_of(authority, tmp_path)
    other, rubbish = tmp_path / "other.pem", tmp_path / "rubbish.pem"
    authority.issue_cert("someone@example.com").private_key_pem.write_to_path(other)
    rubbish.write_text("nothing")
    https = Origin.parse("https://h")
    for files, named in (
        ({"client_cert": tmp_path / "absent"}, "absent"),
        ({"client_cert": rubbish}, "rubbish"),
        ({"client_cert": chain}, "chain"),  # holds no key
        ({"client_cert": chain, "client_key": other}, "other"),
        ({"client_key": key}, "--client-key"),
        ({"client_cert": tmp_path}, tmp_path.name),
    ):
        with pytest.raises(InputError, match=named):
            tls_context(https, SecretFiles(**files))
    with pytest.raises(InputError, match="--client-cert: has no meaning for a http:// target"):
        tls_context(Origin.parse("http://h"), SecretFiles(client_cert=chain))


# proxies


@contextmanager
def proxying(routes: Mapping[str, int], refusal: bytes | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """A forward proxy that knows some hosts by name; its port and the heads of the requests that it got."""
    heads: list[bytes] = []

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def behave(sock: socket.socket, request: bytes) -> None:
        heads.append(request)
        if refusal is not None:
            sock.sendall(refusal)
            return
        method, url, _ = request.split(b" ", 2)
        name = url.decode().removeprefix("http://").partition("/")[0]
        far = socket.create_connection(("127.0.0.1", routes[name]))
        if method == b"CONNECT":
            sock.sendall(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
        else:
            far.sendall(request)
        threading.Thread(target=pump, args=(far, sock), daemon=True).start()
        pump(sock, far)

    with serving(behave) as served:
        yield served.port, heads


@pytest.fixture
def environment(monkeypatch) -> Callable[..., None]:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda **values: [monkeypatch.setenv(name, value) for name, value in values.items()]


def test_a_plain_target_is_asked_for_by_its_whole_url(environment):
    with serving(say(HELLO)) as target, proxying({"target.test:8000": target.port}) as (port, heads):
        environment(HTTP_PROXY=f"http://ann:s3cret%21@127.0.0.1:{port}")
        access = Access.of("http://target.test:8000/base", SecretFiles())
        transfer, sink = ask(access)
        assert (transfer.outcome, sink.status) == (None, 200)
    assert heads[0].startswith(b"GET http://target.test:8000/base/v1/models HTTP/1.1\r\nHost: target.test:8000\r\n")
    assert b"\r\nProxy-Authorization: Basic YW5uOnMzY3JldCE=\r\n" in heads[0]
    assert "s3cret" not in repr(access) and "YW5u" not in repr(access)
    assert access.notes[0].startswith(f"requests go through the proxy 127.0.0.1:{port}")


def test_an_encrypted_target_is_reached_by_a_tunnel_and_the_proxy_learns_no_more(authority, environment, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("target.test").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with serving(say(HELLO), tls=context) as target, proxying({"target.test:443": target.port}) as (port, heads):
        environment(https_proxy=f"ann:s3cret@127.0.0.1:{port}", CLIFFWATCH_API_KEY="t0ken")
        access = Access.of("https://target.test", SecretFiles(), ca_file=tmp_path / "ca.pem")
        transfer, sink = ask(access)
        assert (transfer.outcome, sink.status) == (None, 200)
        assert transfer.connect_ns is not None
        (request,) = target.requests
    assert heads[0].startswith(b"CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\nProxy-Authorization: ")
    assert b"t0ken" not in b"".join(heads)
    assert request.startswith(b"GET /v1/models HTTP/1.1\r\nHost: target.test\r\n")
    assert b"Proxy-Authorization" not in request and b"Bearer t0ken" in request


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nno!", "502"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "refuses"),
        (b"x" * 70_000, "no answer that is HTTP"),
    ],
)
def test_a_proxy_that_refuses_is_named(authority, refusal, said):
    tls = tls_context(Origin.parse("https://target.test"))
    with proxying({}, refusal) as (port, _):
        transfer, _ = ask(Access(Origin.parse("https://target.test"), tls, Proxy("127.0.0.1", port)))
    assert transfer.outcome is Outcome.CONNECT
    assert f"127.0.0.1:{port}" in (transfer.message or "") and said in (transfer.message or "")


def test_a_proxy_that_wants_a_password_is_told_from_a_server_that_does():
    refusal = whole("407 Proxy Authentication Required", b"who?", "text/plain")
    with proxying({}, refusal) as (port, _):
        probe = Probe(Access(Origin.parse("http://target.test"), None, Proxy("127.0.0.1", port)))
        with pytest.raises(InputError, match=r"the proxy refuses access.*HTTP_PROXY"):
            inspect_target(probe, Workload.model_validate({"requests": 1, "arrivals": {"kind": "constant", "rate": 1}}))
        probe.close()


def test_a_proxy_that_is_not_there_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    transfer, _ = ask(Access(Origin.parse("http://target.test"), None, Proxy("127.0.0.1", port)))
    assert (transfer.outcome, "refused" in (transfer.message or "")) == (Outcome.CONNECT, True)
    assert f"the proxy 127.0.0.1:{port}" in (transfer.message or "")


def test_a_proxy_that_is_silent_meets_the_connect_limit():
    limits = Timeouts(connect_s=0.2, first_token_s=3, stall_s=3, total_s=3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy("127.0.0.1", listener.getsockname()[1])
        access = Access(Origin.parse("https://target.test"), tls_context(Origin.parse("https://h")), proxy)
        transport = Transport(access, limits)
        transfer = transport.send(request_bytes(access, "GET", "/"), BodySink(10))
        transport.close()
    assert transfer.outcome is Outcome.TIMEOUT_CONNECT


@pytest.mark.parametrize(
    ("target", "no_proxy", "used"),
    [
        ("http://h.example.com", "", True),
        ("http://h.example.com", "example.com", False),
        ("http://h.example.com", ".example.com", False),
        ("http://h.example.com", "*.example.com", False),
        ("http://h.example.com", "ample.com", True),
        ("http://h.example.com", "other, h.example.com:80", False),
        ("http://h.example.com", "h.example.com:81", True),
        ("http://h.example.com", "*", False),
        ("http://10.1.2.3", "10.0.0.0/8", False),
        ("http://10.1.2.3", "10.1.2.3", False),
        ("http://11.1.2.3", "10.0.0.0/8,,x/y", True),
        ("http://[fd00::1]", "fd00::/8", False),
        ("http://localhost:8000", "", False),
        ("http://127.0.0.2:8000", "", False),
        ("http://[::1]:8000", "", False),
        ("https://h.example.com", "", False),  # http_proxy is not for it
    ],
)
def test_what_goes_through_the_proxy(target, no_proxy, used):
    found = proxy_for(Origin.parse(target), {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": no_proxy})
    assert found == (Proxy("proxy", 3128) if used else None)


@pytest.mark.parametrize("text", ["https://h:1", "socks5://h:1", "http://", "http://h:x", "http://[::1", "http://h/p"])
def test_what_is_no_proxy_is_refused_and_not_quoted(text):
    secret = text.replace("://", "://ann:s3cret@")
    with pytest.raises(InputError, match="HTTP_PROXY: is no proxy") as caught:
        proxy_for(Origin.parse("http://target.test"), {"http_proxy": secret})
    assert "s3cret" not in str(caught.value)
