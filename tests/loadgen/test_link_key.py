"""Keys of a link: from where they are read, what is refused, and that they are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cliffwatch.cli.link_key import app
from cliffwatch.errors import InputError
from loadgen.link_key import KEY_VARIABLE, LinkKey, new_key, read_key

GOOD = "Zm9vYmFyLWJhei1xdXV4LTEyMzQ1Njc4OTA="


def test_no_key_is_none_and_a_file_goes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert read_key(None) is None
    monkeypatch.setenv(KEY_VARIABLE, GOOD)
    assert read_key(None) == LinkKey(GOOD)
    path = tmp_path / "key"
    path.write_text(GOOD[::-1] + "\n")
    assert read_key(path) == LinkKey(GOOD[::-1])


@pytest.mark.parametrize("text", ["", "short", "a" * 60, GOOD + " " + GOOD, GOOD + "é", GOOD * 200, "\n\n"])
def test_what_can_be_guessed_is_refused_without_being_shown(tmp_path, text):
    path = tmp_path / "key"
    path.write_text(text)
    with pytest.raises(InputError, match=str(path)) as caught:
        read_key(path)
    assert not text.strip() or text.strip() not in str(caught.value).replace(str(path), "")


def test_a_file_that_is_absent_or_no_text_is_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_key(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff" * 40)
    with pytest.raises(InputError, match="not ASCII"):
        read_key(tmp_path / "binary")


def test_a_file_that_others_may_read_is_warned_of(tmp_path, caplog):
    path = tmp_path / "key"
    path.write_text(GOOD)
    path.chmod(0o600)
    read_key(path)
    assert not caplog.records
    path.chmod(0o644)
    read_key(path)
    assert "chmod 600" in caplog.text and GOOD not in caplog.text


def test_roles_and_secrets_have_pairs_of_their_own_and_a_key_does_not_show_itself():
    one, other = new_key(), new_key()
    pairs = [one.pair("master"), one.pair("worker"), other.pair("master"), other.pair("worker")]
    assert len({part for pair in pairs for part in pair}) == 8
    assert one.pair("master") == LinkKey(one.text).pair("master")
    assert one.text not in repr(one)


def test_the_command_makes_a_file_for_its_owner_and_replaces_none(tmp_path: Path):
    path = tmp_path / "key"
    assert CliRunner().invoke(app, [str(path)]).exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    key = read_key(path)
    again = CliRunner().invoke(app, [str(path)])
    assert isinstance(again.exception, InputError)
    assert read_key(path) == key
    printed = CliRunner().invoke(app, [])
    path.unlink()
    path.write_text(printed.output)
    assert read_key(path) not in {key, None}
