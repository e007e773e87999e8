"""Value types of a rig: hosts, networks that join them, and placements of processes on hosts."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

LOCAL, NETNS, SSH = "local", "netns", "ssh"
"""Kinds of hosts: this machine, a network namespace of this machine, and a machine over ssh."""
KINDS = (LOCAL, NETNS, SSH)
SHARED = "shared"
"""`management` of a host whose ssh connection passes the measured network."""
KERNEL = "kernel"
"""`engine` of a network whose link queueing disciplines of Linux form."""
NATIVE = "native"
"""`link` of a network that emulates nothing: plain veth devices, or real interfaces."""
ANY_SERVICE = "service"
"""Word of a placement for all service processes that it does not name."""


@dataclass(frozen=True)
class HostSpec:
    """A place for processes, with one agent."""

    name: str
    kind: str = LOCAL
    to: str = ""
    """Destination of ssh, such as user@machine or a name in the user's ssh configuration."""
    interface: str = ""
    """Device of this host in each network that does not name another one."""
    clock_offset_s: float = 0.0
    """Offset of the monotonic clock of a network namespace from the clock of its machine."""
    management: str = ""
    """Value "shared" if ssh passes the measured network, otherwise empty."""


@dataclass(frozen=True)
class NetworkSpec:
    """A network that joins hosts. Only networks between namespaces have a subnet."""

    name: str
    link: str = NATIVE
    hosts: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    """Hosts at the near end of an emulated link (docs/links.md)."""
    subnet: str = ""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """Host → the real device that joins it to this network."""
    engine: str = ""

    @property
    def is_emulated(self) -> bool:
        return self.link != NATIVE


@dataclass(frozen=True)
class PlacementSpec:
    """The host of each process. Keys are roles, service names, or words for several of them."""

    name: str
    hosts: Mapping[str, str] = field(default_factory=dict)

    def host_of_role(self, role: str, position: str) -> str | None:
        """Return the host of a role, by its name or its position in the path; None without."""
        return self.hosts.get(role) or self.hosts.get(position)

    def host_of_service(self, service: str) -> str | None:
        """Return the host of a service process, by its name or ANY_SERVICE; None without."""
        return self.hosts.get(service) or self.hosts.get(ANY_SERVICE)


@dataclass(frozen=True)
class Rig:
    """The hosts of a campaign. `document` is the content of its file, without defaults."""

    hosts: Mapping[str, HostSpec]
    networks: Mapping[str, NetworkSpec] = field(default_factory=dict)
    placements: Mapping[str, PlacementSpec] = field(default_factory=dict)
    ssh_config: str = ""
    """Path of the configuration file of ssh; "" stands for those of the user and the system."""
    meters: Mapping[str, Any] = field(default_factory=dict)
    """Measured host → table or tables of its meters outside the machine, as the file has them."""
    source: str = ""
    """Path of the file, for messages."""
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_from_file(self) -> bool:
        """Return whether a file describes this rig. Only then it has networks and placements."""
        return bool(self.document)

    @property
    def executed(self) -> str:
        """Return a sentence that names the rig's file whose commands ssh executes, or ""."""
        if not self.ssh_config:
            return ""
        return f"ssh reads {self.ssh_config}, and executes its ProxyCommand and Match exec"

    def address(self, network: str, host: str) -> str:
        """Return the address of a host in a network; "" if the host's agent has to be asked."""
        spec = self.networks[network]
        if not spec.subnet:
            return ""
        first = ipaddress.IPv4Network(spec.subnet).network_address
        return str(first + 1 + spec.hosts.index(host))

    def device(self, network: str, host: str) -> str:
        """Return the name of a host's interface in a network."""
        spec = self.networks[network]
        return spec.name if spec.subnet else spec.interfaces[host]

    def network_of(self, hosts: Collection[str]) -> str:
        """Return the first network that joins all these hosts; "" if there is none."""
        joining = (spec.name for spec in self.networks.values() if set(hosts) <= {*spec.hosts})
        return next(joining, "")


ONE_HOST = Rig({LOCAL: HostSpec(LOCAL)})
"""The rig of a campaign without a rig file: all processes run on this machine."""
