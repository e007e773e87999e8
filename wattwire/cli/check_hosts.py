"""Start the hosts on which `wattwire check` runs nodes: this one, or those of a rig."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wattwire.catalog import Cell
from wattwire.catalog.rigs import load_rig
from wattwire.hosts.host import Host
from wattwire.hosts.hosts import LOOPBACK, Hosts
from wattwire.model.errors import UsageError
from wattwire.model.rig import NETNS, Rig
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.placing import NETWORK


@dataclass(frozen=True)
class Entry:
    """How processes of this machine get to a host, and where they are then.

    `command` executes its arguments on the host; () for this process's own host. `clock_ahead_ns`
    is the host's CLOCK_MONOTONIC minus this process's.
    """

    name: str
    command: Sequence[str]
    clock_ahead_ns: int
    address: str
    interface: str


@dataclass(frozen=True)
class CheckHosts:
    """The host of service processes, and the entries to the hosts of nodes, which take turns."""

    service_host: Host
    service_address: str = LOOPBACK[0]
    entries: Sequence[Entry] = ()
    """Empty if all nodes run on the host of this process."""

    def gap(self, cell: Cell) -> str:
        """Return why the nodes of a cell cannot run on these hosts, or ""."""
        if not self.entries:
            return ""
        if cell.middleware.reach != NETWORK:
            return f"{cell.middleware.name} works only within one host"
        if NETWORK not in cell.document["capabilities"]:
            return f"its nodes run on one host only (node.toml declares no capability {NETWORK})"
        return ""


@contextlib.contextmanager
def rig_hosts(path: Path, state: Path) -> Iterator[CheckHosts]:
    """Start the hosts of a rig and the first network that joins all of them.

    The suite starts nodes as processes of this machine, so all hosts have to be of the kind netns.
    Raises UsageError for other rigs.
    """
    rig = load_rig(path)
    network = _network(rig)
    with Hosts(rig, state) as hosts, hosts.network(network, state, seed=0) as live:
        entries = [
            Entry(
                name,
                hosts.entry_command(name),
                round(spec.clock_offset_s * SECOND_NS),
                live.addresses[name],
                live.interfaces[name],
            )
            for name, spec in rig.hosts.items()
        ]
        yield CheckHosts(hosts.first, entries[0].address, entries)


def _network(rig: Rig) -> str:
    """Return the first network that joins all hosts."""
    others = [f"{name} ({spec.kind})" for name, spec in rig.hosts.items() if spec.kind != NETNS]
    if others:
        raise UsageError(
            f"{rig.source}: check runs nodes on hosts of kind netns; found {', '.join(others)}. "
            "Use a rig with hosts of kind netns, or run `wattwire check` on the other hosts."
        )
    if len(rig.hosts) < 2:
        raise UsageError(f"{rig.source}: found 1 host; check needs 2 or more. Add a host.")
    joined = [name for name, spec in rig.networks.items() if set(spec.hosts) == set(rig.hosts)]
    if not joined:
        raise UsageError(
            f"{rig.source}: no network joins all hosts ({', '.join(rig.hosts)}). Add one, such as "
            "[networks.native]."
        )
    return joined[0]
