from __future__ import annotations

import ssl

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from loadgen.identity import read_token
from loadgen.origin import Origin, tls_context


@pytest.mark.parametrize(
    ("url", "expected", "authority"),
    [
        ("http://h", Origin("http", "h", 80), "h"),
        ("http://h:8000/", Origin("http", "h", 8000), "h:8000"),
        ("https://api.example/v1/", Origin("https", "api.example", 443), "api.example"),
        ("http://h/base/v1", Origin("http", "h", 80, "/base"), "h"),
        ("http://[::1]:9", Origin("http", "::1", 9), "[::1]:9"),
    ],
)
def test_addresses_are_taken_apart(url, expected, authority):
    assert Origin.parse(url) == expected
    assert Origin.parse(url).authority == authority


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://h:x", "http://h/?a=b",
     "http://h/#x", "http://h h", "http://h/\r\nX: y", "http://[::1", "http://hä"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError) as caught:
        Origin.parse(url)
    assert "--target" in str(caught.value)


def test_a_secret_in_the_url_is_refused_and_not_repeated():
    with pytest.raises(InputError) as caught:
        Origin.parse("http://user:s3cret@h")
    assert "s3cret" not in str(caught.value)


@given(st.text(max_size=60))
def test_no_text_makes_it_fail_otherwise(text):
    try:
        origin = Origin.parse(text)
    except InputError:
        return
    assert "\r" not in origin.url() and "\n" not in origin.url()


def test_tokens_come_from_the_file_else_from_the_environment(tmp_path):
    file = tmp_path / "token"
    file.write_text("  abc\n")
    both = {"CLIFFWATCH_API_KEY": "first", "OPENAI_API_KEY": "second"}
    assert read_token(file, both) == "abc"
    assert read_token(None, both) == "first"
    assert read_token(None, {"OPENAI_API_KEY": "second"}) == "second"
    assert read_token(None, {}) is None


@pytest.mark.parametrize("content", [b"", b"two words", b"line\nline", "schlüssel".encode(), b"x" * 20_000])
def test_a_token_that_cannot_stand_in_a_header_is_refused_without_quoting_it(tmp_path, content):
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_token(file, {})
    assert "words" not in str(caught.value)
    with pytest.raises(InputError):
        read_token(tmp_path / "absent", {})


def test_tls_is_verified_unless_told_otherwise(tmp_path):
    https, http = Origin.parse("https://h"), Origin.parse("http://h")
    context = tls_context(https)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    context = tls_context(https, insecure=True)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    assert tls_context(http) is None
    for wrong in ({"insecure": True}, {"ca_file": tmp_path}):
        with pytest.raises(InputError):
            tls_context(http, **wrong)
    with pytest.raises(InputError):
        tls_context(https, insecure=True, ca_file=tmp_path)


def test_an_authority_of_ones_own_is_read_or_refused(tmp_path):
    https, file = Origin.parse("https://h"), tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    assert tls_context(https, ca_file=file) is not None
    file.write_text("no certificate")
    for path in (file, tmp_path / "absent", tmp_path):
        with pytest.raises(InputError) as caught:
            tls_context(https, ca_file=path)
        assert str(path) in str(caught.value)
