"""Test that patterns expand into nodes and flows, and that contradictions are rejected."""

import pytest

from wattwire.model.deployment import (
    PATTERNS,
    ROLES,
    Deployment,
    Flow,
    Node,
    Process,
    deployment_of,
    deployment_of_run,
    service_of,
)
from wattwire.model.errors import UsageError
from wattwire.model.treatment import Treatment


def expanded(pattern, services=(), **levels):
    treatment = Treatment.of({}, {"pattern": pattern, "clients": 1, **levels})
    cells = dict.fromkeys(PATTERNS[pattern].roles, "loopback/python")
    return deployment_of(treatment, cells, services)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_consists_of_known_roles_and_flows_from_each_sender(pattern):
    deployment = expanded(pattern, clients=PATTERNS[pattern].factors and 3 or 1, nodes=5)
    assert {node.role for node in deployment.nodes} <= {*ROLES}
    senders = [node.node for node in deployment.nodes if node.sends]
    assert [flow.sender for flow in deployment.flows] == senders
    assert [node.node for node in deployment.nodes] == list(range(len(deployment.nodes)))
    assert Deployment.from_json(deployment.to_json()) == deployment


def test_a_topic_has_one_flow_to_all_subscribers():
    deployment = expanded("topic", clients=3)
    (flow,) = deployment.flows
    assert (flow.receivers, flow.expected_per_message) == ((1, 2, 3), 3)
    assert deployment.other_side(0) == [1, 2, 3]
    assert [deployment.other_side(node) for node in (1, 2, 3)] == [[0]] * 3


def test_each_client_of_a_service_has_a_flow_of_calls():
    deployment = expanded("service", clients=2)
    assert [(flow.sender, flow.receivers) for flow in deployment.flows] == [(1, (0,)), (2, (0,))]
    assert [flow.expected_per_message for flow in deployment.flows] == [1, 1]
    assert deployment.other_side(0) == [1, 2] and deployment.senders(0) == [1, 2]


def test_a_pipeline_is_a_chain_whose_nodes_accept_the_sources_messages():
    deployment = expanded("pipeline", nodes=5)
    (flow,) = deployment.flows
    assert flow.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert [node.hop for node in deployment.nodes] == [0, 1, 2, 3, 4]
    assert [len(deployment.neighbours(node)) for node in range(5)] == [1, 2, 2, 2, 1]
    assert [deployment.other_side(node) for node in range(5)] == [[1], [0], [0], [0], [0]]


def test_a_node_connects_to_its_successor_if_the_receiving_end_listens():
    deployment = expanded("pipeline", nodes=4)
    listening = deployment.listening("sink")
    assert listening == {1, 2, 3}
    assert [deployment.connects_to(node, listening) for node in range(4)] == [{1}, {2}, {3}, set()]
    listening = deployment.listening("source")
    assert [deployment.connects_to(node, listening) for node in range(4)] == [set(), {0}, {1}, {2}]
    assert deployment.listening("none") == set()
    assert [deployment.connects_to(node, frozenset()) for node in range(4)] == [set()] * 4


def test_a_label_names_the_hop_of_a_process_only_if_its_messages_pass_relays():
    deployment = expanded("pipeline", ["broker"], nodes=4)
    names = ("source-0", "relay-1", "sink-0", "broker")
    labels = ["source-0 (hop 0)", "relay-1 (hop 2)", "sink-0 (hop 3)", "broker"]
    assert [deployment.label(name) for name in names] == labels
    assert expanded("topic").label("subscriber-0") == "subscriber-0"


NODES = (
    Node(0, "source-0", "source", 0, 0, "c"),
    Node(1, "relay-0", "relay", 0, 1, "c"),
    Node(2, "sink-0", "sink", 0, 2, "c"),
)
PROCESSES = tuple(Process(node.process, "node") for node in NODES)
CHAIN = Flow("source-0", 0, (2,), (1,))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((PROCESSES, NODES, (Flow("f", 0, ()),)), "flow f: it has no receiver"),
        (((*PROCESSES, PROCESSES[1]), NODES, (CHAIN,)), "2 processes have the name relay-0"),
        ((PROCESSES, (*NODES, NODES[1]), (CHAIN,)), "2 nodes have the number 1"),
        ((PROCESSES, NODES, (CHAIN, CHAIN)), "2 flows have the name source-0"),
        ((PROCESSES[:2], NODES, (CHAIN,)), "its process sink-0 is not listed"),
        ((PROCESSES, NODES, (Flow("f", 0, (7,)),)), "flow f: node 7 is not listed"),
        (
            (PROCESSES, NODES, (Flow("f", 1, (2,)), Flow("g", 2, (1,)))),
            "flow f: it begins at relay-0, but a relay sends only what it receives",
        ),
        ((PROCESSES, NODES, (Flow("f", 0, (2,), (1, 1)),)), "its path passes a node twice"),
        (((Process("p", "cell"),), (), ()), "process p: found kind cell; allowed: node, service"),
        (((Process("p", "node", "mars"),), (), ()), "process p: found host mars; allowed: local"),
    ],
)
def test_contradictions_are_rejected_with_their_place(parts, reason):
    with pytest.raises(UsageError, match="deployment: .*" + reason):
        Deployment(*parts)


def test_a_run_has_the_stored_deployment_and_an_imported_run_has_no_processes():
    assert deployment_of_run({"deployment": expanded("topic").to_json()}) == expanded("topic")
    assert deployment_of_run({"levels": {}}).processes == ()


def test_a_restarted_service_keeps_its_name():
    assert [service_of(name) for name in ("broker", "broker.try2", "client-0")] == [
        "broker", "broker", "client-0",
    ]  # fmt: skip
