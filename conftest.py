"""Tests run three at a time (`make test`); tests that measure or check for leftovers run alone.

`--tier` selects the tests of a tier, and `--after` excludes those of an earlier one. Both have the
values quick, test, full and all; `tests/tiers.toml` has the tier of each test.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from tests import tiers
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


QUIET_PHASE: pytest.StashKey[int] = pytest.StashKey()
"""Open descriptor of this folder, locked from this process's first quiet test to its last one."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Hold this file's lock during a test: `quiet` ones alone, all others together.

    Other tests begin after the quiet phase of all processes. Without it, two processes with other
    tests rarely release the lock at the same time, and a third one waits minutes for a quiet test.
    """
    stash, folder = item.config.stash, Path(__file__).parent
    if is_quiet(item) and QUIET_PHASE not in stash:
        stash[QUIET_PHASE] = os.open(folder, os.O_RDONLY)
        fcntl.flock(stash[QUIET_PHASE], fcntl.LOCK_SH)
    elif not is_quiet(item):
        phase = os.open(folder, os.O_RDONLY)
        fcntl.flock(phase, fcntl.LOCK_EX)
        os.close(phase)
    try:
        with Path(__file__).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX if is_quiet(item) else fcntl.LOCK_SH)
            return (yield)
    finally:
        if QUIET_PHASE in stash and (nextitem is None or not is_quiet(nextitem)):
            os.close(stash[QUIET_PHASE])
            del stash[QUIET_PHASE]


def is_quiet(item: pytest.Item) -> bool:
    return item.get_closest_marker("quiet") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=tiers.TIERS, default="full", help="last tier to run")
    group.addoption("--after", choices=("", *tiers.TIERS), default="", help="tier that has passed")


def selected_tiers(config: pytest.Config) -> frozenset[str]:
    """Return the tiers to run. Empty for tests outside the repository, which have no tiers."""
    if config.rootpath.resolve() != tiers.ROOT:
        return frozenset()
    tier, after = config.getoption("tier"), config.getoption("after")
    selected = tiers.selected(tier, after)
    if not selected:
        raise pytest.UsageError(f"--tier {tier}: --after {after} excludes all its tests")
    return selected


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests of the selected tiers, because importing all takes half a minute."""
    selected = selected_tiers(config)
    if not selected or config.rootpath not in collection_path.parents:
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    return None if tiers.tiers_in(place) & selected else True


def tier_of(item: pytest.Item) -> str:
    try:
        return tiers.MATRIX if item.get_closest_marker("matrix") else tiers.tier_of(item.nodeid)
    except LookupError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of the tiers, and order files: quiet ones first.

    Quiet tests are first because hosts throttle long-busy guests. Then follow files by their number
    of slow tests, so that no long file runs alone at the end.
    """
    if selected := selected_tiers(config):
        collected, items[:] = [*items], [item for item in items if tier_of(item) in selected]
        config.hook.pytest_deselected(items=[*{*collected} - {*items}])
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    quiet = {item.path for item in items if is_quiet(item)}
    items.sort(key=lambda item: (item.path not in quiet, -slow[item.path]))


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
            f"builds: {len(seconds)} took {sum(seconds):.0f} s, while other tests ran"
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
