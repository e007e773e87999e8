"""Give the processes of a run their CPUs on each machine (factor `cores`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.hosts.host import Host
from wattwire.model.cores import CORES, FREE, Assignment, CoresGapError, Machine, assign
from wattwire.model.deployment import BRIDGE, MEMBER, NODE, Deployment, service_of
from wattwire.model.treatment import Treatment
from wattwire.rig.own_cpus import staying_off


@dataclass(frozen=True)
class MachineCores:
    """The CPUs of a machine, and those of a run's processes on it. `hosts` are its hosts."""

    machine: Machine
    assignment: Assignment
    hosts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the entry of run.json."""
        return {
            "hosts": list(self.hosts),
            "allowed": sorted(self.machine.allowed),
            "cores": [list(core) for core in self.machine.cores],
            "topology": [vars(cpu) for cpu in self.machine.cpus],
            "asked": {process: list(cpus) for process, cpus in self.assignment.cpus.items()},
            "kept_free": list(self.assignment.kept_free),
            "remarks": list(self.assignment.remarks),
        }


def core_gap(hosts: Mapping[str, Host], deployment: Deployment, treatment: Treatment) -> str | None:
    """Return the reason if a host does not allow the treatment's `cores`; None if all do."""
    own = {name: hosts[name] for name in deployment.hosts if name in hosts}
    try:
        RunCores(own, deployment, treatment)
    except CoresGapError as error:
        return str(error)
    return None


class RunCores:
    """The CPUs of a run's processes, on all machines of its hosts."""

    def __init__(
        self, hosts: Mapping[str, Host], deployment: Deployment, treatment: Treatment
    ) -> None:
        """Assign the CPUs. Raises CoresGapError if a machine does not allow the level."""
        self.level = str(treatment.get(CORES, FREE))
        self._hosts = hosts
        by_boot: dict[str, list[str]] = {}
        for name, host in hosts.items():
            by_boot.setdefault(host.agent.hello["boot_id"], []).append(name)
        self.machines = [self._on_machine(tuple(names), deployment) for names in by_boot.values()]

    def _on_machine(self, hosts: tuple[str, ...], deployment: Deployment) -> MachineCores:
        machine = Machine.of(self._hosts[hosts[0]].agent.cpus)
        here = [process for process in deployment.processes if process.host in hosts]
        roles = {
            node.process: MEMBER if deployment.member_of(node) else node.role
            for node in deployment.nodes
        }
        nodes = {p.name: roles.get(p.name, p.name) for p in here if p.kind == NODE}
        others = {p.name: BRIDGE if p.kind == BRIDGE else p.name for p in here if p.kind != NODE}
        try:
            return MachineCores(machine, assign(self.level, nodes, others, machine), hosts)
        except CoresGapError as error:
            if len(self._hosts) == 1:
                raise
            raise CoresGapError(f"host {hosts[0]}: {error}") from None

    def cpus_of(self, process: str) -> list[int]:
        """Return the CPUs of a process; [] for those of its agent."""
        name = service_of(process)
        return next(
            ([*m.assignment.cpus[name]] for m in self.machines if name in m.assignment.cpus), []
        )

    @contextlib.contextmanager
    def kept_free(self) -> Iterator[None]:
        """Keep the agents and this process off the CPUs that belong to the run alone."""
        kept_free = {
            name: machine.assignment.kept_free
            for machine in self.machines
            for name in machine.hosts
            if machine.assignment.kept_free
        }
        here = {cpu for name, cpus in kept_free.items() if self._hosts[name].here for cpu in cpus}
        with staying_off(here):
            for name, cpus in kept_free.items():
                self._hosts[name].agent.request("stay_off", cpus=cpus)
            try:
                yield
            finally:
                for name in kept_free:
                    if not self._hosts[name].agent.lost.is_set():
                        self._hosts[name].agent.request("stay_off", cpus=[])
