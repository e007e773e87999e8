"""Hosts over ssh on this machine: namespaces, each entered by an ssh server of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wattwire.hosts.namespaces import Switch, programs, user_namespace
from wattwire.hosts.tests.sshd import PRIVILEGE_SEPARATION, Sshd, find_sshd, prepare
from wattwire.model.errors import MissingError

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
SUBNET = "10.88.0"


@dataclass
class Machines:
    """The servers, the process that holds each host's namespaces, and the switch between them."""

    server: Sshd
    pids: dict[str, int]
    switch: Switch
    network: str = "lan"

    @property
    def rig(self) -> str:
        """Return the hosts and the network of a rig file."""
        hosts = "\n".join(
            f'{host} = {{kind = "ssh", to = "{host}", interface = "{self.network}"}}'
            for host in self.pids
        )
        return f'ssh_config = "{self.server.config}"\n[hosts]\n{hosts}\n[networks.{self.network}]\n'

    def left(self) -> list[str]:
        """Return what campaigns have left on the hosts: agents, files and shared memory."""
        agents = [f"agent {pid}" for pid in self.server.agents()]
        attempts = self.server.attempts
        files = [str(path) for path in attempts.iterdir()] if attempts.exists() else []
        for host, pid in self.pids.items():
            files += [f"{host}: {name}" for name in os.listdir(f"/proc/{pid}/root/dev/shm")]
        return agents + files


@contextlib.contextmanager
def machines_over_ssh(folder: Path, hosts: Sequence[str]) -> Iterator[Machines]:
    """Yield hosts that ssh reaches. Raises MissingError without a server or without root."""
    sshd, tools = find_sshd(), programs()
    if user_namespace():
        raise MissingError("servers in namespaces need root")
    server = prepare(folder, port=0, alias="edge")
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as running:
        switch = Switch()
        running.callback(switch.close)
        pids = {host: running.enter_context(_place()) for host in hosts}
        addresses = {pid: f"{SUBNET}.{n}/24" for n, pid in enumerate(pids.values(), 1)}
        switch.join("lan", addresses)
        server.config.write_text(
            "".join(
                CLIENT.format(
                    host=host, pid=pid, sshd=sshd, nsenter=tools["nsenter"], folder=server.folder
                )
                for host, pid in pids.items()
            )
        )
        yield Machines(server, pids, switch)


@contextlib.contextmanager
def _place() -> Iterator[int]:
    """Yield the pid of a process in a namespace of its own."""
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", PLACE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield process.pid
    finally:
        process.communicate()
