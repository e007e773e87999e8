"""Test that quiet tests run one at a time, and that all other tests run after them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import time
from pathlib import Path
import pytest

{mark}
@pytest.mark.parametrize("number", range({count}))
def test_one(number):
    begin_ns = time.monotonic_ns()
    time.sleep(0.1)
    with Path({log!r}).open("a") as log:
        log.write(f"{word} {{begin_ns}} {{time.monotonic_ns()}}\\n")
"""
FILES = {"a": ("other", 8), "b": ("other", 8), "c": ("quiet", 1), "d": ("quiet", 4),
         "e": ("quiet", 4)}  # fmt: skip


def test_quiet_tests_of_three_processes_run_alone_and_before_all_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    quiet: \n    slow: \n")
    for name, (word, count) in FILES.items():
        mark = "@pytest.mark.quiet" if word == "quiet" else ""
        text = TESTS.format(mark=mark, word=word, count=count, log=str(log))
        (tmp_path / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist.plugin", "-n", "3",
         "--dist", "loadfile", "--no-loadscope-reorder", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in log.read_text().splitlines()]
    assert len(rows) == sum(count for _, count in FILES.values())
    spans = sorted((int(begin), int(end), word) for word, begin, end in rows)
    words = [word for _, _, word in spans]
    assert words == sorted(words, key=lambda word: word != "quiet")
    alone = [span for span in spans if span[2] == "quiet"]
    for (_, end_ns, _), (begin_ns, _, _) in zip(alone, spans[1:], strict=False):
        assert end_ns <= begin_ns
