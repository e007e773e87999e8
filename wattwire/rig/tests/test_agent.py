"""Test how the controller handles an agent that dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, find_agent
from wattwire.rig.programs import warn_if_older


def test_a_killed_agent_leaves_no_cgroup(tmp_path):
    try:
        agent = AgentClient(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    path = agent.hello["cgroup"]["path"]
    os.kill(agent.pid, signal.SIGKILL)
    agent.close()
    if path is None:
        pytest.skip("no right to make cgroups here")
    assert not Path(path).exists()


def test_an_agent_behind_another_program_has_its_own_pid_and_ends_with_its_input(tmp_path):
    try:
        agent = AgentClient(
            tmp_path, command=["sh", "-c", '"$0" serve; exit $?', str(find_agent())]
        )
    except MissingError as error:
        pytest.skip(str(error))
    assert Path(f"/proc/{agent.pid}/exe").readlink() == find_agent().resolve()
    agent.close()
    assert not Path(f"/proc/{agent.pid}").exists()


def test_an_agent_older_than_its_source_is_named(tmp_path, monkeypatch, capsys):
    source = tmp_path / "agent" / "src" / "main.rs"
    built = tmp_path / "target" / "release" / "wattwire-agent"
    for path in (source, built):
        path.parent.mkdir(parents=True)
        path.write_text("")
    built.chmod(0o755)
    monkeypatch.delenv("WATTWIRE_AGENT", raising=False)
    monkeypatch.setattr("wattwire.rig.programs.home", lambda: tmp_path)
    for built_at, told in ((200, ""), (50, f"{built} is older than agent/src: run `make agent`")):
        warn_if_older.cache_clear()
        os.utime(source, (100, 100))
        os.utime(built, (built_at, built_at))
        assert find_agent() == built
        assert told in (err := capsys.readouterr().err) and bool(told) == bool(err)
