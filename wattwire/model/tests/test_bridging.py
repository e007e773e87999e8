"""Tests of the deployments of bridges: the hops of a path, and bridges that join no two hosts."""

from dataclasses import replace

import pytest

from wattwire.model.deployment import BRIDGE, Deployment, Process, deployment_of
from wattwire.model.errors import UsageError
from wattwire.model.hosts.bridging import ENTRY, EXIT, bridge_ends, bridge_of, bridged
from wattwire.model.rig import read_rig
from wattwire.model.treatment import Treatment

RIG = read_rig(
    {
        "hosts": {name: {"kind": "netns"} for name in "abc"},
        "networks": {"wire": {}},
        "placements": {
            "once": {"sender": "a", "relay": "a", "receiver": "b"},
            "trip": {"sender": "a", "relay": "b", "receiver": "a"},
            "three": {"sender": "a", "relay": "b", "receiver": "c"},
            "together": {"sender": "a", "relay": "a", "receiver": "a"},
        },
    },
    "rig.toml",
)
ROLES = ("source", "relay", "sink")


def deployment(placement, nodes=3):
    levels = {"pattern": "pipeline", "nodes": nodes, "network": "wire", "placement": placement}
    return deployment_of(Treatment.of({}, levels), dict.fromkeys(ROLES, "x/y"), (), RIG)


def path(of):
    """Return (process, host, hop) of each node of the path, in its order."""
    by_number = {node.node: node for node in of.nodes}
    (flow,) = of.flows
    nodes = [by_number[n] for n in (flow.sender, *flow.relays, *flow.receivers)]
    return [(node.process, of.host_of(node), node.hop) for node in nodes]


def test_a_change_of_the_host_passes_a_bridge_process_on_each_host():
    assert path(bridged(deployment("once"), "bridges/x")) == [
        ("source-0", "a", 0), ("relay-0", "a", 1), ("bridge-0", "a", 2), ("bridge-1", "b", 3),
        ("sink-0", "b", 4),
    ]  # fmt: skip


def test_a_round_trip_passes_two_bridges():
    assert path(bridged(deployment("trip"), "bridges/x")) == [
        ("source-0", "a", 0), ("bridge-0", "a", 1), ("bridge-1", "b", 2), ("relay-0", "b", 3),
        ("bridge-2", "b", 4), ("bridge-3", "a", 5), ("sink-0", "a", 6),
    ]  # fmt: skip


def test_bridge_processes_are_of_their_own_kind_and_the_nodes_keep_their_numbers():
    before, after = deployment("three"), bridged(deployment("three"), "bridges/x")
    kinds = [process.kind for process in after.processes]
    assert kinds == ["node"] * 3 + [BRIDGE] * 4
    assert [n.node for n in after.nodes] == list(range(7))
    assert [n.process for n in after.nodes[:3]] == [n.process for n in before.nodes]
    assert len({(n.role, n.index) for n in after.nodes}) == 7
    assert Deployment.from_json(after.to_json()) == after


def test_entries_and_exits_alternate_and_name_each_other():
    ends = bridge_ends(bridged(deployment("trip"), "bridges/x"))
    assert [(n, end.kind, end.other) for n, end in sorted(ends.items())] == [
        (3, ENTRY, 4), (4, EXIT, 3), (5, ENTRY, 6), (6, EXIT, 5),
    ]  # fmt: skip


def test_without_a_change_of_the_host_no_bridge_exists():
    assert bridged(deployment("together"), "bridges/x") == deployment("together")


def test_a_bridge_at_one_end_only_is_refused():
    whole = bridged(deployment("once"), "bridges/x")
    (flow,) = whole.flows
    one_end = replace(flow, relays=flow.relays[:-1])
    with pytest.raises(UsageError, match="passes 1 bridge process.*one at each end"):
        replace(whole, flows=(one_end,))


def test_a_bridge_with_both_ends_on_one_host_is_refused():
    whole = bridged(deployment("once"), "bridges/x")
    moved = (*whole.processes[:-1], Process("bridge-1", BRIDGE, "a"))
    with pytest.raises(UsageError, match="bridge-0 and bridge-1 are both on a"):
        replace(whole, processes=moved)


@pytest.mark.parametrize(
    ("levels", "name"), [({}, ""), ({"bridge": "none"}, ""), ({"bridge": "x"}, "x")]
)
def test_the_level_none_is_no_bridge(levels, name):
    assert bridge_of(Treatment.of({}, levels)) == name
