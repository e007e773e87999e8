"""Test that a failed test is repeated once alone, and that a fault or a third one fails the run."""

import pytest

from tools import run_tests

FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_passes_the_second_time(number):
    mark = Path(__file__).with_name(f"mark{{number}}")
    begun = mark.exists()
    mark.touch()
    assert begun

def test_passes():
    pass
"""
BROKEN = "\n".join(
    f"def test_{n}():\n    assert False\n" for n in range(run_tests.REPEATED_MAX + 1)
)


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Return a function that writes a test file, runs it, and returns the exit code."""
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "IN_PARALLEL", ("-n", "2"))
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def run(code: str) -> int:
        (tmp_path / "test_it.py").write_text(code, encoding="utf-8")
        return run_tests.main([])

    return run


def test_few_tests_that_pass_without_others_are_named_and_do_not_fail_the_suite(suite, capfd):
    assert suite(FLAKY.format(count=run_tests.ALONE_MAX)) == 0
    shown = capfd.readouterr().out
    assert "passed only without other tests: test_it.py::test_passes_the_second_time[0]" in shown


def test_more_tests_that_pass_without_others_fail_the_suite(suite, capfd):
    assert suite(FLAKY.format(count=run_tests.ALONE_MAX + 1)) == run_tests.FAILED
    shown = capfd.readouterr().out
    assert "3 tests passed only without other tests; allowed: 2" in shown
    assert "failed twice" not in shown


def test_a_test_that_fails_twice_fails_the_suite(suite, capfd):
    assert suite("def test_it():\n    assert False\n") == run_tests.FAILED
    assert "failed twice: test_it.py::test_it" in capfd.readouterr().out


ONLY_WITH_OTHERS = """
import os
import pytest

@pytest.mark.parametrize("n", [1, 2] if "PYTEST_XDIST_WORKER" in os.environ else [1])
def test_it(n):
    assert n == 1
"""


def test_a_failed_test_that_the_repeat_does_not_collect_fails_the_suite(suite, capfd):
    assert suite(ONLY_WITH_OTHERS) == run_tests.FAILED
    assert "failed twice: test_it.py::test_it[2]" in capfd.readouterr().out


def test_many_failed_tests_are_not_repeated(suite, capfd):
    assert suite(BROKEN) == run_tests.FAILED
    assert "repeating" not in capfd.readouterr().out
