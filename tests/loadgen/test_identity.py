from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from loadgen.identity import SecretFiles, read_headers


def lines(folder: Path | None = None, environment: dict[str, str] | None = None, **texts: str) -> tuple[str, ...]:
    """What is read from files of these texts and this environment."""
    files = {}
    for name, text in texts.items():
        assert folder is not None
        files[name] = folder / name
        files[name].write_text(text)
    return read_headers(SecretFiles(**files), environment or {})


def test_nothing_given_nothing_said():
    assert lines() == ()


def test_a_token_a_password_and_a_gateways_headers(tmp_path):
    assert lines(tmp_path, token_file=" abc\n") == ("Authorization: Bearer abc",)
    assert lines(None, {"OPENAI_API_KEY": "k"}) == ("Authorization: Bearer k",)
    expected = "Authorization: Basic " + base64.b64encode("ann:p:w ä".encode()).decode()
    assert lines(tmp_path, basic_auth_file="ann:p:w ä\n") == (expected,)
    assert lines(None, {"CLIFFWATCH_BASIC_AUTH": "ann:p:w ä"}) == (expected,)
    assert lines(tmp_path, headers_file="api-key:  s3cret\n\nX-Team: a b\n") == ("api-key: s3cret", "X-Team: a b")
    both = lines(tmp_path, {"CLIFFWATCH_API_KEY": "k"}, headers_file="api-key: s")
    assert both == ("Authorization: Bearer k", "api-key: s")
    assert lines(None, {"CLIFFWATCH_HEADERS": "Authorization: Token x"}) == ("Authorization: Token x",)


def test_a_file_comes_before_the_environment(tmp_path):
    environment = {"CLIFFWATCH_API_KEY": "env", "CLIFFWATCH_HEADERS": "a: env"}
    assert lines(tmp_path, environment, token_file="file") == ("Authorization: Bearer file", "a: env")


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"CLIFFWATCH_API_KEY": "s3cret", "CLIFFWATCH_BASIC_AUTH": "a:s3cret"}, "CLIFFWATCH_BASIC_AUTH"),
        ({"OPENAI_API_KEY": "s3cret", "CLIFFWATCH_HEADERS": "authorization: s3cret"}, "OPENAI_API_KEY"),
        ({"CLIFFWATCH_BASIC_AUTH": "s3cret"}, "USER:PASSWORD"),
        ({"CLIFFWATCH_BASIC_AUTH": ":s3cret"}, "USER:PASSWORD"),
        ({"CLIFFWATCH_BASIC_AUTH": "a:s3cret\nb"}, "USER:PASSWORD"),
        ({"CLIFFWATCH_HEADERS": "s3cret"}, "line 1"),
        ({"CLIFFWATCH_HEADERS": "a: b\nb c: s3cret"}, "line 2"),
        ({"CLIFFWATCH_HEADERS": "a: s3cret\x00"}, "line 1"),
        ({"CLIFFWATCH_HEADERS": "a: s3crét"}, "line 1"),
        ({"CLIFFWATCH_HEADERS": "Host: s3cret"}, "Host"),
        ({"CLIFFWATCH_HEADERS": "Proxy-Authorization: s3cret"}, "Proxy-Authorization"),
        ({"CLIFFWATCH_HEADERS": "a: s3cret\nA: s3cret"}, "twice"),
        ({"CLIFFWATCH_HEADERS": "\n".join(f"h{n}: s3cret" for n in range(33))}, "32 at most"),
        ({"CLIFFWATCH_HEADERS": "a: s3cret" + "x" * 20_000}, "16384"),
        ({"CLIFFWATCH_API_KEY": "two s3cret"}, "bearer"),
    ],
)
def test_what_cannot_be_said_is_refused_and_no_secret_is_quoted(environment, named):
    with pytest.raises(InputError) as caught:
        lines(None, environment)
    assert named in str(caught.value)
    assert "s3cr" not in str(caught.value)


def test_one_file_cannot_say_two_things(tmp_path):
    file = tmp_path / "secret"
    file.write_text("ann:s3cret")
    with pytest.raises(InputError, match="each say who we are"):
        read_headers(SecretFiles(token_file=file, basic_auth_file=file), {})


def test_a_file_that_is_not_there_is_named(tmp_path):
    for name in ("token_file", "basic_auth_file", "headers_file"):
        with pytest.raises(InputError, match="absent"):
            read_headers(SecretFiles(**{name: tmp_path / "absent"}), {})


@given(st.text(max_size=200))
def test_no_text_of_headers_breaks_out_of_its_line(text):
    try:
        found = lines(None, {"CLIFFWATCH_HEADERS": text})
    except InputError:
        return
    assert not any(character in line for line in found for character in "\r\n\0")


def test_workers_are_told_the_files_and_not_what_is_in_them(tmp_path):
    files = SecretFiles.of({"token_file": "t", "client_cert": "c", "headers_file": "", "target": "http://h"})
    assert files.arguments("--cliffwatch-") == ["--cliffwatch-token-file", "t", "--cliffwatch-client-cert", "c"]
