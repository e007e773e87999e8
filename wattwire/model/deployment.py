"""Deployments: the hosts, processes, nodes and flows of a run, and the patterns that describe them.

A pattern is an entry of `PATTERNS`. It expands into a deployment, from which the start order, the
counts and the latencies follow. Only this file contains the names of roles. A request of `exec`
expands into a deployment without nodes and flows.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any

from wattwire.model.errors import UsageError
from wattwire.model.flows import FlowPart, flow_parts
from wattwire.model.rig.rig import ANY_SERVICE, ONE_HOST, Rig
from wattwire.model.treatment import Treatment

PIPELINE = "pipeline"
RELAYED = "relay"
"""Kind of the records of relayed messages (C-25)."""
SENDER, RECEIVER, RELAY = "sender", "receiver", "relay"
"""Words of placements for the roles at the first, last and other positions of a path."""
MEMBER = "member"
"""Role of a process with several publishers and subscribers, which are nodes of its own."""
HOST = "local"
"""Name of the host on which all processes run."""
NODE, SERVICE, BRIDGE, ATTACHED, COMMAND = "node", "service", "bridge", "attached", "command"
PROBE = "probe"
PROCESS_KINDS = (NODE, SERVICE, BRIDGE, ATTACHED, COMMAND, PROBE)
EXEC = "exec"
"""Name of the study's table with the request."""
PROCESSES = "processes"
"""Level of `pattern` of a request's runs, whose deployment has processes but no nodes or flows."""
_AGAIN = re.compile(r"\.try\d+$")


@dataclass(frozen=True)
class Role:
    """A role of nodes in the contract.

    - `kinds` are the kinds of its records (C-27). The last kind has one record per sent message.
    - `sends` is true if it sends messages or calls by the schedule (C-10, C-11).
    - `result` is the kind of the record that contains the result of a call, or "" without replies.
    - `records_all` is true if each sent message has a record, even without a reply.
    """

    name: str
    kinds: tuple[str, ...]
    sends: bool = False
    result: str = ""
    records_all: bool = True


ROLES = {
    role.name: role
    for role in (
        Role("publisher", ("message",), sends=True),
        Role("subscriber", ("message",)),
        Role("server", ("call",)),
        Role("client", ("call",), sends=True, result="call"),
        Role("action_server", ("goal", "accept", "feedback")),
        Role("action_client", ("goal", "feedback", "result"), True, "result", records_all=False),
        Role("ping", ("call",), sends=True, result="call"),
        Role("pong", ("call",)),
        Role("source", ("message",), sends=True),
        Role("relay", (RELAYED,)),
        Role("sink", ("message",)),
        Role(MEMBER, ()),
    )
}


@dataclass(frozen=True)
class Members:
    """The nodes of one role in a pattern.

    Their number is the level of `factor` plus `number`, or `number` without a factor.
    """

    role: str
    factor: str = ""
    number: int = 1

    def count(self, treatment: Treatment) -> int:
        return self.number + (int(treatment[self.factor]) if self.factor else 0)


@dataclass(frozen=True)
class Pattern:
    """A pattern of communication.

    - `members` are its nodes, in the order of their numbers.
    - `path` lists the roles that a message passes, from its sender to its receivers. Every node of
      the first role sends to all nodes of the last role, through all nodes of the roles between.
    - `contract` is the name of the pattern in the nodes' specs, which defines the roles.
    """

    name: str
    members: tuple[Members, ...]
    path: tuple[str, ...]
    contract: str

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(member.role for member in self.members)

    @property
    def sender(self) -> str:
        """Return the role that sends."""
        return self.path[0]

    @property
    def receiver(self) -> str:
        """Return the role at the end of the path, which replies to calls."""
        return self.path[-1]

    @property
    def result(self) -> str:
        """Return the kind of the record with the result of a call, or "" without replies."""
        return ROLES[self.sender].result

    @property
    def factors(self) -> frozenset[str]:
        """Return the factors that determine the number of nodes."""
        return frozenset(member.factor for member in self.members if member.factor)

    def counts(self, treatment: Treatment) -> dict[str, int]:
        """Return the number of nodes of each role."""
        return {member.role: member.count(treatment) for member in self.members}

    @property
    def has_positions(self) -> bool:
        """Return whether the specs of the nodes contain the position in the path (C-37)."""
        return self.contract == PIPELINE

    def hop(self, role: str, index: int, relays: int) -> int:
        """Return a node's position in the path: 0 for senders, `relays` + 1 for receivers."""
        if role == self.sender:
            return 0
        return relays + 1 if role == self.receiver else index + 1

    def position(self, role: str) -> str:
        """Return the word of placements for a role: SENDER, RECEIVER or RELAY."""
        return {self.sender: SENDER, self.receiver: RECEIVER}.get(role, RELAY)

    def title(self) -> str:
        """Return the roles as text, such as "one publisher, and nodes with the role client"."""
        words = [
            f"nodes with the role {member.role}"
            if member.factor
            else f"one {member.role}"
            if member.number == 1
            else f"{member.number} nodes with the role {member.role}"
            for member in self.members
        ]
        return ", and ".join(words)


