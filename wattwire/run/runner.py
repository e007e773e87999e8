"""Execute a run, from the start of its first process to the end of its last process."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from wattwire.catalog import Bridge
from wattwire.catalog.services import setting_words
from wattwire.design import UNSAMPLED
from wattwire.hosts.cores import RunCores
from wattwire.hosts.host import Host, in_parallel
from wattwire.hosts.hosts import LOOPBACK_NETWORK, LiveNetwork
from wattwire.hosts.reassembly import await_empty_queues
from wattwire.hosts.socket_bytes import SshSent, sent_by_ssh, since
from wattwire.model.deployment import Deployment, service_of
from wattwire.model.hosts.clocks import ClockRelation
from wattwire.model.outside_meters import OutsideMeter
from wattwire.model.rig import NETNS
from wattwire.model.setting_purposes import TLS
from wattwire.model.study import PROFILED, PROOF, TRACED
from wattwire.model.treatment import Level
from wattwire.model.verdict import Outcome, Reason, Verdict
from wattwire.model.warm_up import SETTLING, SETTLING_S
from wattwire.model.words import plural
from wattwire.rig import CellBuild
from wattwire.rig.agent import AgentError
from wattwire.run import failed_start
from wattwire.run.crash import crash_point
from wattwire.run.credentials import AUTHORITY, Authority, Subject, credential_words, place
from wattwire.run.dependencies import BEFORE_GO, DRAIN, WINDOW, fails, require
from wattwire.run.failed_attempt import HARNESS_CODE
from wattwire.run.layers.recorder import LayerRecorder
from wattwire.run.lines import printable
from wattwire.run.node_specs import (
    SECOND_NS,
    PlacedTreatment,
    RunNode,
    check_spec,
    outer_services,
    process_spec,
    run_nodes,
)
from wattwire.run.progress import Progress
from wattwire.run.proof.uninvited import OPEN, STRANGER, UninvitedNodes, uninvited_copies
from wattwire.run.record import HostRecord, OpenAttempt, RunNetwork, RunRecord
from wattwire.run.results import syscalls
from wattwire.run.results.outside_meters import absent_meters, silent_meters
from wattwire.run.results.resources import SENT_BYTES
from wattwire.run.run_processes import (
    BrokenContractError,
    NodeEndedError,
    RunProcesses,
    discard_on,
)
from wattwire.run.services import (
    AFTER,
    BEFORE,
    CounterReader,
    endpoint_words,
    start_service,
    uses_counters,
)
from wattwire.run.shared_connections import SharedConnections

GO_LEAD_NS = 50_000_000
GO_LEAD_PER_NODE_NS = 5_000_000
GO_LEAD_ROUND_TRIPS = 4
"""Round trips to the farthest agent that are added to the lead of GO."""
FULL_DISK_BYTES = 64 << 10
"""With less free space, a failed attempt is attributed to the disk."""
EXIT_PATIENCE_S = 5.0
REASON_PATIENCE_S = 5.0
CAUSE_PATIENCE_S = 1.0
SKIPPED_SHARE_MAX = 0.02
"""Number of slots that a native timer may skip. With more, the run is saturated."""
REFUSED = 2
CLOSED_WINDOW_MAX_S = 600.0


def busyness() -> float:
    """Return the factor by which nodes read GO later on a busy machine: its load per core, or 1.

    A node may have to wait while each other process of its core uses its slice.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What an attempt starts, and the hosts, the network and the builds that it uses for this."""

    deployment: Deployment
    hosts: Mapping[str, Host]
    """Connected hosts by name; the deployment may need only some of them."""
    network: LiveNetwork = LOOPBACK_NETWORK
    builds: Mapping[str, CellBuild] = field(default_factory=dict)
    """`Cell.known_as` → the build of that cell, on every host."""
    services: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Service → its table, in the order of the starts."""
    settings: Mapping[str, Level] = field(default_factory=dict)
    """All settings of the nodes' middleware."""
    nodes: list[RunNode] = field(default_factory=list)
    addresses: Mapping[str, Mapping[str, OutsideMeter]] = field(default_factory=dict)
    """Host → name → meter outside its machine, with its address."""

    @staticmethod
    def of_nodes(
        attempt: OpenAttempt,
        placed: PlacedTreatment,
        hosts: Mapping[str, Host],
        builds: Mapping[str, CellBuild],
        network: LiveNetwork = LOOPBACK_NETWORK,
    ) -> RunSetup:
        """Return the setup of a treatment's services and nodes."""
        return RunSetup(
            deployment=placed.deployment,
            hosts=hosts,
            network=network,
            builds=builds,
            services=placed.services,
            settings=placed.settings(placed.treatment),
            nodes=run_nodes(
                placed,
                attempt.study.plan,
                attempt.token,
                attempt.planned.control,
                network.addresses,
                network.interfaces,
            ),
        )


