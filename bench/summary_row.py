"""Compare the CPU time for the results of a run with that of another commit.

`python -m bench summary_row --old REV` measures a run of loopback/cpp with the controllers of both
trees. Both then compute the results of their run again, alternately. The results are the checked
records, their table on disk, and the row of the summary.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.kits import ROOT, extract
from bench.nodes import Bench
from bench.pairs import Comparison, abba, compared
from wattwire.rig.agent import find_agent

STUDY = """
title = "One run"
[factors]
payload_bytes = [64]
[fixed]
middleware = "loopback"
language = "cpp"
pattern = "topic"
rate_hz = {rate_hz}
[plan]
blocks = 1
controls = false
duration_s = 2.0
baseline_s = 0.1
linger_ms = 100
quiet_ms = 50
retries = 0
quiet_wait_s = 0.0
"""
RATES_HZ = (1_000, 20_000)
REPEATS = 5
PROMISE = 1.05


def comparisons(workbench: Bench, pairs: int, revision: str) -> Iterator[Comparison]:
    """Yield a comparison of the two trees for each rate of messages."""
    tree = workbench.folder / "old"
    extract(revision, tree)
    old_agent = _build_agent(tree)
    for rate_hz in RATES_HZ:
        study = workbench.folder / f"{rate_hz}.toml"
        study.write_text(STUDY.format(rate_hz=rate_hz))
        label = f"topic, {2 * rate_hz:,} messages, against {revision}"
        with timer(ROOT, study, find_agent()) as new, timer(tree, study, old_agent) as old:
            for side in (new, old):  # the first results take longer
                side.seconds()
            yield from compared(label, "s", abba(label, new.seconds, old.seconds, pairs), PROMISE)


def _build_agent(tree: Path) -> Path:
    """Build the agent of a tree."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--package=wattwire-agent"]
    subprocess.run(command, cwd=tree, check=True)
    return tree / "target" / "release" / "wattwire-agent"


class Timer:
    """A controller with a measured run whose results it computes on request."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._line()

    def seconds(self) -> float:
        """Return the median CPU time (s) of REPEATS computations."""
        return statistics.median(self._request() for _ in range(REPEATS))

    def _request(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stderr is not None
        line = self._process.stderr.readline().strip()
        if not line:
            raise RuntimeError(f"{self._process.args!r}: ended without a result")
        return line


@contextlib.contextmanager
def timer(tree: Path, study: Path, agent: Path) -> Iterator[Timer]:
    """Yield the timer of a tree with its agent, because their protocol may have changed."""
    campaign = study.with_name(f"{study.stem}-{tree.name}")
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("row_timer.py"), study, campaign],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        cwd=tree, env={
            **os.environ, "PYTHONPATH": str(tree), "WATTWIRE_AGENT": str(agent),
        },
    )  # fmt: skip
    try:
        yield Timer(process)
    finally:
        process.kill()
        with process:
            pass