PATTERNS = {
    pattern.name: pattern
    for pattern in (
        Pattern(
            "topic",
            (Members("publisher"), Members("subscriber", "clients", 0)),
            ("publisher", "subscriber"),
            "topic",
        ),
        Pattern(
            "service",
            (Members("server"), Members("client", "clients", 0)),
            ("client", "server"),
            "service",
        ),
        Pattern(
            "action",
            (Members("action_server"), Members("action_client", "clients", 0)),
            ("action_client", "action_server"),
            "action",
        ),
        Pattern("pingpong", (Members("pong"), Members("ping")), ("ping", "pong"), "pingpong"),
        Pattern(
            PIPELINE,
            (Members("source"), Members("relay", "nodes", -2), Members("sink")),
            ("source", "relay", "sink"),
            PIPELINE,
        ),
    )
}
"""Patterns by name. An entry is all that a new combination of existing roles needs."""


ONE_WAY = tuple(name for name, pattern in PATTERNS.items() if not pattern.result)
"""Names of the patterns without replies, which the flows of a study can have."""
PLACED = frozenset({*ROLES, SENDER, RECEIVER, RELAY, ANY_SERVICE})
"""Keys of every placement. The names of service processes are further keys."""


def has_replies(pattern: object) -> bool:
    """Return whether `pattern` is the name of a pattern whose receivers reply."""
    known = PATTERNS.get(str(pattern))
    return known is not None and bool(known.result)


def node_count(treatment: Treatment) -> int:
    """Return the number of processes of a run's nodes."""
    parts = flow_parts(treatment)
    members = {member.name for part in parts for member in part.members}
    alone = [part.treatment for part in parts if not part.members]
    counts = (PATTERNS[str(part["pattern"])].counts(part) for part in alone)
    return len(members) + sum(sum(count.values()) for count in counts)


def sender_count(treatment: Treatment) -> int:
    """Return the number of senders or clients of a treatment with one pattern."""
    pattern = PATTERNS[str(treatment["pattern"])]
    return pattern.counts(treatment)[pattern.sender]


def sender_rate_hz(treatment: Treatment) -> float | None:
    """Return the rate (Hz) that each sender or client offers, or None in a closed loop."""
    if treatment["loop"] == "closed":
        return None
    interval_s = treatment.get("interval_s")
    return float(treatment["rate_hz"]) if interval_s is None else 1.0 / float(interval_s)


SEND_TIME_BYTES = 16
"""Shortest payload that contains its send time (C-19). A text has two characters per byte."""


def without_send_time(treatment: Treatment) -> str:
    """Return the reason if the messages of a treatment carry no send time, else "".

    The receiver of a message without reply then knows no latency (C-27). `treatment` has no flows
    with names of their own; see `flow_parts`.
    """
    pattern = treatment.get("pattern")
    if pattern not in ONE_WAY:
        return ""
    if treatment.get("literal"):
        return f"a {pattern} message that is a literal carries no send time"
    text = treatment.get("payload_encoding") == "text"
    shortest, payload_bytes = SEND_TIME_BYTES * (1 + text), treatment.get("payload_bytes")
    if payload_bytes is None or int(payload_bytes) >= shortest:
        return ""
    return (
        f"a {pattern} message of {payload_bytes} B is too short for its send time, which needs "
        f"payload_bytes = {shortest} or more"
    )


