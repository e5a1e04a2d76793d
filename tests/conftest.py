"""What every test folder shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Generated examples differ from run to run where people work, which finds more; a gate must not depend on luck.
settings.register_profile("quick", max_examples=25)
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True, print_blob=True)
settings.register_profile("thorough", max_examples=1000)
settings.load_profile(os.environ.get("CLIFFWATCH_EXAMPLES", "ci" if os.environ.get("CI") else "quick"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Reference measurements and recordings that live beside the repository; absent on most machines."""
    path = Path(os.environ.get("CLIFFWATCH_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"reference data is not here: {path} (set CLIFFWATCH_SHARED)")
    return path
