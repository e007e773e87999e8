"""Test that a crash point kills the process that the variable names, once and at no other point."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from wattwire.run import crash
from wattwire.run.crash import VARIABLE, crash_point

AFTER_SLEEP = 7


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that starts the program `sleep`, and ends with AFTER_SLEEP after it."""
    monkeypatch.setattr(crash, "_spent", set())
    with subprocess.Popen(["sh", "-c", f"sleep 600; exit {AFTER_SLEEP}"]) as process:
        try:
            yield process
        finally:
            for pid in crash.descendants(process.pid):
                subprocess.run(["kill", str(pid)], check=False)
            process.kill()


def test_a_program_of_a_node_is_killed_instead_of_the_node(node, monkeypatch):
    monkeypatch.setenv(VARIABLE, "server/sleep@window")
    crash_point("ready", {"server": node.pid})
    assert node.poll() is None
    crash_point("window", {"server": node.pid})
    assert node.wait() == AFTER_SLEEP


def test_a_program_that_a_node_does_not_start_is_no_victim(node, monkeypatch):
    monkeypatch.setenv(VARIABLE, "server/another-program@window")
    monkeypatch.setattr(crash, "PROGRAM_PATIENCE_S", 0.05)
    crash_point("window", {"server": node.pid})
    assert node.poll() is None