@dataclass(frozen=True)
class Link:
    """A network between hosts, by name."""

    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Process:
    """A process tree whose costs are measured; `kind` is one of PROCESS_KINDS.

    `member` is the node of a topology that it is; "" for other processes.
    """

    name: str
    kind: str
    host: str = HOST
    member: str = ""


@dataclass(frozen=True)
class Node:
    """A sender or receiver of a cell. `hop` is its position in the path of its messages.

    Each node is a process of its own, but those of a topology share the process of their member.
    """

    node: int
    process: str
    role: str
    index: int
    hop: int
    cell: str

    @property
    def sends(self) -> bool:
        return ROLES[self.role].sends


@dataclass(frozen=True)
class Flow:
    """The messages or calls of one sender, by node numbers.

    Each message passes `relays` in their order and is expected once at each receiver. `result` is
    the kind of the sender's record with the result of a call; "" if receivers send no reply.
    """

    name: str
    sender: int
    receivers: tuple[int, ...]
    relays: tuple[int, ...] = ()
    result: str = ""

    @property
    def expected_per_message(self) -> int:
        """Return the number of expected deliveries of one message."""
        return 1 if self.result else len(self.receivers)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Return the connections of the path as (from, to)."""
        through = (self.sender, *self.relays)
        chain = tuple(zip(through, through[1:], strict=False))
        return (*chain, *((through[-1], receiver) for receiver in self.receivers))

    @property
    def nodes(self) -> tuple[int, ...]:
        return (self.sender, *self.relays, *self.receivers)


@dataclass(frozen=True)
class Deployment:
    """What runs where, and what it sends to whom."""

    processes: tuple[Process, ...]
    nodes: tuple[Node, ...] = ()
    flows: tuple[Flow, ...] = ()
    hosts: tuple[str, ...] = (HOST,)
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError(f"deployment: {fault}")

    def _faults(self) -> Iterable[str]:
        """Yield each contradiction in the deployment."""
        named: tuple[tuple[str, Sequence[str | int]], ...] = (
            ("processes have the name", [process.name for process in self.processes]),
            ("nodes have the number", [node.node for node in self.nodes]),
            ("nodes are the process", [n.process for n in self.nodes if not self.member_of(n)]),
            ("flows have the name", [flow.name for flow in self.flows]),
        )
        for what, names in named:
            for name, count in Counter(names).items():
                if count > 1:
                    yield f"{count} {what} {name}; allowed: one"
        known_nodes = {node.node: node for node in self.nodes}
        known_processes = {process.name for process in self.processes}
        for process in self.processes:
            if process.kind not in PROCESS_KINDS:
                kinds = ", ".join(PROCESS_KINDS)
                yield f"process {process.name}: found kind {process.kind}; allowed: {kinds}"
            if process.host not in self.hosts:
                hosts = ", ".join(self.hosts)
                yield f"process {process.name}: found host {process.host}; allowed: {hosts}"
        for node in self.nodes:
            if node.process not in known_processes:
                yield f"node {node.node}: its process {node.process} is not listed"
        for flow in self.flows:
            if not flow.receivers:
                yield f"flow {flow.name}: it has no receiver; name at least one node"
            for number in flow.nodes:
                if number not in known_nodes:
                    yield f"flow {flow.name}: node {number} is not listed"
            sender = known_nodes.get(flow.sender)
            if sender is not None and not sender.sends:
                sending = ", ".join(role.name for role in ROLES.values() if role.sends)
                yield (
                    f"flow {flow.name}: it begins at {sender.process}, but a {sender.role} sends "
                    "only what it receives, so no message enters the flow or its loop. Begin it "
                    f"at a node of a role that sends: {sending}"
                )
            yield from self._bridge_faults(flow, known_nodes)
            if len({*flow.nodes}) < len(flow.nodes):
                yield f"flow {flow.name}: its path passes a node twice: {flow.nodes}"

    def _bridge_faults(self, flow: Flow, nodes: Mapping[int, Node]) -> Iterable[str]:
        """Yield each bridge of a flow that does not join two hosts by a process on each."""
        if not {*flow.nodes} <= nodes.keys() or {n.process for n in nodes.values()} - {
            process.name for process in self.processes
        }:
            return
        bridges = [n for n in flow.nodes if self.kind_of(nodes[n]) == BRIDGE]
        if len(bridges) % 2:
            yield (
                f"flow {flow.name}: it passes {len(bridges)} bridge processes; allowed: two for "
                "each change of the host, one at each end"
            )
        for entry, leaving in zip(bridges[::2], bridges[1::2], strict=False):
            ends = [nodes[entry], nodes[leaving]]
            host = self.host_of(ends[0])
            if host == self.host_of(ends[1]):
                names = " and ".join(end.process for end in ends)
                yield f"flow {flow.name}: {names} are both on {host}; allowed: two hosts"

    @functools.cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Return the distinct connections of all flows as (from, to)."""
        return tuple(dict.fromkeys(edge for flow in self.flows for edge in flow.edges))

    @functools.cached_property
    def _successors(self) -> dict[int, list[int]]:
        successors: dict[int, list[int]] = {}
        for origin, end in self.edges:
            successors.setdefault(origin, []).append(end)
        return successors

    @functools.cached_property
    def _predecessors(self) -> dict[int, list[int]]:
        predecessors: dict[int, list[int]] = {}
        for origin, end in self.edges:
            predecessors.setdefault(end, []).append(origin)
        return predecessors

    @functools.cached_property
    def _senders(self) -> dict[int, list[int]]:
        senders: dict[int, list[int]] = {}
        for flow in self.flows:
            for node in flow.nodes:
                senders.setdefault(node, []).append(flow.sender)
        return senders

    def neighbours(self, node: int) -> list[int]:
        """Return the nodes that have a connection with `node`, in ascending order."""
        return sorted({*self._successors.get(node, ()), *self._predecessors.get(node, ())})

    def senders(self, node: int) -> list[int]:
        """Return the senders whose messages pass or reach `node`, itself included."""
        return sorted(self._senders.get(node, ()))

    def other_side(self, node: int) -> list[int]:
        """Return the other side of a node's messages (`peers.nodes`).

        For a sender, these are the next nodes. For other nodes, they are the senders of all
        messages that arrive.
        """
        senders = self.senders(node)
        return sorted(self._successors[node]) if node in senders else senders

    @functools.cached_property
    def _flows(self) -> dict[int, list[Flow]]:
        flows: dict[int, list[Flow]] = {}
        for flow in self.flows:
            for node in flow.nodes:
                flows.setdefault(node, []).append(flow)
        return flows

    def listening(self, *roles: str) -> frozenset[int]:
        """Return the nodes that accept connections if `roles` listen in their patterns.

        If a flow's receivers have such a role, the receiving end of each of its connections
        listens, otherwise the sending end.
        """
        numbers = {node.node for node in self.nodes if node.role in roles}
        listening: set[int] = set()
        for flow in self.flows:
            if numbers & {*flow.receivers}:
                listening |= {end for _, end in flow.edges}
            elif numbers & {*flow.nodes}:
                listening |= {origin for origin, _ in flow.edges}
        return frozenset(listening)

    def connects_to(self, node: int, listening: frozenset[int]) -> frozenset[int]:
        """Return the listening nodes to which `node` connects."""
        others: set[int] = set()
        for flow in self._flows.get(node, ()):
            if all(end in listening for _, end in flow.edges):
                others |= {end for origin, end in flow.edges if origin == node}
            else:
                others |= {origin for origin, end in flow.edges if end == node}
        return listening & others

    @functools.cached_property
    def flow_names(self) -> dict[int, str]:
        """Return sender → the name of its flow."""
        return {flow.sender: flow.name for flow in self.flows}

    @functools.cached_property
    def by_process(self) -> dict[str, Process]:
        """Return name → process."""
        return {process.name: process for process in self.processes}

    def member_of(self, node: Node) -> str:
        """Return the node of a topology whose process has this sender or receiver, or ""."""
        process = self.by_process.get(node.process)
        return process.member if process is not None else ""

    def label(self, process: str) -> str:
        """Return the name of a process for messages, with its hop if its messages pass relays."""
        if process in self.by_process and self.by_process[process].member:
            return f"{process} ({self.by_process[process].member})"
        relayed = {number for flow in self.flows if flow.relays for number in flow.nodes}
        hops = [n.hop for n in self.nodes if n.process == process and n.node in relayed]
        return f"{process} (hop {hops[0]})" if hops else process

    def kind_of(self, node: Node) -> str:
        """Return the kind of a node's process: NODE, or BRIDGE."""
        return self.by_process[node.process].kind

    def host_of(self, node: Node) -> str:
        """Return the host of a node."""
        return self.by_process[node.process].host

    def host_of_process(self, process: str) -> str:
        """Return the host of a process, of any attempt to start a service."""
        known = self.by_process.get(service_of(process))
        return known.host if known is not None else self.hosts[0]

    @property
    def is_on_rig(self) -> bool:
        """Return whether the hosts are those of a rig."""
        return self.hosts != (HOST,)

    @functools.cached_property
    def senders_host(self) -> str:
        """Return the host of the first flow's sender; without flows, the first host."""
        by_number = {node.node: node for node in self.nodes}
        return self.host_of(by_number[self.flows[0].sender]) if self.flows else self.hosts[0]

    def to_json(self) -> dict[str, Any]:
        """Return the content of deployment.json."""
        return {"version": 1, **asdict(self)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Deployment:
        """Return the deployment of a deployment.json."""
        return Deployment(
            tuple(Process(**entry) for entry in document["processes"]),
            tuple(Node(**entry) for entry in document["nodes"]),
            tuple(
                Flow(**{**entry, **{k: tuple(entry[k]) for k in ("receivers", "relays")}})
                for entry in document["flows"]
            ),
            tuple(document["hosts"]),
            tuple(Link(entry["name"], tuple(entry["hosts"])) for entry in document["links"]),
        )


def process_of(service: str, attempt: int) -> str:
    """Return the name of the process for an attempt (from 0) to start a service."""
    return f"{service}.try{attempt}" if attempt else service


def service_of(process: str) -> str:
    """Return the service of a process.

    If a broker fails because its port is in use, the process of the next attempt belongs to the
    same service.
    """
    return _AGAIN.sub("", process)


def role_of_process(process: str) -> str | None:
    """Return the role of a node's process such as publisher-0; None for other processes."""
    role, _, index = process.rpartition("-")
    return role if role in ROLES and index.isdecimal() else None


def role_of_column(name: str, stem: str) -> str | None:
    """Return the role of a node's column such as STEM.publisher.0; None for other columns."""
    parts = name.removeprefix(f"{stem}.").split(".")
    is_of_node = len(parts) == 2 and parts[0] in ROLES and parts[1].isdecimal()
    return parts[0] if is_of_node and name != ".".join(parts) else None


def hosts_of_roles(part: FlowPart, rig: Rig) -> dict[str, str | None]:
    """Return role → host. The host is None if the treatment's placement does not name it."""
    pattern = PATTERNS[str(part.treatment["pattern"])]
    if not rig.is_from_file:
        return dict.fromkeys(pattern.roles, HOST)
    placement = rig.placements[str(part.treatment["placement"])]
    hosts = {role: placement.host_of_role(role, pattern.position(role)) for role in pattern.roles}
    for role, word in ((pattern.sender, part.sender), (pattern.receiver, part.receiver)):
        if word:
            hosts[role] = placement.hosts.get(word)
    return hosts


def hosts_of_part(part: FlowPart, rig: Rig) -> dict[str, str | None]:
    """Return the host of each role with nodes, or of each member. It is None without a host."""
    if not part.members:
        counts = PATTERNS[str(part.treatment["pattern"])].counts(part.treatment)
        return {role: host for role, host in hosts_of_roles(part, rig).items() if counts[role]}
    if not rig.is_from_file:
        return {member.name: HOST for member in part.members}
    placement = rig.placements[str(part.treatment["placement"])]
    return {member.name: placement.hosts.get(member.place or MEMBER) for member in part.members}


def hosts_of_services(
    treatment: Treatment, services: Sequence[str], rig: Rig
) -> dict[str, str | None]:
    """Return service → host. The host is None if the treatment's placement does not name it."""
    if not rig.is_from_file:
        return dict.fromkeys(services, HOST)
    placement = rig.placements[str(treatment["placement"])]
    return {service: placement.host_of_service(service) for service in services}


def deployment_of(
    treatment: Treatment,
    cells: Mapping[str, str],
    services: Sequence[str] = (),
    rig: Rig = ONE_HOST,
) -> Deployment:
    """Return the deployment of a treatment on the hosts of its placement.

    `cells` maps each role to the name of its cell. A deployment on several hosts has one link,
    the treatment's network. Raises UsageError for a process without a host.
    """
    service_hosts = hosts_of_services(treatment, services, rig)
    nodes: list[Node] = []
    processes: list[Process] = []
    flows: list[Flow] = []
    member_names: dict[str, str] = {}
    for part in flow_parts(treatment):
        hosts = hosts_of_part(part, rig)
        for name, host in (*hosts.items(), *service_hosts.items()):
            if host is None:
                raise UsageError(f"placement {treatment['placement']} of {rig.source} lacks {name}")
        own = _nodes_of(part, cells, nodes)
        for node, member in zip(own, part.members, strict=False):
            index = len(member_names)
            process = member_names.setdefault(member.name, f"{MEMBER}-{index}")
            own[own.index(node)] = replace(node, process=process)
            if process == f"{MEMBER}-{index}":
                processes.append(Process(process, NODE, hosts[member.name] or "", member.name))
        if not part.members:
            processes += [Process(node.process, NODE, hosts[node.role] or "") for node in own]
        nodes += own
        flows += flows_of(own, PATTERNS[str(part.treatment["pattern"])], part.name)
    processes += [Process(name, SERVICE, host or "") for name, host in service_hosts.items()]
    used = {process.host for process in processes}
    names = tuple(host for host in rig.hosts if host in used)
    links = (Link(str(treatment["network"]), names),) if len(names) > 1 else ()
    return Deployment(tuple(processes), tuple(nodes), tuple(flows), names, links)


def _nodes_of(part: FlowPart, cells: Mapping[str, str], earlier: Sequence[Node]) -> list[Node]:
    """Return the nodes of a part. Numbers and indices continue those of `earlier` nodes."""
    pattern = PATTERNS[str(part.treatment["pattern"])]
    counts = pattern.counts(part.treatment)
    relays = sum(counts[role] for role in pattern.path[1:-1])
    first_index = Counter(node.role for node in earlier)
    nodes: list[Node] = []
    for role, count in counts.items():
        for number in range(count):
            index, hop = first_index[role] + number, pattern.hop(role, number, relays)
            process = f"{role}-{index}"
            nodes.append(Node(len(earlier) + len(nodes), process, role, index, hop, cells[role]))
    return nodes


def flows_of(nodes: Iterable[Node], pattern: Pattern, name: str = "") -> tuple[Flow, ...]:
    """Return a flow for each sender of the pattern among the nodes.

    A flow has the name of its sender, unless the only sender's flow has a `name`.
    """
    by_role: dict[str, list[Node]] = {}
    for node in nodes:
        by_role.setdefault(node.role, []).append(node)
    relays = [node.node for role in pattern.path[1:-1] for node in by_role.get(role, ())]
    receivers = [node.node for node in by_role.get(pattern.receiver, ())]
    return tuple(
        Flow(name or sender.process, sender.node, tuple(receivers), tuple(relays), pattern.result)
        for sender in by_role.get(pattern.sender, ())
    )


_PARSED_MAX = 256
_parsed_by_id: dict[int, tuple[Mapping[str, Any], Deployment]] = {}


def _parsed(document: Mapping[str, Any]) -> Deployment:
    """Return the deployment of a document, which the runs of a treatment share."""
    known = _parsed_by_id.get(id(document))
    if known is None or known[0] is not document:
        if len(_parsed_by_id) >= _PARSED_MAX:
            _parsed_by_id.clear()
        # The document is kept, so that no other object gets its id.
        known = _parsed_by_id[id(document)] = (document, Deployment.from_json(document))
    return known[1]


def deployment_of_run(run: Mapping[str, Any]) -> Deployment:
    """Return the deployment in the document of a run. An imported run has no processes."""
    return _parsed(run["deployment"]) if "deployment" in run else Deployment(())


@dataclass(frozen=True)
class Target:
    """A running system: a process with its descendants, or a cgroup."""

    label: str
    pid: int | None = None
    cgroup: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Return the arguments that name the target in the agent's protocol."""
        return {"pid": self.pid} if self.cgroup is None else {"cgroup": self.cgroup}


@dataclass(frozen=True)
class Request:
    """A command, attached targets or a probe to measure in each run, and how to measure them."""

    command: tuple[str, ...] = ()
    attached: tuple[Target, ...] = ()
    for_s: float | None = None
    messages: float | None = None
    count_from: str | None = None
    baseline_s: float | None = None
    cwd: str = "."
    warmup_s: float | None = None
    """Time (s) after the start that precedes the window."""
    warmup_messages: int | None = None
    """Messages after the start that precede the window. They are counted by `count_from`."""
    warmup_runs: int = 0
    """Settling runs of each command before the first block."""
    values_from: tuple[str, ...] = ()
    """Expressions for figures in the output; the last match of each figure counts."""
    higher_is_better: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()
    """Names of figures whose better direction the user stated."""
    layers: bool = False
    """Whether the processes record the layers of their messages."""
    probe: str = ""
    """Name of the probe that watches the messages; "" without one."""
    probe_command: tuple[str, ...] = ()
    probe_env: tuple[str, ...] = ()
    """Variables of the probe as NAME=VALUE, in addition to those of the agent."""

    @property
    def warms_up(self) -> bool:
        """Return whether the window begins after a warm-up."""
        return self.warmup_s is not None or self.warmup_messages is not None

    @property
    def labels(self) -> dict[str, str]:
        """Return the name of each measured process tree in the agent's protocol → its label."""
        labels = {COMMAND: PurePath(self.command[0]).name} if self.command else {}
        labels |= {f"{ATTACHED}{i}": t.label for i, t in enumerate(self.attached)}
        return labels | ({PROBE: self.probe} if self.probe else {})

    @property
    def printed_names(self) -> frozenset[str]:
        """Return the names of the figures that `values_from` reads."""
        names: set[str] = set()
        for expression in self.values_from:
            groups = re.findall(r"\(\?P<(\w+)>", expression)
            names |= {*groups} or {expression.partition("=")[0]}
        return frozenset(names)

    @property
    def is_only_probe(self) -> bool:
        """Return whether nothing but a probe is measured."""
        return not self.command and not self.attached

    @property
    def summed(self) -> tuple[str, ...]:
        """Return the process trees whose costs the totals add: a probe is part of no system."""
        return tuple(name for name in self.labels if name != PROBE or self.is_only_probe)

    @property
    def deployment(self) -> Deployment:
        """Return the measured processes as a deployment without nodes or flows."""
        kinds = [COMMAND] * bool(self.command) + [ATTACHED] * len(self.attached)
        return Deployment(tuple(map(Process, self.labels, [*kinds, *[PROBE] * bool(self.probe)])))

    def to_json(self) -> dict[str, Any]:
        """Return the table [exec] of the study."""
        return asdict(self)


def parse_request(table: Any, where: str) -> Request | None:
    """Parse the table [exec]; return None without it. Raises UsageError for a damaged table."""
    if table is None:
        return None
    try:
        targets = tuple(Target(**target) for target in table.get("attached", ()))
        keys = ("command", "values_from", "higher_is_better", "lower_is_better",
                "probe_command", "probe_env")  # fmt: skip
        lists = {key: tuple(table.get(key, ())) for key in keys}
        known = {**table, **lists, "attached": targets}
        request = Request(**known)
    except (AttributeError, TypeError) as error:
        raise UsageError(f"{where}: {EXEC}: damaged ({error}); begin a new measurement") from error
    if not request.labels:
        raise UsageError(f"{where}: {EXEC}: it names no command, no attached system and no probe")
    return request
