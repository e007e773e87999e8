"""Insert the bridge processes into a deployment, as further hops of its flows' paths.

A bridge joins the middleware inside each host with the middleware between the hosts. A message that
goes from a host to another passes two bridge processes: the entry, on the host of the node before,
and the exit, on the host of the node after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wattwire.model.deployment import BRIDGE, RELAYED, Deployment, Flow, Node, Process
from wattwire.model.treatment import Level, Treatment

FACTOR = "bridge"
NO_BRIDGE = "none"
"""Level of the factor for nodes that send to other hosts themselves."""
ENTRY, EXIT = "entry", "exit"
END_SETTING = "settings.bridge_end"
"""Key of a bridge process's spec, with the value ENTRY or EXIT."""
OUTER_SETTING = "settings.outer_"
"""Start of the keys of a bridge process's spec that are settings of the outer middleware."""


def bridge_of(treatment: Treatment) -> str:
    """Return the name of a treatment's bridge; "" without one."""
    level: Level = treatment.get(FACTOR, NO_BRIDGE)
    return "" if level == NO_BRIDGE else str(level)


def bridged(deployment: Deployment, cell: str) -> Deployment:
    """Return the deployment with an entry and an exit at each change of the host.

    The numbers of the nodes remain; those of the bridge processes follow. `cell` is the name of
    their program. The flows of the deployment have one receiver each.
    """
    inserted = _Inserted(deployment, cell)
    flows = tuple(inserted.path(flow) for flow in deployment.flows)
    nodes = tuple(
        replace(node, hop=inserted.hops.get(node.node, node.hop)) for node in deployment.nodes
    )
    return replace(
        deployment,
        processes=(*deployment.processes, *inserted.processes),
        nodes=(*nodes, *inserted.nodes),
        flows=flows,
    )


class _Inserted:
    """The bridge processes of a deployment, and the positions of all nodes in the new paths."""

    def __init__(self, deployment: Deployment, cell: str) -> None:
        self._deployment, self._cell = deployment, cell
        self._by_number = {node.node: node for node in deployment.nodes}
        self.processes: list[Process] = []
        self.nodes: list[Node] = []
        self.hops: dict[int, int] = {}

    def path(self, flow: Flow) -> Flow:
        """Return the flow with its bridge processes among its relays."""
        (receiver,) = flow.receivers
        old_path = (flow.sender, *flow.relays, receiver)
        path = [flow.sender]
        for before, after in zip(old_path, old_path[1:], strict=False):
            hosts = [self._deployment.host_of(self._by_number[n]) for n in (before, after)]
            if hosts[0] != hosts[1]:
                path += [self._add(host, len(path) + i) for i, host in enumerate(hosts)]
            path.append(after)
        self.hops |= {number: hop for hop, number in enumerate(path)}
        return replace(flow, relays=tuple(path[1:-1]))

    def _add(self, host: str, hop: int) -> int:
        number, index = len(self._by_number) + len(self.nodes), len(self.nodes)
        name = f"{BRIDGE}-{index}"
        relays = sum(node.role == RELAYED for node in self._by_number.values())
        self.processes.append(Process(name, BRIDGE, host))
        self.nodes.append(Node(number, name, RELAYED, relays + index, hop, self._cell))
        return number


@dataclass(frozen=True)
class BridgeEnd:
    """One bridge process of a flow. The entry connects to the exit, its successor `other`."""

    kind: str
    other: int


def bridge_ends(deployment: Deployment) -> dict[int, BridgeEnd]:
    """Return node → the end of a bridge that it is, for the bridge processes of all flows."""
    ends: dict[int, BridgeEnd] = {}
    for flow in deployment.flows:
        numbers = bridges_among(deployment, flow.relays)
        for entry, leaving in zip(numbers[::2], numbers[1::2], strict=True):
            ends[entry], ends[leaving] = BridgeEnd(ENTRY, leaving), BridgeEnd(EXIT, entry)
    return ends


def bridges_among(deployment: Deployment, numbers: Sequence[int]) -> list[int]:
    """Return those of the nodes that are bridge processes, in the same order."""
    by_number = {node.node: node for node in deployment.nodes}
    return [n for n in numbers if deployment.kind_of(by_number[n]) == BRIDGE]
