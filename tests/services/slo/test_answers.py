"""The cache and pool of answers: computed once, shared, bounded, and never stale."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from services.slo import answers as module
from services.slo.answers import Answers
from services.slo.problems import BusyError


def with_answers(test: Callable[[Answers], Awaitable[None]]) -> None:
    async def run() -> None:
        answers = Answers()
        try:
            await test(answers)
        finally:
            answers.close()

    asyncio.run(run())


def test_kept_until_the_files_change() -> None:
    calls: list[str] = []

    async def test(answers: Answers) -> None:
        for fingerprint in ("a", "a", "b", "b", "a"):
            assert await answers.get("key", fingerprint, lambda: calls.append("x") or len(calls)) == len(calls)  # type: ignore[func-returns-value]

    with_answers(test)
    assert len(calls) == 3  # one value is kept for a key, the newest


def test_simultaneous_askers_share_one_computation() -> None:
    calls: list[int] = []
    release = threading.Event()

    def compute() -> int:
        calls.append(1)
        assert release.wait(5)
        return 42

    async def test(answers: Answers) -> None:
        asking = [asyncio.create_task(answers.get("key", "a", compute)) for _ in range(20)]
        await asyncio.sleep(0.05)
        release.set()
        assert await asyncio.gather(*asking) == [42] * 20

    with_answers(test)
    assert len(calls) == 1


def test_failure_is_told_to_all_and_not_kept() -> None:
    async def test(answers: Answers) -> None:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await answers.get("key", "a", lambda: 1 / 0)
        assert await answers.get("key", "a", lambda: 7) == 7

    with_answers(test)


def test_deadline_lets_the_computation_go_on() -> None:
    release = threading.Event()

    async def test(answers: Answers) -> None:
        with pytest.raises(BusyError, match="goes on"):
            await answers.get("key", "a", lambda: release.wait(5), deadline_s=0.05)
        release.set()
        assert await answers.get("key", "a", lambda: pytest.fail("computed twice")) is True

    with_answers(test)


def test_too_much_waiting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 5)
    release = threading.Event()

    async def test(answers: Answers) -> None:
        asking = [asyncio.create_task(answers.get(n, "a", lambda: release.wait(5))) for n in range(5)]
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="waiting"):
            await answers.get("one more", "a", lambda: True)
        assert await answers.look("key", lambda: "lookups still answer") == "lookups still answer"
        release.set()
        assert all(await asyncio.gather(*asking))

    with_answers(test)


def test_kept_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 3)
    calls: list[int] = []

    async def test(answers: Answers) -> None:
        for key in (1, 2, 3, 1, 4, 1, 2):  # 2 is the longest unused when 4 comes
            await answers.get(key, "a", lambda key=key: calls.append(key))  # type: ignore[misc]

    with_answers(test)
    assert calls == [1, 2, 3, 4, 2]


def test_encoded_values_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_BYTES", 100)
    calls: list[int] = []

    def made(size: int) -> bytes:
        calls.append(size)
        return bytes(size)

    async def test(answers: Answers) -> None:
        for size in (40, 50, 40, 30, 50, 101, 40):  # 30 pushes 50 out, 101 everything
            assert len(await answers.get(size, "a", lambda size=size: made(size))) == size  # type: ignore[misc]

    with_answers(test)
    assert calls == [40, 50, 30, 50, 101, 40]


def test_lookups_of_one_moment_are_one() -> None:
    release = threading.Event()
    calls: list[int] = []

    def look() -> int:
        calls.append(1)
        assert release.wait(5)
        return len(calls)

    async def test(answers: Answers) -> None:
        asking = [asyncio.create_task(answers.look("key", look)) for _ in range(20)]
        await asyncio.sleep(0.05)
        asking.pop().cancel()  # who leaves takes nothing from the others
        release.set()
        assert await asyncio.gather(*asking) == [1] * 19
        assert await answers.look("key", look) == 2

    with_answers(test)
