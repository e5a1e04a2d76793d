"""Finding promtool, which is run in another folder than the one it was named in."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.cli.promtool import PromtoolTests, find_promtool
from cliffwatch.errors import InputError


@pytest.mark.parametrize("given", ["bin/mine", "./bin/mine"])
def test_a_relative_path_is_of_the_folder_it_was_given_in(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mine"
    program.write_text("#!/bin/sh\necho promtool, version 3.5.0\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert PromtoolTests(find_promtool(given), elsewhere, "rules.yml").version() == "3.5.0"


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--promtool"):
        find_promtool(str(tmp_path))
