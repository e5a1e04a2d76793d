"""The manifest: there and back, and each way it can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.manifest import Cost, read_manifest, write_manifest
from tests.records.synthetic import make_manifest


def test_there_and_back(tmp_path: Path) -> None:
    manifest = make_manifest(cost=Cost(gpu_hour_usd=1.92), warnings=("é",), planned_duration_s=None)
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_no_nan_in_the_file(tmp_path: Path) -> None:
    write_manifest(tmp_path, make_manifest(load_s=float("nan")))
    assert json.loads((tmp_path / "manifest.json").read_text(), parse_constant=pytest.fail)["load_s"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is damaged"),
        (b"{", "is damaged"),
        (b"[]", "is damaged"),
        (b"\xff", "cannot be read"),
        (b'{"format": 1, "run_id": "x"}', "name: is damaged: Field required"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(RunError, match=message) as caught:
        read_manifest(tmp_path)
    assert caught.value.file == str(tmp_path / "manifest.json")


def test_another_version_is_refused(tmp_path: Path) -> None:
    write_manifest(tmp_path, make_manifest(format=2))
    with pytest.raises(RunError, match="another version; got 2; allowed: 1"):
        read_manifest(tmp_path)


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    data = json.loads(make_manifest().model_dump_json()) | {"surprise": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(RunError, match="surprise"):
        read_manifest(tmp_path)
