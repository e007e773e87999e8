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
    "quick": ("--tier", "quick"),
    "test": ("--tier", "test"),
    "rest": ("--tier", "full", "--after", "test"),
    "matrix": ("--tier", "all", "--after", "full"),
    "all": ("--tier", "all"),
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
    assert len(by_run["test"]) > 5000
    tiers_in_order = by_run["test"] + by_run["rest"] + by_run["matrix"]
    assert sorted(tiers_in_order) == sorted(by_run["all"])
    assert by_run["matrix"] and set(by_run["quick"]) < set(by_run["test"])


def test_every_parameter_set_of_the_table_exists(by_run: dict[str, list[str]]) -> None:
    named = {entry for entry in tiers.ENTRIES if "[" in entry}
    assert named - {*by_run["all"]} == set()
