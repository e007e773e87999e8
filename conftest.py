"""Two tests at a time (`make test`), but one alone where it measures or looks for leftovers."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

# A shared machine takes its time now and then: that is no fault of what is tested.
# The same examples each time: a new one that fails is news for who hunts for it
# (`pytest --hypothesis-profile=hunt`), not for whoever changed something else.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.register_profile("hunt", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("steady")

UNBROKEN = "10000"
"""Columns so many that no line is wrapped: where one breaks depends on the length of its paths."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", UNBROKEN)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold this file's lock during a test: `quiet` ones alone, all others together."""
    quiet = item.get_closest_marker("quiet") is not None
    with Path(__file__).open(encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if quiet else fcntl.LOCK_SH)
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quiet files first: hosts take their time back from who was busy for long. Then those with
    slow tests, so that no worker is left with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    quiet = {item.path for item in items if item.get_closest_marker("quiet")}
    items.sort(key=lambda item: (item.path not in quiet, item.path not in slow))
