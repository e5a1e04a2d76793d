"""Responses that are no stream: outcome, message, when to come back."""

from __future__ import annotations

import json

import pytest

from cliffwatch.records.schema import Outcome
from cliffwatch.stream import classify_http

NOON = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.HTTP_4XX),
        (401, Outcome.HTTP_4XX),
        (404, Outcome.HTTP_4XX),
        (408, Outcome.HTTP_4XX),
        (429, Outcome.HTTP_429),
        (499, Outcome.HTTP_4XX),
        (500, Outcome.HTTP_5XX),
        (503, Outcome.HTTP_5XX),
        (599, Outcome.HTTP_5XX),
        (200, Outcome.PROTOCOL),
        (204, Outcome.PROTOCOL),
        (301, Outcome.PROTOCOL),
        (999, Outcome.PROTOCOL),
    ],
)
def test_outcome_of_a_status(status: int, outcome: Outcome) -> None:
    assert classify_http(status, "", b"") == (outcome, f"HTTP {status}", None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "The model `nope` does not exist.", "code": 404}}, "The model `nope` does not exist."),
        ({"error": {"code": 400, "message": "request (9001 tokens) exceeds"}}, "request (9001 tokens) exceeds"),
        ({"object": "error", "message": "The input is longer", "code": 400}, "The input is longer"),
        ({"error": "boom"}, "boom"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too big"}, {"msg": "odd"}]}, "body.n: too big; odd"),
        ({"error": {"message": "two\nlines\tand\u0007 a bell"}}, "two lines and a bell"),
        ("text", "text"),
        ({"weird": 1}, '{"weird": 1}'),
        ([], "[]"),
    ],
)
def test_message_of_a_json_body(body: object, message: str) -> None:
    assert classify_http(400, "application/json", json.dumps(body).encode())[1] == f"HTTP 400: {message}"


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("text/html", b"<html><head><title>502 Bad\nGateway</title></head></html>", "HTML page: 502 Bad Gateway"),
        ("", b"<!DOCTYPE html><p>Sign <b>in</b></p><script>x<y</script>", "HTML page: Sign in"),
        ("text/plain", b"upstream connect error", "upstream connect error"),
        ("text/event-stream", b'data: {"error":"boom"}\n\n', "boom"),
        ("application/json", b'{"error":', '{"error":'),
        ("application/json", b"[" * 100_000, "[" * 289 + "…"),
        ("", b"\xff\xfe\x00", "��"),
    ],
)
def test_message_of_any_other_body(content_type: str, body: bytes, message: str) -> None:
    assert classify_http(500, content_type, body)[1] == f"HTTP 500: {message}"


@pytest.mark.parametrize(
    ("field", "wait_s"),
    [
        ("0", 0),
        ("2", 2),
        (" 120 ", 120),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30),
        ("Wednesday, 21-Oct-15 07:28:30 GMT", 30),
        ("Wed Oct 21 07:28:30 2015", 30),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),  # past
        ("-1", None),
        ("soon", None),
        ("", None),
        ("1e9", None),
        ("nan", None),
        ("9" * 400, None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
        ("Wed, 21 Oct 99999 07:28:30 GMT", None),
        (None, None),
    ],
)
def test_retry_after(field: str | None, wait_s: float | None) -> None:
    found = classify_http(429, "", b"", retry_after=field, now_unix_s=NOON)
    assert found == (Outcome.HTTP_429, "HTTP 429", wait_s)
