"""Run pytest with several processes, and repeat tests that failed once, alone.

Usage: run_tests.py [PYTEST_ARGUMENT …]. Tests of this repository measure a real machine. While
three processes share two cores, a host that stalls can fail a test that is correct. A fault of the
code fails again without other tests. The program repeats at most REPEATED_MAX tests and names those
that passed only alone. It exits with 0 if each test passed once and at most ALONE_MAX of them only
alone. A test that exists only if others are collected failed, too. A test that passes only alone is
a defect to be mended, because it depends on the speed of the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGINS = ("xdist.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
IN_PARALLEL = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
"""Most tests wait for a measured window, so three processes fit two cores."""
QUICK_IN_PARALLEL = ("-n", "2", *IN_PARALLEL[2:])
"""Quick tests only compute, and each process first needs about seven seconds to collect them."""
FAILED = 1
"""Exit code of pytest if tests failed."""
REPEATED_MAX = 10
"""More failed tests show a fault of the code, which a repeat would only hide for a while."""
ALONE_MAX = 2
"""More tests that pass only alone fail the run, so that such defects do not accumulate."""
SLOWEST = ("--durations", "20", "--durations-min", "20")
"""Options that name the slowest tests, which decide how long the whole takes."""
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""A sourced ROS adds plugins to PYTHONPATH that this pytest cannot load."""


def command(arguments: list[str]) -> list[str]:
    """Return the command of pytest with its plugins; it needs ENVIRONMENT."""
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    return [sys.executable, "-m", "pytest", *plugins, *arguments]


def pytest(arguments: list[str]) -> int:
    """Run pytest and return its exit code."""
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(command(arguments), cwd=ROOT, env=environment, check=False).returncode


def failed_tests() -> list[str]:
    """Return the node ids of the tests that failed in the last run of pytest."""
    path = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def main(arguments: list[str]) -> int:
    in_parallel = QUICK_IN_PARALLEL if "quick" in arguments else IN_PARALLEL
    code = pytest(["--cache-clear", *in_parallel, *SLOWEST, *arguments])
    failed = failed_tests()
    if code != FAILED or not 0 < len(failed) <= REPEATED_MAX:
        return code
    print(
        f"\nrepeating {len(failed)} failed tests without others:", *failed, sep="\n  ", flush=True
    )
    code = pytest(["--last-failed", "--last-failed-no-failures", "none", *arguments])
    again = set(failed_tests())
    # A test that the repeat did not collect is still in the list of failed tests.
    code = code or (FAILED if again & set(failed) else 0)
    for name in failed:
        print(f"{'failed twice' if name in again else 'passed only without other tests'}: {name}")
    alone = len(set(failed) - again)
    if alone > ALONE_MAX:
        print(f"{alone} tests passed only without other tests; allowed: {ALONE_MAX}")
        code = code or FAILED
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
