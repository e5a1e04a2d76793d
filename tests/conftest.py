"""What every test folder shares."""

from __future__ import annotations

import os

# Small matrices gain nothing from threads, and beside other tests on few cores their waiting costs more than the work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Iterator
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


# A unit test that takes longer (CPU time, so that a busy machine does not matter) makes everybody wait for it.
MAX_UNIT_CPU_S = 5.0
ALONE = ("integration", "e2e")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A unit test fails when its own process worked on it for too long."""
    start_s = time.process_time()
    yield
    took_s = time.process_time() - start_s
    if took_s > MAX_UNIT_CPU_S and not _stays_alone(item):
        pytest.fail(f"a unit test may take {MAX_UNIT_CPU_S:g} s of CPU time, this one took {took_s:.1f} s")


def _stays_alone(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ALONE)
