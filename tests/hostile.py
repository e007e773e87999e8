"""Run the kills, mutated studies and hostile nodes of the tests, and print their counts.

`python -m tests.hostile [--kills 6] [--studies 1060] [--seed 1] [--only PART …]` takes an hour or
two on an idle machine with two cores, and needs root for the rigs. Each part is a command that can
run alone. A part for which this machine lacks a program fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KILLS = ("-m", "tests.end_to_end.random_kills")
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-v", "-s", "--tier", "all")
PATTERN = re.compile(
    r"\S+: \d+ kills, \d+ failed|test_\S+: [\d,]+ cases|\d+ modes, \d+ wrong.*"
    r"|=+ (.*(?:passed|failed).*) =+"
)
"""A line of a part's output with counts."""


@dataclass(frozen=True)
class Part:
    """A command of this Python."""

    words: tuple[str, ...]
    is_repeated: bool = True
    """Whether it has the options `--kills` and `--seed`."""


PARTS = {
    "dependencies": Part((*PYTEST, "tests/end_to_end/rigs/test_dependencies.py"), False),
    "broker": Part(KILLS),
    "router": Part((*KILLS, "--service", "router")),
    "pipeline": Part((*KILLS, "--pipeline")),
    "calls": Part(
        (*KILLS, "--cell", "rest/python", "--pattern", "service", "--kind", "client",
         "--kind", "server")
    ),
    "gateway": Part(
        (*KILLS, "--cell", "rosbridge/rospy", "--server-cell", "rosbridge/python",
         "--pattern", "pingpong", "--kind", "bridge", "--kind", "master")
    ),
    "exec": Part((*KILLS, "--exec")),
    "graph": Part(("-m", "middleware.ros2.tests.graph_kills")),
    "rigs": Part(("-m", "tests.end_to_end.rigs.kills")),
    "secured": Part(("-m", "tests.end_to_end.rigs.kills", "--secured")),
    "studies": Part((*PYTEST, "tests/fuzz/test_plans.py"), False),
    "nodes": Part(("-m", "tests.fuzz.hostile_nodes"), False),
}  # fmt: skip


def run(words: tuple[str, ...], studies: int) -> tuple[int, list[str]]:
    """Run a part; return its exit code and the lines of its output that contain counts."""
    environment = {**os.environ, "WATTWIRE_FUZZ_CASES": str(studies), "COLUMNS": "100"}
    counts = []
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if match := PATTERN.fullmatch(line.strip()):
                counts.append(match[1] or match[0])
    return process.returncode, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6, help="kills of each kind of process")
    parser.add_argument("--studies", type=int, default=1060, help="mutated studies")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=PARTS)
    options = parser.parse_args()
    repeats = ("--kills", str(options.kills), "--seed", str(options.seed))
    rows, failed = [], False
    for name in options.only or PARTS:
        part, begin_s = PARTS[name], time.monotonic()
        print(f"== {name}", flush=True)
        words = (*part.words, *repeats) if part.is_repeated else part.words
        code, counts = run(words, options.studies)
        failed |= code != 0
        verdict = "failed" if code else "no fault"
        rows.append(
            f"{name:14}{verdict:10}{time.monotonic() - begin_s:6.0f} s  {'; '.join(counts)}"
        )
    print("== counts", *rows, sep="\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
