"""Tests run three at a time (`make test`); tests that measure or check for leftovers run alone."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from wattwire.rig import cache, observed

# No deadline, because a shared machine is slow at times. The same examples in every run, so that a
# change fails only for its own faults; `pytest --hypothesis-profile=hunt` tries new ones.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.register_profile("hunt", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("steady")

UNBROKEN = "10000"
"""Enough columns to prevent wrapping, which would depend on the length of paths."""


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
    """Order files: quiet ones first, because hosts throttle long-busy guests.

    Then slow tests, so that none of them runs alone at the end.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    quiet = {item.path for item in items if item.get_closest_marker("quiet")}
    items.sort(key=lambda item: (item.path not in quiet, item.path not in slow))


BUILDS_BEFORE: pytest.StashKey[dict[str, list[float]]] = pytest.StashKey()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BUILDS_BEFORE] = observed_builds()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the time spent on building cells, which later runs reuse."""
    before = config.stash[BUILDS_BEFORE]
    seconds = [s for name, after in observed_builds().items() for s in added(before, name, after)]
    if sum(seconds) >= 1.0:
        terminalreporter.write_line(
            f"builds: {len(seconds)} took {sum(seconds):.0f} s, beside other tests"
        )


def observed_builds() -> dict[str, list[float]]:
    """Return the seconds of the latest builds of each cell, from the cache."""
    paths = (cache.folder() / observed.FOLDER).glob("*.json")
    names = [path.stem.replace("+", "/") for path in paths]
    return {name: list(observed.observed(name).build_s) for name in names}


def added(before: dict[str, list[float]], name: str, after: list[float]) -> list[float]:
    """Return the new entries at the end of `after`, whose oldest entries may have been dropped."""
    known = before.get(name, [])
    for count in range(len(after) + 1):
        kept = after[: len(after) - count]
        if known[len(known) - len(kept) :] == kept:
            return after[len(after) - count :]
    return after
