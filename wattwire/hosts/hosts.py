"""Start all hosts of a rig, and the network of a run between them."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wattwire.catalog import Catalog
from wattwire.catalog.rigs import links_of_rig
from wattwire.hosts import kernel_links, namespaces, ssh
from wattwire.hosts.host import Host, in_parallel
from wattwire.hosts.namespaces import Switch
from wattwire.hosts.stacked_devices import stacked_devices
from wattwire.model.deployment import HOST
from wattwire.model.errors import AgentLostError, WattwireError, unknown
from wattwire.model.rig import KERNEL, LOCAL, NETNS, ONE_HOST, SSH, HostSpec, NetworkSpec, Rig
from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.emulator import Emulator, EmulatorError, Port, Tap

LOOPBACK = ("127.0.0.1", "lo")
COUNTERS_FILE = "kernel-link.json"
LAST_LINES = 5
"""Lines of an agent's standard error in the message about a host that did not start."""


@dataclass(frozen=True)
class LiveNetwork:
    """A network during a run."""

    name: str
    addresses: Mapping[str, str]
    interfaces: Mapping[str, str]
    emulator: Emulator | None = None
    switch: Switch | None = None
    stacked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Host → devices that also carry the frames of its interface; existing networks only."""

    def start(self, start_ns: int) -> None:
        """Begin the window, to which changes of a link refer, on this machine's monotonic clock."""
        if self.emulator is not None:
            self.emulator.start(start_ns)

    def ended(self) -> dict[str, str]:
        """Return a sentence by kind of dependency (run.dependencies) for each that has ended."""
        parts = {"emulator": self.emulator, "switch": self.switch}
        return {
            kind: f"the {kind} of the network {self.name} ended"
            for kind, part in parts.items()
            if part is not None and part.has_ended
        }

    def victims(self, pids: Mapping[str, int]) -> dict[str, int | Callable[[], None]]:
        """Return what a crash point may end: the switch, and the device of the last host.

        `pids` are those of the agents by host.
        """
        if self.switch is None or not pids:
            return {}
        name = list(pids)[-1]
        remove = functools.partial(self.switch.remove_device, pids[name], self.interfaces[name])
        return {"switch": self.switch.pid, "device": remove}

    @property
    def emulator_pid(self) -> int | None:
        return None if self.emulator is None else self.emulator.pid

    def emulator_cpu_ns(self) -> int | None:
        """Return the CPU time of the emulator; None without one, or if it has ended."""
        return None if self.emulator is None else self.emulator.cpu_ns()

    @property
    def scheduler(self) -> str:
        """Return the scheduler of the link emulator, such as "SCHED_FIFO"; "" without emulator."""
        return "" if self.emulator is None else self.emulator.scheduler

    @property
    def log(self) -> Path | None:
        """Return the log of all frames, which is complete after the network has ended."""
        return None if self.emulator is None else self.emulator.log

    @property
    def capture(self) -> Path | None:
        """Return the file with the frames from the hosts; None if they are not kept."""
        return None if self.emulator is None else self.emulator.capture


LOOPBACK_NETWORK = LiveNetwork("", {HOST: LOOPBACK[0]}, {HOST: LOOPBACK[1]})
"""The network of a run whose processes are all on this machine."""


def here(agent: AgentClient) -> Host:
    """Return this machine as the host of an agent."""
    return Host(ONE_HOST.hosts[HOST], agent)


