"""Keep connections to hosts silent in the window if they pass the measured network.

Their bytes are counted: those of the agent protocol at the pipe of ssh, and those of ssh itself at
its socket, if this machine has `ss` and ssh has a socket of its own (no jump host).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from wattwire.hosts.host import Host
from wattwire.hosts.socket_bytes import socket_traffic
from wattwire.model.rig import SHARED
from wattwire.rig.agent import Traffic
from wattwire.run.record import HostRecord


class SharedConnections:
    """The hosts of a run whose connection passes the measured network."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self._hosts = {name: h for name, h in hosts.items() if h.spec.management == SHARED}
        self._begin: dict[str, tuple[Traffic, Traffic | None]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._hosts

    @contextlib.contextmanager
    def silent(self, seconds: float) -> Iterator[None]:
        """Send no heartbeats to these hosts for up to `seconds`."""
        with contextlib.ExitStack() as silences:
            for host in self._hosts.values():
                silences.enter_context(host.agent.silence(seconds))
            yield

    def mark_later(self, name: str, at_ns: int) -> None:
        """Request a mark at a time of the controller's clock, before the window."""
        replies = [
            (host.agent, host.agent.submit("mark", name=name, at_ns=at_ns + host.offset_ns))
            for host in self._hosts.values()
        ]
        for agent, future in replies:
            agent.reply("mark", future)

    def begin(self) -> None:
        """Begin to count."""
        self._begin = {name: _traffic(host) for name, host in self._hosts.items()}

    def end(self, records: Mapping[str, HostRecord]) -> None:
        """Store the bytes since `begin` in the records of the hosts."""
        for name, (pipe_before, ssh_before) in self._begin.items():
            pipe, ssh = _traffic(self._hosts[name])
            counted = {"protocol": asdict(pipe.since(pipe_before))}
            if ssh is not None and ssh_before is not None:
                counted["ssh"] = asdict(ssh.since(ssh_before))
            records[name].management = counted


def _traffic(host: Host) -> tuple[Traffic, Traffic | None]:
    return host.agent.traffic(), socket_traffic(host.agent.command_pid)
