"""The controller's side of an agent that dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient


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
