"""Test hosts with ssh servers of their own: their isolation, and that all of them end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.sshd_rig import find_sshd, host_names, rig_text
from wattwire.catalog.manifest import tomllib
from wattwire.hosts import Hosts
from wattwire.hosts.namespaces import programs, user_namespace
from wattwire.model.errors import MissingError
from wattwire.model.rig import read_rig
from wattwire.rig.agent import find_agent

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0


@contextlib.contextmanager
def serving(rig: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the program, when the two hosts of its rig are ready."""
    try:
        find_sshd(), find_agent(), programs()
        if user_namespace():
            raise MissingError("servers in namespaces need root")
    except MissingError as error:
        pytest.skip(str(error))
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.sshd_rig", "2", str(rig), *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def ssh(rig: Path, host: str, command: str) -> list[str]:
    return ["ssh", "-F", str(rig.with_suffix(".ssh") / "ssh_config"), "-o", "BatchMode=yes",
            "-o", "StrictHostKeyChecking=yes", host, command]  # fmt: skip


def output(rig: Path, host: str, command: str) -> str:
    return subprocess.run(
        ssh(rig, host, command), capture_output=True, text=True, check=True
    ).stdout.strip()


def processes_in(network: str) -> set[int]:
    """Return the pids of all processes in a network namespace."""
    pids = set()
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdecimal()):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") == network:
                pids.add(pid)
    return pids


def test_each_host_has_a_name_and_a_network_of_its_own_and_reaches_the_others(
    tmp_path: Path,
) -> None:
    rig = tmp_path / "rig.toml"
    with serving(rig):
        networks = {host: output(rig, host, "readlink /proc/self/ns/net") for host in HOSTS}
        assert len({*networks.values(), os.readlink("/proc/self/ns/net")}) == 3
        assert output(rig, "edge", "uname -n; ls -A /dev/shm") == "edge"
        document = tomllib.loads(rig.read_text())
        document["ssh_config"] = str(tmp_path / document["ssh_config"])
        state = tmp_path / "state"
        with Hosts(read_rig(document, "rig.toml"), state) as hosts:
            (tmp_path / "run").mkdir()
            with hosts.network("native", tmp_path / "run", 1) as network:
                assert dict(network.addresses) == {"robot": "10.88.0.1", "edge": "10.88.0.2"}
            assert (tmp_path / "rig.ssh" / "cache" / "agents").is_dir()
    assert not rig.exists()
    assert [processes_in(network) for network in networks.values()] == [set(), set()]


def test_a_killed_program_leaves_no_process_of_its_hosts(tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    with serving(rig) as process:
        network = output(rig, "robot", "readlink /proc/self/ns/net")
        session = subprocess.Popen(
            ssh(rig, "robot", "setsid sleep 600 & echo begun; exec sleep 600"),
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert session.stdout is not None
            assert session.stdout.readline() == "begun\n"
            assert len(processes_in(network)) >= 3
            process.send_signal(signal.SIGKILL)
            deadline_s = time.monotonic() + PATIENCE_S
            while processes_in(network) and time.monotonic() < deadline_s:
                time.sleep(0.05)
            assert processes_in(network) == set()
        finally:
            session.kill()
            session.communicate()


def test_a_rig_may_contain_the_same_hosts_in_plain_namespaces() -> None:
    document = tomllib.loads(rig_text(host_names(4), "x/ssh_config", ["lte"], with_namespaces=True))
    rig = read_rig(document, "rig.toml")
    assert [*rig.hosts] == [*(names := host_names(4)), *(f"plain-{name}" for name in names)]
    assert {name: spec.hosts[0] for name, spec in rig.networks.items()} == {
        "native": "robot", "veth": "plain-robot", "lte": "robot",
    }  # fmt: skip
    assert rig.hosts["host4"].to == "host4"


HOSTS = host_names(2)
