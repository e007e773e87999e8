"""Test how the controller handles an agent that dies."""

from __future__ import annotations

import hashlib
import os
import queue
import signal
import socket
import struct
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, find_agent
from wattwire.rig.agent import AgentError
from wattwire.rig.programs import warn_if_older

HANG_S = 60.0


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


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    try:
        client = AgentClient(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    yield client
    client.close()


def test_an_agent_ends_with_its_node_when_the_controller_is_silent(agent):
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    agent.subscribe("node", events)
    reply = agent.request("spawn", process="node", run="silent", argv=["sleep", "1000"])
    agent.request("heartbeat", patience_s=0.5)
    assert agent.lost.wait(HANG_S), "the pipe stays open, and nothing is written"
    while any(Path(f"/proc/{reply[key]}").exists() for key in ("pid", "guard_pid")):
        time.sleep(0.01)


def test_requests_within_the_patience_keep_an_agent_alive(agent):
    agent.request("heartbeat", patience_s=3.0)
    for _ in range(40):
        agent.request("clock", count=1)
        time.sleep(0.1)
    assert not agent.lost.is_set()


def test_another_protocol_is_refused_with_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr("wattwire.rig.agent.PROTOCOL", 1)
    try:
        with pytest.raises(AgentError, match=r"has 1, this agent has 2; .*make agent") as refusal:
            AgentClient(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    assert refusal.value.kind == "protocol"


def test_a_refused_agent_has_ended(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen

    def start(*arguments, **keywords):
        started.append(popen(*arguments, **keywords))
        return started[-1]

    monkeypatch.setattr("wattwire.rig.agent.PROTOCOL", 1)
    monkeypatch.setattr("wattwire.rig.agent_pipe.subprocess.Popen", start)
    with pytest.raises((AgentError, MissingError)):
        AgentClient(tmp_path)
    assert all(process.returncode is not None for process in started)


def test_clock_datagrams_have_the_documented_layout(agent):
    port = agent.request("clock_listen", address="127.0.0.1", exchanges=5, seconds=60)["port"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(HANG_S)
        client.connect(("127.0.0.1", port))
        begin_ns = time.monotonic_ns()
        client.send(struct.pack("<8sQ16x", b"WWCLOCK1", 7))
        magic, number, received_ns, sent_ns = struct.unpack("<8sQqq", client.recv(64))
        end_ns = time.monotonic_ns()
    assert (magic, number) == (b"WWCLOCK1", 7)
    assert begin_ns <= received_ns <= sent_ns <= end_ns
    reply = agent.request("clock_close")
    assert (reply["closed"], reply["exchanges"]) == (True, 1)


def test_files_are_sent_and_collected_through_the_agent(agent, tmp_path):
    content = bytes(range(256)) * 1000
    path = tmp_path / "specs" / "node-0.json"
    agent.request("folder", path=str(path.parent))
    agent.request("write_file", path=str(path), base64=b64encode(content).decode(), mode=0o600)
    assert path.read_bytes() == content and path.stat().st_mode & 0o777 == 0o600
    (listed,) = agent.request("list", path=str(path.parent))["files"]
    digest = hashlib.sha256(content).hexdigest()
    assert listed == {"path": "node-0.json", "size": len(content), "sha256": digest}


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
