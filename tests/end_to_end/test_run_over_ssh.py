"""Test a campaign on hosts over ssh, each with a network and shared memory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Cli
from wattwire.hosts.namespaces import Switch, programs, user_namespace
from wattwire.hosts.tests.sshd import PRIVILEGE_SEPARATION, Sshd, find_sshd, prepare
from wattwire.model.errors import MissingError
from wattwire.store import Campaign

pytestmark = [pytest.mark.slow]

HOSTS = ("robot", "edge", "cloud")
PLACE = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo ready && exec cat"
CLIENT = """
Host {host}
ProxyCommand {nsenter} --target {pid} --net --mount -- {sshd} -i -f {folder}/sshd_config
HostKeyAlias edge
User root
IdentityFile {folder}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""
RIG = """
ssh_config = "sshd/ssh_config"
[hosts]
robot = {kind = "ssh", to = "robot", interface = "lan"}
edge = {kind = "ssh", to = "edge", interface = "lan"}
cloud = {kind = "ssh", to = "cloud", interface = "lan"}
[networks.lan]
[placements.apart]
sender = "robot"
relay = "cloud"
receiver = "edge"
service = "cloud"
"""
STUDY = (
    "over-a-link", "--preset", "smoke", "--set", 'network=["lan"]', "--set", "plan.primary=cell",
    "--set", 'cell=["udp/python", "tcp/python"]', "--set", "plan.duration_s=2", "--look", "--yes",
    "--no-report", "--json",
)  # fmt: skip


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Sshd]:
    """Yield the keys and files of three namespaces, which ssh enters by a server in each."""
    try:
        sshd, tools = find_sshd(), programs()
        if user_namespace():
            raise MissingError("servers in namespaces need root")
    except MissingError as error:
        pytest.skip(str(error))
    server = prepare(tmp_path / "sshd", port=0, alias="edge")
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as running:
        switch = Switch()
        running.callback(switch.close)
        pids = {host: running.enter_context(place()) for host in HOSTS}
        switch.join("lan", {pid: f"10.88.0.{n}/24" for n, pid in enumerate(pids.values(), 1)})
        server.config.write_text(
            "".join(
                CLIENT.format(
                    host=host, pid=pid, sshd=sshd, nsenter=tools["nsenter"], folder=server.folder
                )
                for host, pid in pids.items()
            )
        )
        (tmp_path / "rig.toml").write_text(RIG)
        yield server


@contextlib.contextmanager
def place() -> Iterator[int]:
    """Yield the pid of a process in a namespace of its own."""
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", PLACE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process.pid
    process.communicate()


def connection_to(host: str, config: Path) -> int:
    """Return the pid of the ssh to a host."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_ssh = os.path.basename(words[0]) == b"ssh"
            if is_ssh and {str(config).encode(), host.encode()} <= {*words}:
                return int(process.name)
    raise AssertionError(f"no ssh to {host}")


def test_a_campaign_runs_over_ssh_and_repeats_a_run_whose_connection_is_cut(
    machines: Sshd, tmp_path: Path
) -> None:
    campaign, cut = tmp_path / "campaign", 0
    rig = ("--rig", str(tmp_path / "rig.toml"), "--campaign", str(campaign))
    running = Cli(tmp_path).start("run", *STUDY, *rig)
    assert running.stdout is not None and running.stderr is not None
    events = []
    for line in running.stdout:
        events.append(json.loads(line))
        windows = [e for e in events if e.get("phase") == "window"]
        if len(windows) == 2 and not cut:
            time.sleep(0.5)
            cut = connection_to("edge", machines.config)
            os.kill(cut, signal.SIGKILL)
    assert running.wait() == 0, running.stderr.read()
    running.stderr.close()
    running.stdout.close()
    lost = [e["text"] for e in events if e["kind"] == "note" and "tries again" in e["text"]]
    assert len(lost) == 1 and "host edge: agent: it ended" in lost[0]
    assert machines.agents() == []
    assert list(machines.attempts.iterdir()) == []
    stored = Campaign(campaign)
    try:
        states = sorted(attempt.state for attempt in stored.journal.attempts())
        rows = stored.rows()
    finally:
        stored.close()
    assert states == ["done", "done", "lost"]
    assert [row["verdict"] for row in rows] == ["valid", "valid"]
    for row in rows:
        assert row["received_unique"] == row["sent"] > 0 and row["cpu_us_per_message.on.robot"] > 0
        assert row["cpu_us_per_message.on.edge"] > 0