class OneRun:
    """Execution of an attempt. All processes of the attempt end with it."""

    def __init__(self, attempt: OpenAttempt, setup: RunSetup, progress: Progress) -> None:
        study, planned, deployment = attempt.study, attempt.planned, setup.deployment
        network = setup.network
        self._hosts = {name: setup.hosts[name] for name in deployment.hosts}
        if deployment.is_on_rig:
            for host in self._hosts.values():
                host.relate_clock()
        self._network = network
        self._shared = SharedConnections(self._hosts)
        self._clock_exchanges = contextlib.ExitStack()
        self._study = study
        self._plan = study.plan
        self._treatment = planned.treatment
        self._marks_only = planned.control == UNSAMPLED
        self._settling = planned.control == SETTLING
        self._services, self._settings = setup.services, setup.settings
        self._addresses = setup.addresses
        self._counter_readers: list[CounterReader] = []
        self._builds = setup.builds
        self._point = BEFORE_GO
        self._ssh_before: dict[str, SshSent] = {}
        self._credentials: dict[str, dict[str, str]] = {}
        """Process or service → spec key → path; {} for a run without TLS and security."""
        self._folder = attempt.folder
        self._progress = progress
        self._phase_began = time.monotonic()
        self._cores = RunCores(self._hosts, deployment, planned.treatment)
        first = deployment.senders_host
        self._agent = self._hosts[first].agent
        self.record = RunRecord(
            **vars(self._host_record(first, "readings.bin")),
            others=[
                self._host_record(name, f"readings-{name}.bin")
                for name in self._hosts
                if name != first
            ],
            token=attempt.token,
            deployment=deployment,
            nodes=setup.nodes,
            processes=RunProcesses(
                self._hosts, deployment, attempt.token, attempt.folder, self._cores
            ),
            cores_level=self._cores.level,
            cores=self._cores.machines,
            clock_relations={name: h.relation for name, h in self._hosts.items() if h.relation},
            link_scheduler=network.scheduler,
            network=self._run_network(setup.nodes),
        )
        if planned.control == TRACED:
            self.record.tracing = syscalls.choose(self._agent.hello)
        if planned.control == PROFILED:
            self.record.recorder = LayerRecorder(attempt.folder)
        self._uninvited: UninvitedNodes | None = None
        if planned.control == PROOF:
            copies = uninvited_copies(setup.nodes, deployment, self._is_secured)
            self._uninvited = UninvitedNodes(
                copies, self._hosts, deployment, attempt.token, attempt.folder
            )

    def _host_record(self, name: str, readings: str) -> HostRecord:
        """Return the empty record of a host. The first of a boot reads the machine's meters."""
        host, boot = self._hosts[name], self._hosts[name].agent.hello["boot_id"]
        same_boot = [n for n, h in self._hosts.items() if h.agent.hello["boot_id"] == boot]
        return HostRecord(
            name=name,
            readings=readings,
            offset_ns=host.offset_ns,
            band_ns=host.band_ns,
            machine=same_boot[0],
        )

    def _run_network(self, nodes: list[RunNode]) -> RunNetwork | None:
        network = self._network
        if len(self._hosts) < 2:
            return None
        return RunNetwork(
            name=network.name,
            ports=tuple(network.addresses),
            devices=network.interfaces,
            isolated=frozenset(n for n, h in self._hosts.items() if h.spec.kind == NETNS),
            stacked=network.stacked,
            log=network.log,
            capture=network.capture,
            bridge=next((n.program for n in nodes if isinstance(n.program, Bridge)), None),
        )

    def execute(self) -> RunRecord:
        """Run all phases.

        A node's failure is an outcome; the loss of an agent or a guard is an error.
        """
        with self._limited_cpu_latency(), self._cores.kept_free(), self._clock_exchanges:
            return self._execute()

    @contextlib.contextmanager
    def _limited_cpu_latency(self) -> Iterator[None]:
        """Hold the treatment's limit from before the baselines until the end of the run.

        Baselines and window then have the same idle states.
        """
        limit_us = self._treatment.get("cpu_latency_us")
        if limit_us is None:
            yield
            return
        for name, reply in self._request_all("hold_cpu_latency", us=limit_us).items():
            limit = {key: reply[key] for key in ("us", "path")}
            self.record.hosts[name].cpu_latency = limit
        try:
            yield
        finally:
            for host in self._hosts.values():
                if not host.agent.lost.is_set():  # otherwise, the kernel has ended the limit
                    host.agent.request("release_cpu_latency")

    def _request_all(
        self, operation: str, hosts: Collection[str] | None = None, **arguments: Any
    ) -> dict[str, dict[str, Any]]:
        """Send a request to the agents of some or all hosts at once; return replies by host."""
        names = self._hosts if hosts is None else hosts
        futures = {name: self._hosts[name].agent.submit(operation, **arguments) for name in names}
        return {
            name: self._hosts[name].agent.reply(operation, future)
            for name, future in futures.items()
        }

    @property
    def _any_agent_lost(self) -> bool:
        return any(host.agent.lost.is_set() for host in self._hosts.values())

    def _execute(self) -> RunRecord:
        record = self.record
        self._oom_kills_before = self._oom_kills() if self._services or self._bridge else 0
        self._await_empty_queues()
        lost = self._start_sampling()
        try:
            require(self._point, lost)
            self._start()
            self._point = WINDOW
            self._window()
            self._require_dependencies()
            self._point = DRAIN
            crash_point("drain", self._victims())
            self._drain()
            self._require_dependencies()
            self._read_counters(AFTER)
        except NodeEndedError as ended:
            self._require_dependencies()  # the node may have ended because of one of them
            record.outcome = Outcome.TIMED_OUT if ended.timed_out else Outcome.DIED
            problem = ended.problem
            if isinstance(ended, BrokenContractError):  # the error contains the reason
                problem = "broke the contract"
            record.outcome_detail = f"{record.deployment.label(ended.process)} {problem}"
            if self._point == BEFORE_GO and not ended.timed_out:
                record.reasons += failed_start.reasons(record.processes, ended.process, problem)
            # A dead service may be the cause, and its exit may be reported after that of the node.
            record.processes.wait_exit(record.services, time.monotonic() + CAUSE_PATIENCE_S)
        else:
            self._judge_exits()
        finally:
            self._note_dead_services()
            self._note_interference()
            self._note_refusals()
            self._enter("ending")
            if not self._any_agent_lost:
                self._end()
            self._note_breaches()
        return record

    # -- phases ------------------------------------------------------------------------------

    def _await_empty_queues(self) -> None:
        """Wait for the reassembly queues, so that losses of the previous run do not continue."""
        if len(self._hosts) > 1:
            self._enter("reassembly")
            await_empty_queues(self._hosts.values())

    def _start(self) -> None:
        """Take the baselines, and start the services and the nodes between them."""
        self._baseline("machine", self._plan.baseline_s)
        endpoints = self._start_services()
        self._start_nodes(endpoints)
        crash_point("ready", self._victims())
        self._wait_ready()
        self._read_counters(BEFORE)
        self._baseline("silent", self._plan.baseline_s)
        self._start_uninvited(endpoints)
        self._require_dependencies()

    def _require_dependencies(self) -> None:
        """Raise DependencyLostError if something has ended that the run cannot do without."""
        lost = dict(self._network.ended())
        if self.record.network:
            for name, device in self._network.interfaces.items():
                host, address = self._hosts.get(name), self._network.addresses[name]
                if host is not None and not host.has_address(device, address):
                    lost["device"] = f"the device {device} of host {name} is gone, or down"
        for name, host in self._hosts.items():
            folder = host.folder_of(self._folder, self.record.token)
            if not host.here and host.free_disk_bytes(folder) < FULL_DISK_BYTES:
                lost["disk"] = f"the disk of host {name} is full"
        require(self._point, lost)

    def _oom_kills(self) -> int:
        """Return how often the kernels of the hosts have ended a process without free memory."""
        texts = {Path("/proc/vmstat").read_text(encoding="ascii")}
        for host in self._hosts.values():
            if not host.here:
                with contextlib.suppress(AgentError):
                    texts.add(host.command(["cat", "/proc/vmstat"], REASON_PATIENCE_S)[1])
        counts = [re.search(r"^oom_kill (\d+)$", text, re.MULTILINE) for text in texts]
        return sum(int(count[1]) for count in counts if count)

    def _enter(self, phase: str) -> None:
        now_s = time.monotonic()
        seconds_by_phase = self.record.seconds
        if seconds_by_phase:
            last_phase = list(seconds_by_phase)[-1]
            seconds_by_phase[last_phase] = round(now_s - self._phase_began, 4)
        seconds_by_phase[phase] = 0.0
        self._phase_began = now_s
        self._progress.event("phase", phase=phase)

    def _start_sampling(self) -> dict[str, str]:
        """Start the sampling on all hosts. Return the meters outside that could not be opened."""
        self._enter("baseline")
        records = self.record.hosts
        for name, load in self._request_all("load").items():
            records[name].cpus = int(load["cpus"])
            records[name].tick_ns = int(load["tick_ns"])
        for name, reply in self._request_all("clock", count=3).items():
            records[name].clocks["begin"] = reply["triples"]
            records[name].clock_adjustments["begin"] = reply["adjustment"]
        for host in self._hosts.values():
            if host.comparison is not None and host.name not in self._shared:
                self._clock_exchanges.enter_context(host.comparison.continued())
        waits: list[Callable[[], object]] = []
        replies: dict[str, Callable[[], dict[str, Any]]] = {}
        for name, host in self._hosts.items():
            folder = host.folder_of(self._folder, self.record.token)
            folder_made = host.submit_folder(folder)
            started = host.agent.submit(
                "sample_start",
                path=str(folder / records[name].readings),
                tick_hz=self._study.meters.tick_hz,
                meters=self._meters(host),
                subjects={},
                marks_only=self._marks_only,
                # Hosts of one boot share a machine, whose meters only one of them reads.
                machine_wide=records[name].machine == name,
                addresses={m.name: m.at for m in self._addresses.get(name, {}).values()},
            )
            waits.append(folder_made)
            replies[name] = functools.partial(host.agent.reply, "sample_start", started)
        for wait in waits:
            wait()
        absent = [
            sentence
            for name, sampling_began in replies.items()
            for sentence in absent_meters(sampling_began(), self._addresses.get(name, {}))
        ]
        return {"meter": "; ".join(absent)} if absent else {}

    def _meters(self, host: Host) -> list[str]:
        """Return the names of the meters to read on a host."""
        known = host.agent.hello["meters"]
        chosen = self._study.meters.use or tuple(m["name"] for m in known if m.get("default", True))
        tracing, bridge = self.record.tracing, self._bridge
        names = [*chosen, *((tracing.meter,) if tracing and tracing.meter else ())]
        # The verdict needs these, whatever the study reads.
        needed = {SENT_BYTES} if self.record.network else set()
        if bridge and bridge.inner_frames:
            needed.add(bridge.inner_frames)
        names += [
            meter["name"]
            for meter in known
            if any(quantity["name"] in needed for quantity in meter["quantities"])
        ]
        return list(dict.fromkeys([*names, *self._addresses.get(host.name, {})]))

    def _sent_by_ssh(self) -> dict[str, SshSent]:
        """Return what ssh has sent from hosts of a network, whose devices are judged."""
        return sent_by_ssh(self._hosts.values()) if self.record.network else {}

    def _note_ssh(self, phase: str) -> None:
        """Record what ssh has sent since the begin of a phase."""
        if self._ssh_before:
            for host, sent in since(self._sent_by_ssh(), self._ssh_before).items():
                self.record.hosts[host].ssh_sent[phase] = sent
        self._ssh_before = {}

    def _mark(self, name: str, in_window: bool = False) -> dict[str, int]:
        """Mark a time on all hosts; return the times on their clocks.

        In the window, hosts of shared connections mark it without a request.
        """
        hosts = [host for host in self._hosts if not (in_window and host in self._shared)]
        replies = self._request_all("mark", hosts, name=name)
        return {host: int(reply["t_ns"]) for host, reply in replies.items()}

    def _baseline(self, name: str, seconds: float) -> None:
        """Wait for a baseline: the machine's before services start, or the silent one before GO."""
        self._enter(f"{name} baseline")
        self._ssh_before = self._sent_by_ssh() if name == "machine" else {}
        begins_ns = self._mark(f"{name}_begin")
        try:
            time.sleep(seconds)
        finally:
            ends_ns = self._mark(f"{name}_end")
            self._note_ssh(name)
            for host, record in self.record.hosts.items():
                record.baselines[name] = {"begin_ns": begins_ns[host], "end_ns": ends_ns[host]}

    def _start_services(self) -> dict[bool, list[str]]:
        """Start the services; return the endpoints of nodes (False) and of bridges (True)."""
        self._enter("services")
        processes = self.record.processes
        self._credentials = self._place_credentials()
        for name, table in self._services.items():
            host = processes.host_of(name).name
            service = start_service(
                processes,
                name,
                table,
                self._network.addresses[host],
                self.record.token,
                self._plan.ready_timeout_s,
                self._service_words(name),
            )
            self.record.services[service.process] = service
        endpoints: dict[bool, list[str]] = {False: [], True: []}
        for process, service in self.record.services.items():
            endpoints[service_of(process) in self._outer_services] += service.endpoints
        return endpoints

    @property
    def _bridge(self) -> Bridge | None:
        """Return the bridge of the run, or None."""
        return self.record.network.bridge if self.record.network else None

    @property
    def _outer_services(self) -> Collection[str]:
        """Return the services to which the bridge processes connect."""
        return () if self._bridge is None else outer_services(self._bridge)

    def _service_words(self, service: str) -> dict[str, str]:
        """Return the placeholders of a service.

        They are those of its middleware's build, of the settings and of earlier services.
        """
        bridge = self._bridge
        cell, settings = self.record.nodes[0].program, self._settings
        if bridge is not None and service in self._outer_services:
            cell, settings = bridge, bridge.outer_settings
        words = {**self._builds[cell.known_as].words, **setting_words(settings)}
        words |= credential_words(self._credentials.get(service, {}))
        return {**words, **endpoint_words(self.record.services.values())}

    def _read_counters(self, reading: str) -> None:
        """Read the counters that the study uses, outside the window and the baselines."""
        if not uses_counters(self._study.document):
            return
        if reading == BEFORE:
            services = self.record.services.values()
            counting = [service for service in services if service.counters]
            self._counter_readers = [
                CounterReader(self.record.processes, each) for each in counting
            ]
        if self._counter_readers:
            self._enter(f"counters {reading}")
        for reader in self._counter_readers:
            reader.read(reading)

    def _start_nodes(self, service_endpoints: Mapping[bool, list[str]]) -> None:
        """Start the nodes. A node starts when all nodes to which it connects listen.

        The nodes of a chain start one after the other, so each has its own deadline.
        """
        self._enter("starting")
        processes = self.record.processes
        endpoints = self._listening = dict[int, list[str]]()
        waiting = list(self.record.nodes)
        while waiting:
            startable = [node for node in waiting if node.connects_to <= endpoints.keys()]
            waiting = [node for node in waiting if not node.connects_to <= endpoints.keys()]
            for process in dict.fromkeys(node.process for node in startable):
                nodes = [node for node in startable if node.process == process]
                connected = sorted({other for node in nodes for other in node.connects_to})
                others = [endpoint for other in connected for endpoint in endpoints[other]]
                own = service_endpoints[isinstance(nodes[0].program, Bridge)]
                self._spawn(nodes, [*own, *others])
            listeners = [node for node in startable if node.listens]
            deadline_s = time.monotonic() + self._plan.ready_timeout_s
            processes.wait_for("LISTENING", [n.process for n in listeners], deadline_s)
            for node in listeners:
                line = processes.states[node.process].lines["LISTENING"]
                endpoints[node.node] = line["endpoints"]

    def _place_credentials(self) -> dict[str, dict[str, str]]:
        """Give each service and node of a run with TLS or security its credentials."""
        needy = dict.fromkeys(n.process for n in self.record.nodes if needs_credentials(n))
        if not needy:
            return {}
        self._authority = Authority()
        host_of = self.record.processes.host_of
        subjects = [
            self._subject(name, host_of(name), self._run_of(name))
            for name in [*self._services, *needy]
        ]
        return place(self._authority, self.record.token, subjects)

    def _run_of(self, process: str) -> str:
        """Return the key `run` of a process of nodes, and the token of the run for a service."""
        token, nodes = self.record.token, [n for n in self.record.nodes if n.process == process]
        return str(process_spec(nodes, token, self._settings)["run"]) if nodes else token

    @property
    def _is_secured(self) -> bool:
        return self.record.nodes[0].program.middleware.is_secured(self._settings)

    def _subject(
        self, process: str, host: Host, run: str, trusted: bytes = b""
    ) -> tuple[Host, Subject]:
        """Return a service or the process of nodes as the subject of a certificate on its host."""
        return host, Subject(
            process,
            (self._network.addresses[host.name],),
            self.record.nodes[0].program.middleware.security_documents if self._is_secured else {},
            {"token": self.record.token, "run": run, **setting_words(self._settings)},
            trusted,
        )

    def _start_uninvited(self, service_endpoints: Mapping[bool, list[str]]) -> None:
        """Start the uninvited nodes of a run that proves security, when its nodes are READY."""
        if self._uninvited is None:
            return
        self._enter("uninvited nodes")
        connects_to = {node.process: node.connects_to for node in self.record.nodes}
        endpoints = {
            each.process: [
                *service_endpoints[False],
                *(e for other in connects_to[each.original] for e in self._listening[other]),
            ]
            for each in self._uninvited.uninvited
        }
        self._uninvited.start(self._builds, endpoints, self._uninvited_credentials())

    def _uninvited_credentials(self) -> dict[str, dict[str, str]]:
        """Return the credentials of the uninvited nodes that have any: process → key → path.

        Those of another authority also trust that of the run, because they want to be admitted.
        """
        assert self._uninvited is not None
        if not self._is_secured:
            return {}
        other, host_of = Authority(), self._uninvited.host_of
        having = [each for each in self._uninvited.uninvited if each.kind != OPEN]
        subjects = [
            self._subject(
                each.process, host_of(each.process), each.node.spec["run"], other.certificate
            )
            for each in having
        ]
        placed = place(self._authority, self.record.token, subjects, signer=other)
        kinds = {each.process: each.kind for each in having}
        return {
            process: paths if kinds[process] == STRANGER else {AUTHORITY: paths[AUTHORITY]}
            for process, paths in placed.items()
        }

    def _spawn(self, nodes: Sequence[RunNode], endpoints: list[str]) -> None:
        """Start a process: that of a node, or that of the nodes of a member."""
        processes, node = self.record.processes, nodes[0]
        host, out = processes.host_of(node.process), processes.out_of(node.process)
        build = self._builds[node.program.known_as]
        discard_on(host, out)  # an earlier node may have created this path
        spec = out / "spec.json"
        own = process_spec(nodes, self.record.token, self._settings)
        content = {**own, "peers.endpoints": endpoints, **self._credentials.get(node.process, {})}
        check_spec(content)
        folder_made = host.submit_folder(out)
        spec_written = host.submit_file(spec, json.dumps(content, indent=1).encode())
        argv = [*build.argv, "--spec", str(spec), "--out", str(out)]
        if self.record.tracing and self.record.tracing.name == syscalls.TRACER:
            argv = syscalls.traced(argv, out)
        env = build.env
        if self.record.recorder is not None:
            env = {**env, **self.record.recorder.environment(env)}
        started = processes.submit(node.process, argv, env, str(out), lines=True)
        for wait in (folder_made, spec_written, started):
            wait()

    def _wait_ready(self) -> None:
        self._enter("matching")
        # A node that fails to match reports the reason. Wait long enough to receive it.
        deadline_s = time.monotonic() + self._plan.ready_timeout_s + REASON_PATIENCE_S
        self.record.processes.wait_for("READY", self.record.node_processes, deadline_s)

    def _window(self) -> None:
        self._enter("window")
        record = self.record
        self._ssh_before = self._sent_by_ssh()
        nodes = len(record.nodes) + (len(self._uninvited.uninvited) if self._uninvited else 0)
        lead_ns = round((GO_LEAD_NS + GO_LEAD_PER_NODE_NS * nodes) * busyness())
        if self._treatment["pacing"] == "native":
            # A native timer ticks one period after its creation, which must precede slot 0.
            lead_ns += max(int(node.spec["period_ns"]) for node in record.nodes)
        slowest_ns = max(host.round_trip_ns for host in self._hosts.values())
        start_ns = time.monotonic_ns() + lead_ns + GO_LEAD_ROUND_TRIPS * slowest_ns
        end_s, patience_s = self._window_end(start_ns)
        with self._shared.silent(end_s + patience_s - time.monotonic()):
            self._silent_window(start_ns)

    def _silent_window(self, start_ns: int) -> None:
        """Start the nodes and wait for the senders; send nothing to hosts of shared connections."""
        record = self.record
        self._network.start(start_ns)
        starts_ns = {
            node.process: start_ns + record.host_of(node.process).offset_ns
            for node in sorted(record.nodes, key=lambda n: n.sends)  # receivers first
        }
        self._shared.mark_later("window_begin", start_ns)
        if warmup_ns := int(record.nodes[0].spec["warmup_ns"]):
            self._shared.mark_later("warmup_end", start_ns + warmup_ns)
        record.processes.write_all({process: f"GO {ns}" for process, ns in starts_ns.items()})
        if self._uninvited is not None:
            starts = {name: start_ns + host.offset_ns for name, host in record.hosts.items()}
            self._uninvited.go(starts)
        self._shared.begin()
        _sleep_until(start_ns)
        self._mark("window_begin", in_window=True)
        for host in record.hosts.values():
            host.window = {"start_ns": start_ns + host.offset_ns, "end_ns": 0}
        emulator_begin_ns = self._network.emulator_cpu_ns()
        crash_point("window", self._victims())
        unfinished = self._await_senders(start_ns, record.sending_processes)
        self._shared.end(record.hosts)
        ends_ns = self._mark("window_end")
        emulator_end_ns = self._network.emulator_cpu_ns()
        if record.network and emulator_begin_ns is not None and emulator_end_ns is not None:
            record.network.emulator_cpu_ns = emulator_end_ns - emulator_begin_ns
        for name, host in record.hosts.items():
            host.window["end_ns"] = ends_ns[name]
        exited = [p for p in unfinished if record.processes.states[p].exit is not None]
        if unfinished and self._settling and not exited:
            record.outcome_detail = f"ended after {SETTLING_S:g} s, as settling runs do"
        elif unfinished:
            record.outcome_detail = self._unfinished_text(unfinished, exited)
            record.outcome = Outcome.DIED if exited else Outcome.TIMED_OUT

    def _unfinished_text(self, unfinished: list[str], exited: list[str]) -> str:
        """Return how the senders that did not finish ended; `exited` are those that ended."""
        label = self.record.deployment.label
        texts = [f"{label(p)} {self.record.processes.describe_exit(p)}" for p in exited]
        hung = ", ".join(label(process) for process in unfinished if process not in exited)
        return "; ".join([*texts, *([f"{hung} did not finish in the window"] if hung else [])])

    def _window_end(self, start_ns: int) -> tuple[float, float]:
        """Return the end of the window (s, time.monotonic), and how long senders may overrun it."""
        spec = self.record.nodes[0].spec
        if self._treatment["loop"] == "open":
            duration_ns = int(spec["duration_ns"])
            # The window has its full length, even if the last message is scheduled before its end.
            end_s = (start_ns + duration_ns) / SECOND_NS
            patience_s = (spec["overrun_ns"] + 2 * spec["timeout_ns"]) / SECOND_NS + 2.0
        else:
            end_s = start_ns / SECOND_NS
            timeouts_s = int(spec["count"]) * int(spec["timeout_ns"]) / SECOND_NS
            patience_s = min(timeouts_s, CLOSED_WINDOW_MAX_S + self._plan.warmup_max_s) + 2.0
            if self._settling:
                patience_s = SETTLING_S
        return end_s, patience_s

    def _await_senders(self, start_ns: int, senders: list[str]) -> list[str]:
        """Wait until the window and all senders have ended; return the senders that did not end.

        A client that has made `count` calls may continue until STOP (C-11), so that all clients are
        active until the end of the window.
        """
        processes = self.record.processes
        spec = self.record.nodes[0].spec
        end_s, patience_s = self._window_end(start_ns)
        warm_up_end_s = (start_ns + int(spec["warmup_ns"])) / SECOND_NS
        if spec["warmup_ns"]:
            processes.wait_for("SENT", senders, warm_up_end_s, strict=False)
            # Costs count from this time, even in a run without sampling.
            self._mark("warmup_end", in_window=True)
        done_keywords = ("COUNTED", "SENT")
        unfinished = processes.wait_for_any(
            done_keywords, senders, end_s + patience_s, strict=False
        )
        exited = [p for p, s in processes.states.items() if s.exit is not None]
        if not exited:
            _sleep_until(round(end_s * SECOND_NS))
            processes.drain()
        return unfinished

    def _drain(self) -> None:
        """Send STOP to the senders, then to the receivers; to the members of a topology at once.

        Receivers continue until no message arrives.
        """
        self._enter("drain")
        record = self.record
        now_ns = time.monotonic_ns()
        for host in record.hosts.values():
            host.stop_ns = now_ns + host.offset_ns
        linger_s = self._plan.linger_ms / 1000.0
        senders = record.sending_processes
        receivers = [process for process in record.node_processes if process not in senders]
        receiving = {node.process for node in record.nodes if not node.sends}
        are_apart = receiving.isdisjoint(senders)
        for group in (senders, receivers) if are_apart else (record.node_processes,):
            sending = group is not receivers
            alive = [p for p in group if record.processes.states[p].exit is None]
            if not (are_apart and sending):
                record.receivers_stop_ns = time.monotonic_ns() + record.offset_ns
            record.processes.write_all(dict.fromkeys(alive, "STOP"))
            deadline_s = time.monotonic() + linger_s + EXIT_PATIENCE_S
            if sending:  # open calls may complete (C-15)
                deadline_s += max(n.spec["timeout_ns"] for n in record.nodes) / SECOND_NS
            record.processes.wait_for("DONE", alive, deadline_s, strict=False)
            record.processes.wait_exit(alive, time.monotonic() + EXIT_PATIENCE_S)
        if self._uninvited is not None:
            self._uninvited.stop(linger_s)
            record.uninvited = self._uninvited.to_json()

    def _judge_exits(self) -> None:
        """Set the outcome if a node died, hung or saturated.

        This is a result, not a harness failure.
        """
        record = self.record
        if record.outcome is not Outcome.COMPLETED:
            return
        for process in record.node_processes:
            state, label = record.processes.states[process], record.deployment.label(process)
            if state.exit is None:
                record.outcome = Outcome.TIMED_OUT
                record.outcome_detail = f"{label} did not end after STOP"
                return
            if state.exit.get("code") != 0:
                record.outcome = Outcome.DIED
                record.outcome_detail = f"{label} {record.processes.describe_exit(process)}"
                return
        if self._settling:  # a settling run always ends by time
            return
        for node in record.nodes:
            own = record.state_of(node)
            sent = own.lines.get("SENT") if own else None
            if sent is None:
                continue
            missing = sent["scheduled"] - sent["sent"]
            # A native timer may skip some slots. More skipped slots mean saturation.
            if missing > sent["skipped"] or missing > SKIPPED_SHARE_MAX * sent["scheduled"]:
                record.outcome = Outcome.SATURATED
                flow = record.deployment.flow_names.get(node.node, node.process)
                sender = f"the sender of flow {flow}" if flow != node.process else "a sender"
                record.outcome_detail = (
                    f"{sender} sent {sent['sent']} of "
                    f"{plural(sent['scheduled'], 'scheduled message')}"
                )
                return

    def _note_dead_services(self) -> None:
        """Name the services that ended before the nodes: the cause of what the nodes report."""
        record, states = self.record, self.record.processes.states
        dead = [process for process in record.services if states[process].exit is not None]
        if not dead:
            return
        texts = [f"the service {p} {record.processes.describe_exit(p)}" for p in dead]
        details = [record.outcome_detail] if record.outcome_detail else []
        record.outcome_detail = "; ".join([*texts, *details])
        if record.outcome is not Outcome.TIMED_OUT:
            record.outcome = Outcome.DIED

    def _note_interference(self) -> None:
        """Fail the attempt if a service or a bridge process was ended from outside."""
        record, states = self.record, self.record.processes.states
        bridges = [n.process for n in record.nodes if isinstance(n.program, Bridge)]
        kinds = {**dict.fromkeys(record.services, "service"), **dict.fromkeys(bridges, "bridge")}
        ended = {p: kind for p, kind in kinds.items() if p in states and states[p].exit}
        out_of_memory = bool(ended) and self._oom_kills() != self._oom_kills_before
        for process, kind in ended.items():
            if fails(kind, self._point, states[process].exit or {}, out_of_memory):
                text = f"the {kind} {process} {record.processes.describe_exit(process)}"
                record.reasons.append(Reason(Verdict.FAILED, HARNESS_CODE, text))

    def _note_refusals(self) -> None:
        """Record each node that refused its spec or a late GO as a failure of the harness."""
        for process, state in self.record.processes.states.items():
            error = state.lines.get("ERROR", {})
            if error.get("code") == REFUSED:
                label = self.record.deployment.label(process)
                text = printable(f"{label} rejected {error.get('key')}: {error.get('reason')}")
                self.record.reasons.append(Reason(Verdict.FAILED, "refused", text))

    def _note_breaches(self) -> None:
        """Record each node that violated the contract, as a reason against the run."""
        for state in self.record.processes.states.values():
            if state.breach:
                self.record.reasons.append(Reason(Verdict.FAILED, "contract", state.breach))

    def _end(self) -> None:
        record = self.record
        record.processes.ending = True
        try:
            self._end_processes()
        finally:
            if self._credentials:
                in_parallel(lambda host: host.forget_private(record.token), self._hosts.values())
            self._note_ssh("window")
            self._clock_exchanges.close()
            for name, sampling in self._request_all("sample_stop").items():
                record.hosts[name].sampling = sampling
                outside = self._addresses.get(name, {})
                for series in sampling.get("series", []):
                    if meter := outside.get(series["meter"]):
                        series["window_s"] = meter.window_s
                for text in silent_meters(sampling, outside) if outside else ():
                    record.reasons.append(Reason(Verdict.FAILED, HARNESS_CODE, text))
        for name, reply in self._request_all("clock", count=3).items():
            record.hosts[name].clocks["end"] = reply["triples"]
            record.hosts[name].clock_adjustments["end"] = reply["adjustment"]
        for name in record.clock_relations:
            record.clock_relations[name] = self._hosts[name].relate_clock_again()
            record.clock_exchanges[name] = self._hosts[name].clock_exchanges
            self._correct_stops(record.hosts[name], record.clock_relations[name])
        in_parallel(self._collect_files, [h for h in self._hosts.values() if not h.here])
        if record.leftovers:
            record.reasons.append(
                Reason(
                    Verdict.INVALID, "leftovers", "killed processes: " + ", ".join(record.leftovers)
                )
            )
        self._enter("converting")

    def _correct_stops(self, host: HostRecord, relation: ClockRelation) -> None:
        """Correct the times of STOP by the drift of a host's clock, known after the run."""
        if host.stop_ns:
            host.stop_ns = relation.host_ns(host.stop_ns - host.offset_ns)
        if host is self.record and self.record.receivers_stop_ns:
            controller_ns = self.record.receivers_stop_ns - host.offset_ns
            self.record.receivers_stop_ns = relation.host_ns(controller_ns)

    def _collect_files(self, host: Host) -> None:
        far_folder = host.folder_of(self._folder, self.record.token)
        host.collect(far_folder, self._folder, functools.partial(self._is_of, host))
        host.forget(far_folder)

    def _is_of(self, host: Host, path: PurePosixPath) -> bool:
        """Return whether a file of the attempt is one of a host's processes or its readings."""
        processes = self.record.processes
        names = [p for p in processes.states if processes.host_of(p).name == host.name]
        if self._uninvited is not None:
            uninvited = self._uninvited.uninvited
            names += [each.process for each in uninvited if each.host == host.name]
        if path.parts[0] == "out":
            return len(path.parts) > 2 and path.parts[1] in names
        logs = [PurePosixPath("logs", f"{name}.{end}") for name in names for end in ("out", "err")]
        readings = self.record.hosts[host.name].readings
        return path in (*logs, PurePosixPath(readings), PurePosixPath(f"{readings}.json"))

    def _end_processes(self) -> None:
        """Stop the services, then kill all remaining processes."""
        record = self.record
        if self._uninvited is not None:
            self._uninvited.end()
        for reader in self._counter_readers:
            reader.close()
        for service in reversed(list(record.services)):
            if record.processes.states[service].exit is None:
                stop = self._services[service.split(".")[0]].get("stop", "TERM")
                agent = record.processes.agent_of(service)
                with contextlib.suppress(AgentError):  # the service has already ended
                    agent.request("signal", process=service, signal=stop, tree=False)
        record.processes.wait_exit(record.services, time.monotonic() + EXIT_PATIENCE_S)
        hung = [p for p, s in record.processes.states.items() if s.exit is None and s.pid]
        leftovers = record.processes.end_all()
        record.leftovers = [item for item in leftovers if item not in hung]

    def _victims(self) -> dict[str, int | Callable[[], None] | None]:
        """Return the processes and devices of this machine that a crash point may end."""
        nodes, states = self.record.nodes, self.record.processes.states
        host_of = self.record.processes.host_of
        local = {name: state for name, state in states.items() if host_of(name).here}
        last_state = local.get(nodes[-1].process if nodes else next(iter(states), ""))
        started = [n for n in nodes if n.process in local]
        by_role = {n.role: local[n.process].pid for n in started}
        far = [host.agent.command_pid for host in self._hosts.values() if not host.here]
        return {
            **{name: local[name].pid for name in self.record.services if name in local},
            **by_role,
            **{n.process: local[n.process].pid for n in started},
            "agent": self._agent.pid if self._hosts[self.record.name].here else None,
            "guard": last_state.guard_pid if last_state else None,
            "node": last_state.pid if last_state else None,
            "profiled": last_state.pid if last_state and self.record.recorder else None,
            "emulator": self._network.emulator_pid,
            **self._network.victims({name: host.pid for name, host in self._hosts.items()}),
            "ssh": far[-1] if far else None,
        }


def needs_credentials(node: RunNode) -> bool:
    """Return whether a node has TLS (C-35) or security (C-43), or is a secured bridge process."""
    middleware = node.program.middleware
    if isinstance(node.program, Bridge):
        return node.program.outer.is_secured(node.program.outer_settings)
    settings = {name: node.spec[f"settings.{name}"] for name in middleware.settings}
    tls = middleware.setting_with(TLS)
    return middleware.is_secured(settings) or bool(tls and settings[tls])


def _sleep_until(monotonic_ns: int) -> None:
    while (left_ns := monotonic_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / SECOND_NS)