class Hosts:
    """All hosts of a rig. They end when this object is closed, or when this process ends."""

    def __init__(self, rig: Rig, state: Path) -> None:
        self.rig = rig
        self.by_name: dict[str, Host] = {}
        self._links = links_of_rig(rig, Catalog())
        self._switch: Switch | None = None
        with contextlib.ExitStack() as started:
            if any(spec.kind == NETNS for spec in rig.hosts.values()):
                self._switch = Switch()
                started.callback(self._switch.close)
                self._switch.require_kinds(self._kernel_kinds())
            far = [spec for spec in rig.hosts.values() if spec.kind == SSH]
            hosts = ssh.connect_all(far, rig.ssh_config, state)
            for host in hosts.values():
                started.callback(host.agent.close)
            for name, spec in rig.hosts.items():
                if spec.kind != SSH:
                    agent = self._start(spec, state if rig == ONE_HOST else state / name)
                    started.callback(agent.close)
                    hosts[name] = Host(spec, agent)
            self.by_name = {name: hosts[name] for name in rig.hosts}
            self._started = started.pop_all()

    @property
    def first(self) -> Host:
        return next(iter(self.by_name.values()))

    @property
    def any_lost(self) -> bool:
        """Return whether an agent or the switch has ended."""
        if self._switch is not None and self._switch.has_ended:
            return True
        return any(host.agent.lost.is_set() for host in self.by_name.values())

    def close(self) -> None:
        """End all agents, with their processes and namespaces."""
        self._started.close()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry_command(self, name: str) -> list[str]:
        """Return a command that executes its arguments on a host of the kind netns."""
        assert self._switch is not None
        host = self.by_name[name]
        return self._switch.entry_command(host.pid, host.spec.clock_offset_s != 0)

    def _start(self, spec: HostSpec, state: Path) -> AgentClient:
        name = spec.name if self.rig.is_from_file else ""
        if spec.kind == LOCAL:
            return AgentClient(state, host=name)
        assert self._switch is not None
        state.mkdir(parents=True, exist_ok=True)
        hosts_file = state / "hosts"
        hosts_file.write_text(f"{LOOPBACK[0]} localhost {spec.name}\n", encoding="utf-8")
        binary = find_agent()
        command = self._switch.host_command(spec, [str(binary), "serve"], hosts_file.absolute())
        try:
            return AgentClient(state, binary, command, name)
        except AgentLostError as error:
            lines = (state / "agent.log").read_text(errors="replace").strip().splitlines()
            reason = "; ".join(lines[-LAST_LINES:]) or "no message"
            raise WattwireError(f"host {spec.name}: it did not start: {reason}") from error

    # -- networks ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def network(
        self, name: str, folder: Path, seed: int, captures: bool = False
    ) -> Iterator[LiveNetwork]:
        """Make a network the only one that is up between the hosts.

        An empty name stands for the loopback interface of a single host. The emulator of a link
        writes its profile and its log to `folder`, with `captures` also the frames, and `seed`
        determines its random numbers. Raises EmulatorError at the end if the emulator has ended
        before.
        """
        if not name:
            address, interface = LOOPBACK
            hosts = self.by_name
            yield LiveNetwork(name, dict.fromkeys(hosts, address), dict.fromkeys(hosts, interface))
            return
        if name not in self.rig.networks:
            raise unknown(self.rig.source, "network", name, self.rig.networks)
        spec = self.rig.networks[name]
        if not spec.subnet:
            yield self._existing(spec)
        elif not spec.is_emulated:
            with self._native(spec) as network:
                yield network
        elif spec.engine == KERNEL:
            with self._native(spec) as network, self._limited(spec, folder):
                yield network
        else:
            with self._emulated(spec, folder, seed, captures) as network:
                yield network

    def _existing(self, spec: NetworkSpec) -> LiveNetwork:
        """Return a network that exists without wattwire, with the addresses that it has now."""
        devices = {host: self.rig.device(spec.name, host) for host in spec.hosts}
        addresses = {}
        replies = in_parallel(Host.interface_addresses, [self.by_name[host] for host in devices])
        for (host, device), known in zip(devices.items(), replies, strict=True):
            if device not in known:
                present = ", ".join(f"{name} ({address})" for name, address in known.items())
                raise WattwireError(
                    f"{self.rig.source}: networks.{spec.name}: host {host} has no interface "
                    f"{device!r} with an IPv4 address; found {present or 'none'}"
                )
            addresses[host] = known[device]
        on_hosts = [self.by_name[host] for host in devices]
        stacks = in_parallel(lambda host: stacked_devices(host, devices[host.name]), on_hosts)
        stacked = dict(zip(devices, stacks, strict=True))
        return LiveNetwork(spec.name, addresses, devices, stacked=stacked)

    def _made(self, spec: NetworkSpec) -> tuple[dict[str, str], dict[str, str], dict[str, int]]:
        """Return address, device and pid of each host of a network between namespaces."""
        return (
            {host: self.rig.address(spec.name, host) for host in spec.hosts},
            {host: self.rig.device(spec.name, host) for host in spec.hosts},
            {host: self.by_name[host].pid for host in spec.hosts},
        )

    @contextlib.contextmanager
    def _native(self, spec: NetworkSpec) -> Iterator[LiveNetwork]:
        addresses, devices, pids = self._made(spec)
        assert self._switch is not None
        device = devices[spec.hosts[0]]
        try:
            bits = prefix_bits(spec)
            interfaces = {pids[host]: f"{addresses[host]}/{bits}" for host in spec.hosts}
            self._switch.join(device, interfaces)
            self._switch.route_multicast(device, pids.values())
            yield LiveNetwork(spec.name, addresses, devices, switch=self._switch)
        finally:
            self._switch.part()

    def _kernel_kinds(self) -> set[str]:
        """Return the queueing disciplines that the networks of the rig need."""
        networks = self.rig.networks.values()
        links = (self._links[spec.link] for spec in networks if spec.engine == KERNEL)
        return set().union(*map(kernel_links.kinds_of, links))

    @contextlib.contextmanager
    def _limited(self, spec: NetworkSpec, folder: Path) -> Iterator[None]:
        """Send the frames of a native network through the link, and write the kernel's counters.

        The queueing disciplines vanish with the devices of the network.
        """
        assert self._switch is not None
        _, devices, pids = self._made(spec)
        device, ordered = devices[spec.hosts[0]], [pids[host] for host in spec.hosts]
        near = [pids[host] for host in spec.near]
        self._switch.limit(self._links[spec.link], device, ordered, near)
        try:
            yield
        finally:
            counters = {
                host: self._switch.counters(device, ordered, pids[host]) for host in spec.near
            }
            text = json.dumps(counters, indent=1)
            (folder / COUNTERS_FILE).write_text(f"{text}\n", encoding="utf-8")
        for host, by_direction in counters.items():
            for direction, kinds in by_direction.items():
                expected = kernel_links.kinds_of_direction(self._links[spec.link], direction)
                if missing := sorted(expected - kinds.keys()):
                    raise WattwireError(
                        f"the link of host {host} ended: {direction} has no {', '.join(missing)}"
                    )

    @contextlib.contextmanager
    def _emulated(
        self, spec: NetworkSpec, folder: Path, seed: int, captures: bool
    ) -> Iterator[LiveNetwork]:
        namespaces.require_tap_devices()
        addresses, devices, pids = self._made(spec)
        assert self._switch is not None
        ports = [
            Port(
                host,
                host in spec.near,
                Tap(pids[host], devices[host], addresses[host], prefix_bits(spec)),
            )
            for host in spec.hosts
        ]
        emulator = Emulator(self._links[spec.link], seed, ports, folder, captures)
        try:
            self._switch.route_multicast(devices[spec.hosts[0]], pids.values())
            yield LiveNetwork(spec.name, addresses, devices, emulator, self._switch)
        except BaseException:
            with contextlib.suppress(EmulatorError):
                emulator.close()
            raise
        emulator.close()


def prefix_bits(spec: NetworkSpec) -> int:
    """Return the length of the prefix of a network's subnet, in bits."""
    return ipaddress.IPv4Network(spec.subnet).prefixlen
