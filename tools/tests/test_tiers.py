"""Test that the tiers together have exactly the tests that pytest collects without them."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests import tiers
from tools import run_tests

RUNS = {
    "all": ("--tier", "all"),
    "matrix": ("--tier", "all", "--after", "full"),
    "quick": ("--tier", "quick"),
}
TEST = re.compile(r"^[\w./-]+\.py::.+$", re.MULTILINE)


def collected(arguments: tuple[str, ...]) -> list[str]:
    """Return the ids of the tests that a run with these arguments would execute."""
    options = ("--collect-only", "-q", "--disable-warnings", "-p", "no:cacheprovider")
    done = subprocess.run(
        run_tests.command([*options, *arguments]), cwd=tiers.ROOT,
        env={**os.environ, **run_tests.ENVIRONMENT, "PYTEST_ADDOPTS": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return TEST.findall(done.stdout)


@pytest.fixture(scope="module")
def by_run() -> dict[str, list[str]]:
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUNS, pool.map(collected, RUNS.values()), strict=True))


def test_no_test_is_lost_and_none_runs_in_two_tiers(by_run: dict[str, list[str]]) -> None:
    matrix = set(by_run["matrix"])
    tier_by_test = {
        test: tiers.MATRIX if test in matrix else tiers.tier_of(test) for test in by_run["all"]
    }
    assert len(tier_by_test) == len(by_run["all"]) > 5000
    assert by_run["matrix"] and {*tier_by_test.values()} == {*tiers.TIERS}
    assert sorted(by_run["quick"]) == sorted(
        t for t, tier in tier_by_test.items() if tier == "quick"
    )
    for test, tier in tier_by_test.items():
        # pytest reads a file or folder only if `tiers_in` has a selected tier.
        for place in tiers.containing(test.partition("::")[0]):
            assert tier in tiers.tiers_in(place), (test, place)


def test_the_tiers_until_one_and_those_after_it_are_all() -> None:
    assert tiers.selected("test") | tiers.selected("full", "test") == tiers.selected("full")
    assert not tiers.selected("test") & tiers.selected("full", "test")


def test_every_parameter_set_of_the_table_exists(by_run: dict[str, list[str]]) -> None:
    named = {entry for entry in tiers.ENTRIES if "[" in entry}
    assert named - {*by_run["all"]} == set()
