"""Record an attempt of a run: what happened on its hosts and in its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.catalog import Bridge
from wattwire.design import PlannedRun
from wattwire.hosts.clocks import Times
from wattwire.hosts.cores import MachineCores
from wattwire.hosts.socket_bytes import SshSent
from wattwire.model.cores import FREE
from wattwire.model.deployment import HOST, Deployment
from wattwire.model.hosts.clocks import ClockRelation, NodeClocks
from wattwire.model.study import Study
from wattwire.model.verdict import Outcome, Reason
from wattwire.rig.host import TICK_NS
from wattwire.run.layers.recorder import LayerRecorder
from wattwire.run.node_specs import RunNode
from wattwire.run.results import syscalls
from wattwire.run.run_processes import ProcessState, RunProcesses
from wattwire.run.services import Service


@dataclass(frozen=True)
class OpenAttempt:
    """An attempt of a planned run, whose files are in `folder` until it is committed."""

    study: Study
    planned: PlannedRun
    number: int
    """Number among the attempts of the run, from 1."""
    token: str
    """Identifier of the attempt's processes and messages."""
    folder: Path


@dataclass(kw_only=True)
class HostRecord:
    """What one host's agent reported. All times are in ns of the host's CLOCK_MONOTONIC."""

    name: str = HOST
    readings: str = "readings.bin"
    """File with the host's readings in the attempt's folder."""
    offset_ns: int = 0
    """The host's CLOCK_MONOTONIC minus that of the controller, at the start of the run."""
    band_ns: int = 0
    """Largest error of `offset_ns`."""
    machine: str = HOST
    """Host that reads the meters of this host's machine; hosts of one boot share a machine."""
    window: dict[str, int] = field(default_factory=dict)
    baselines: dict[str, dict[str, int]] = field(default_factory=dict)
    stop_ns: int = 0
    sampling: dict[str, Any] = field(default_factory=dict)
    clocks: dict[str, Any] = field(default_factory=dict)
    clock_adjustments: dict[str, Any] = field(default_factory=dict)
    """What adjtimex(2) reports at "begin" and "end"."""
    cpu_latency: dict[str, Any] = field(default_factory=dict)
    """Limit of the CPUs' wake-up latency (us) that the agent held, and its path; {} if none."""
    management: dict[str, dict[str, int]] = field(default_factory=dict)
    """Bytes in the window of a connection that passes the measured network: `sent_bytes` and
    `received_bytes` of "protocol" and of "ssh"; {} for other connections."""
    ssh_sent: dict[str, SshSent] = field(default_factory=dict)
    """What the host's ssh server sent to the controller: in the baseline "machine", and in the
    "window", from before GO to the end of the sampling. {} if the host does not count it."""
    cpus: int = 1
    """Number of CPUs of the host."""
    tick_ns: int = TICK_NS
    """Clock tick (ns) of the host, in which it counts steal."""


@dataclass(kw_only=True)
class RunNetwork:
    """The network between the hosts of a run."""

    name: str
    ports: tuple[str, ...]
    """All hosts of the network, in the order of the emulator's ports."""
    devices: Mapping[str, str]
    """Host → its device in the network."""
    isolated: frozenset[str]
    """Hosts whose devices carry only what the run sends: those in namespaces."""
    stacked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Host → devices that also carry the frames of its device, such as the ports of a bridge."""
    log: Path | None = None
    """The emulator's log of all frames; None without an emulator."""
    capture: Path | None = None
    """The frames from the hosts; None if they are not kept."""
    emulator_cpu_ns: int | None = None
    """CPU time of the emulator in the window; None without an emulator."""
    bridge: Bridge | None = None
    """The bridge that joins the hosts; None without a bridge."""


@dataclass(kw_only=True)
class RunRecord(HostRecord):
    """Record of one attempt. Later stages use only this record and the attempt's files.

    As a `HostRecord`, it describes the host of the senders, whose clock times the messages.
    """

    token: str
    deployment: Deployment
    nodes: list[RunNode]
    processes: RunProcesses
    others: list[HostRecord] = field(default_factory=list)
    """Records of the other hosts."""
    clock_relations: dict[str, ClockRelation] = field(default_factory=dict)
    """Host → relation of its clock to the controller's; empty without a rig."""
    clock_exchanges: dict[str, list[Times]] = field(default_factory=dict)
    """Host → exchanges of which this relation is computed."""
    network: RunNetwork | None = None
    """The network that joins the hosts; None for a run on one host."""
    link_scheduler: str = ""
    """Scheduler of the link emulator, such as "SCHED_FIFO"; "" without emulator."""
    receivers_stop_ns: int = 0
    """Time of STOP to the nodes that do not send, on the clock of the senders' host; 0 if none."""
    services: dict[str, Service] = field(default_factory=dict)
    """Process → service that is ready, in the order of their starts."""
    seconds: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = Outcome.COMPLETED
    outcome_detail: str = ""
    reasons: list[Reason] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    tracing: syscalls.Way | None = None
    """How this run counts system calls; None for all other runs."""
    recorder: LayerRecorder | None = None
    """What records the layers of this run; None for all other runs."""
    uninvited: list[dict[str, Any]] | None = None
    """How far each uninvited node of a run that proves security came; None for other runs."""
    cores_level: str = FREE
    cores: list[MachineCores] = field(default_factory=list)
    """The CPUs of each machine, and those that the processes were given."""
    interrupted: bool = False
    """Whether Ctrl-C ended the window. The attempt is kept, and the campaign stops after it."""

    @property
    def hosts(self) -> Mapping[str, HostRecord]:
        """Return the records of all hosts by name, that of the senders' host first."""
        return {self.name: self, **{other.name: other for other in self.others}}

    def host_of(self, process: str) -> HostRecord:
        """Return the record of the host on which a process runs."""
        return self.hosts[self.deployment.host_of_process(process)]

    def clocks_of_nodes(self) -> NodeClocks | None:
        """Return the clocks of the nodes, or None without a rig."""
        if not self.clock_relations:
            return None
        return NodeClocks.of(self.clock_relations, self.deployment)

    @property
    def node_processes(self) -> list[str]:
        """Return the processes of the nodes, each once."""
        return list(dict.fromkeys(node.process for node in self.nodes))

    @property
    def sending_processes(self) -> list[str]:
        """Return the processes with a node that sends, each once."""
        return list(dict.fromkeys(node.process for node in self.nodes if node.sends))

    def state_of(self, node: RunNode) -> ProcessState | None:
        """Return the state of a node: that of its process, or its part of a member's."""
        state = self.processes.states.get(node.process)
        is_part = state is not None and self.deployment.member_of(node)
        return state.of_part(node.node) if state is not None and is_part else state

    def on_host(self, name: str) -> tuple[list[str], list[str]]:
        """Return the processes of the nodes and of the services on a host."""
        place = self.deployment.host_of_process
        nodes = [process for process in self.node_processes if place(process) == name]
        return nodes, [service for service in self.services if place(service) == name]
