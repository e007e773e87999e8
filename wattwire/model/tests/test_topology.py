"""Test topologies: their flows and processes, iRobot's format, and the rejection of faults."""

import copy

import pytest

from wattwire.design import expand
from wattwire.model.deployment import PLACED, deployment_of, node_count
from wattwire.model.errors import UsageError
from wattwire.model.flows import flow_parts, irobot_topology, parse_topology
from wattwire.model.rig import read_rig
from wattwire.model.study import parse_study

CELLS = dict.fromkeys(("publisher", "subscriber"), "loopback/python")
SCAN = {"topic": "/scan", "from": "lidar", "to": ["slam", "costmap"], "bytes": 4000, "rate_hz": 10}
ODOMETRY = {"topic": "/odom", "from": "base", "to": ["slam"], "bytes": 700, "rate_hz": 50}
COMMAND = {"topic": "/cmd_vel", "from": "slam", "to": ["base"], "bytes": 48, "rate_hz": 20}
NODES = [{"name": name} for name in ("lidar", "base", "slam", "costmap")]
GRAPH = {"file": "robot.toml", "node": NODES, "flow": [SCAN, ODOMETRY, COMMAND]}
IROBOT = {
    "nodes": [
        {
            "node_name": "montreal",
            "publishers": [
                {"topic_name": "amazon", "msg_type": "stamped9_float32", "period_ms": 10,
                 "msg_pass_by": "shared_ptr"},
                {"topic_name": "nile", "msg_type": "stamped_vector", "msg_size": 10000,
                 "freq_hz": 20},
            ],
        },
        {
            "node_name": "lyon", "number": 2,
            "subscribers": [{"topic_name": "amazon", "msg_type": "stamped9_float32"},
                            {"topic_name": "nile", "msg_type": "stamped_vector"}],
        },
    ]
}  # fmt: skip


def study(table=GRAPH, **changes):
    document = {
        "topology": table, "factors": {"language": ["python"]},
        "fixed": {"middleware": "loopback"}, **changes,
    }  # fmt: skip
    return parse_study("robot", document, "study.toml")


def treatment_of(table=GRAPH):
    ((treatment, _),) = expand(study(table))
    return treatment


def refused(table=GRAPH, **changes) -> str:
    with pytest.raises(UsageError) as caught:
        study(table, **changes)
    return str(caught.value)


def changed(position, flow):
    table = copy.deepcopy(GRAPH)
    table["flow"][position] |= flow
    return {**table, "flow": [{k: v for k, v in f.items() if v is not None} for f in table["flow"]]}


def irobot(**changes):
    return {"file": "graph.json", **irobot_topology({**IROBOT, **changes}, "graph.json")}


def irobot_refused(document) -> str:
    with pytest.raises(UsageError) as caught:
        irobot_topology(document, "graph.json")
    return str(caught.value)


# -- flows and processes ---------------------------------------------------------------------


def test_the_flows_have_the_names_of_their_topics_and_their_own_payloads_and_rates():
    parts = flow_parts(treatment_of())
    assert [part.name for part in parts] == ["scan", "odom", "cmd_vel"]
    assert [part.treatment["payload_bytes"] for part in parts] == [4000, 700, 48]
    assert [part.treatment["rate_hz"] for part in parts] == [10, 50, 20]
    assert [part.treatment["clients"] for part in parts] == [2, 1, 1]


def test_the_flows_of_a_node_share_its_process():
    deployment = deployment_of(treatment_of(), CELLS)
    members = {process.name: process.member for process in deployment.processes}
    assert list(members.values()) == ["lidar", "slam", "costmap", "base"]
    hosted = {
        name: sorted(node.role for node in deployment.nodes if members[node.process] == name)
        for name in members.values()
    }
    assert hosted == {
        "lidar": ["publisher"],
        "slam": ["publisher", "subscriber", "subscriber"],
        "costmap": ["subscriber"],
        "base": ["publisher", "subscriber"],
    }
    assert node_count(treatment_of()) == 4


def test_each_flow_has_a_sender_number_of_its_own_and_reaches_the_nodes_that_subscribe():
    deployment = deployment_of(treatment_of(), CELLS)
    by_number = {node.node: node for node in deployment.nodes}
    reached = {
        flow.name: (
            deployment.member_of(by_number[flow.sender]),
            [deployment.member_of(by_number[number]) for number in flow.receivers],
        )
        for flow in deployment.flows
    }
    assert reached == {
        "scan": ("lidar", ["slam", "costmap"]),
        "odom": ("base", ["slam"]),
        "cmd_vel": ("slam", ["base"]),
    }
    assert len({flow.sender for flow in deployment.flows}) == 3


def test_a_node_may_receive_its_own_flow():
    own = {**GRAPH, "flow": [*GRAPH["flow"], {**SCAN, "topic": "/tf", "to": ["lidar"]}]}
    deployment = deployment_of(treatment_of(own), CELLS)
    (flow,) = [flow for flow in deployment.flows if flow.name == "tf"]
    processes = {node.node: node.process for node in deployment.nodes}
    assert processes[flow.sender] == processes[flow.receivers[0]]


def test_two_publishers_of_a_topic_are_two_flows_with_the_names_of_their_nodes():
    both = {**GRAPH, "flow": [*GRAPH["flow"], {**SCAN, "from": "base"}]}
    names = [part.name for part in flow_parts(treatment_of(both))]
    assert names == ["scan-lidar", "odom", "cmd_vel", "scan-base"]


def test_a_factor_selects_flows_and_only_their_nodes_run():
    varied = study(factors={"flows": ["cmd_vel", "scan+odom+cmd_vel"]},
                   fixed={"cell": "loopback/python"})  # fmt: skip
    some, every = (treatment for treatment, _ in expand(varied))
    assert (node_count(some), node_count(every)) == (2, 4)


def test_the_identity_of_a_treatment_contains_the_receivers_of_its_flows():
    assert treatment_of().key != treatment_of(changed(0, {"to": ["slam", "costmap", "base"]})).key


def test_the_deployment_of_a_topology_is_read_as_it_was_written():
    deployment = deployment_of(treatment_of(), CELLS)
    assert type(deployment).from_json(deployment.to_json()) == deployment


def test_a_node_runs_on_the_host_of_its_place_and_the_others_on_that_of_members():
    rig = read_rig(
        {
            "hosts": {"robot": {"kind": "netns"}, "edge": {"kind": "netns"}},
            "networks": {"native": {}},
            "placements": {"apart": {"member": "robot", "receiver": "edge"}},
        },
        "rig.toml",
        placed=PLACED,
    )
    table = {**GRAPH, "node": [*NODES[:3], {"name": "costmap", "place": "receiver"}]}
    ((treatment, _),) = expand(study(table, rig=dict(rig.document)))
    deployment = deployment_of(treatment, CELLS, rig=rig)
    hosts = {process.member: process.host for process in deployment.processes}
    assert hosts == {"lidar": "robot", "base": "robot", "slam": "robot", "costmap": "edge"}


def test_quality_of_service_becomes_the_settings_of_the_flow():
    table = changed(0, {"qos": {"reliability": "best_effort", "depth": 1}})
    scan, odometry, _ = flow_parts(treatment_of(table))
    assert scan.own_settings == {"reliability": "best_effort", "depth": 1}
    assert odometry.own_settings == {}


# -- iRobot's format -------------------------------------------------------------------------


def test_a_topology_of_irobot_has_the_bytes_of_header_and_data_and_the_rate_of_its_period():
    amazon, nile = parse_topology(irobot(), PLACED, "study.toml")
    assert (amazon.name, amazon.payload_bytes, amazon.rate_hz) == ("amazon", 20 + 36, 100)
    assert (nile.name, nile.payload_bytes, nile.rate_hz) == ("nile", 20 + 10_000, 20)


def test_a_node_with_a_number_has_copies():
    amazon, _ = parse_topology(irobot(), PLACED, "study.toml")
    assert (amazon.sender, amazon.receivers) == ("montreal", ("lyon_1", "lyon_2"))


def test_irobot_states_the_quality_of_service_at_both_ends():
    document = copy.deepcopy(IROBOT)
    ends = [document["nodes"][0]["publishers"][0], document["nodes"][1]["subscribers"][0]]
    for end in ends:
        end["qos_reliability"] = "best_effort"
    flow = irobot_topology(document, "graph.json")["flow"][0]
    assert flow["qos"] == {"reliability": "best_effort"}
    del ends[1]["qos_reliability"]
    assert "qos_reliability" in irobot_refused(document)


@pytest.mark.parametrize(
    ("path", "value", "fragment"),
    [
        ((0, "publishers", 0, "period_ms"), 0, "period_ms: found 0"),
        ((0, "publishers", 1, "freq_hz"), 0, "freq_hz: found 0"),
        ((0, "publishers", 0, "msg_type"), "stamped4_int32", "found the types"),
        ((1, "subscribers", 0, "topic_name"), "danube", "no subscriber"),
        ((0, "publishers", 1, "msg_size"), -1, "msg_size: found -1"),
        ((0, "publishers", 1, "msg_size"), "10k", "msg_size: found '10k'"),
        ((0, "publishers", 0, "colour"), 1, "colour"),
        ((0, "node_name"), 7, "node_name"),
        ((1, "number"), 0, "number: found 0"),
        ((1, "number"), 1_000_000_000, "found more than 1,000 nodes"),
        ((0, "clients"), [{}], "clients: found [{}]"),
        ((0, "clients"), 5, "clients: found 5"),
        ((0, "publishers", 0, "qos_depth"), [1], "qos_depth: found [1]"),
        ((0, "publishers", 1, "freq_hz"), 10**400, "freq_hz: found 1000"),
        ((0, "publishers", 1, "freq_hz"), float("inf"), "freq_hz: found inf"),
    ],
)
def test_a_fault_of_irobots_format_is_refused_with_its_place(path, value, fragment):
    document = copy.deepcopy(IROBOT)
    item = document["nodes"]
    for key in path[:-1]:
        item = item[key]
    item[path[-1]] = value
    text = irobot_refused(document)
    assert fragment in text
    assert text.startswith("graph.json: ")


def test_copies_of_a_publisher_count_as_flows():
    document = copy.deepcopy(IROBOT)
    document["nodes"][0]["number"] = 251
    assert "found more than 500 publishers" in irobot_refused(document)


def test_an_unknown_type_needs_its_size():
    document = copy.deepcopy(IROBOT)
    for end in (document["nodes"][0]["publishers"][0], document["nodes"][1]["subscribers"][0]):
        end["msg_type"] = "my_plugin::robot_pose"
    assert "robot_pose' without a known size" in irobot_refused(document)
    document["nodes"][0]["publishers"][0]["msg_size"] = 56
    assert irobot_topology(document, "graph.json")["flow"][0]["bytes"] == 76


def test_a_subscription_without_a_publisher_is_refused():
    document = copy.deepcopy(IROBOT)
    document["nodes"][1]["subscribers"].append({"topic_name": "volga", "msg_type": "stamped_int64"})
    assert "subscribes to volga, which no node publishes" in irobot_refused(document)


def test_two_nodes_of_one_name_are_refused():
    document = copy.deepcopy(IROBOT)
    document["nodes"].append({**document["nodes"][1], "node_name": "montreal", "number": None})
    assert "2 nodes with the name montreal" in refused(
        {"file": "g.json", **irobot_topology(document, "g.json")}
    )


# -- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "fragment"),
    [
        ({"to": []}, "to: found no receiver"),
        ({"to": None}, "to: found no receiver"),
        ({"from": None}, "from: found no sender"),
        ({"to": ["map"]}, 'unknown node "map"'),
        ({"to": ["slam", "slam"]}, "twice"),
        ({"rate_hz": 0}, "rate_hz: found 0"),
        ({"rate_hz": -5}, "rate_hz: found -5"),
        ({"rate_hz": None}, "rate_hz: found no rate"),
        ({"bytes": None}, "neither bytes nor a type"),
        ({"bytes": None, "type": "my_msgs/msg/Pose"}, "'my_msgs/msg/Pose' without a known size"),
        ({"bytes": 4}, "bytes: found 4"),
        ({"bytes": 70_000_000}, "bytes: found 70000000"),
        ({"bytes": float("inf")}, "bytes: found inf"),
        ({"bytes": float("nan")}, "bytes: found nan"),
        ({"rate_hz": float("inf")}, "rate_hz: found inf"),
        ({"qos": {"colour": "red"}}, "colour"),
        ({"sender": "lidar"}, "sender"),
    ],
)
def test_a_fault_of_a_flow_is_refused_with_file_flow_and_key(flow, fragment):
    text = refused(changed(0, flow))
    assert fragment in text
    assert "topology robot.toml: flow /scan" in text


def test_a_type_of_irobot_has_a_known_size():
    table = changed(0, {"bytes": None, "type": "stamped_int64"})
    assert flow_parts(treatment_of(table))[0].treatment["payload_bytes"] == 28


@pytest.mark.parametrize(
    ("table", "fragment"),
    [
        ({**GRAPH, "node": [*NODES, {"name": "lidar"}]}, "2 nodes with the name lidar"),
        ({**GRAPH, "node": [*NODES, {"name": "arm"}]}, "node arm: it neither publishes"),
        ({**GRAPH, "node": [{"name": "a node"}]}, "a name of letters"),
        ({**GRAPH, "node": [{"name": "lidar", "place": "moon"}]}, "moon"),
        ({**GRAPH, "flow": []}, "found no flow"),
        ({**GRAPH, "flow": [*GRAPH["flow"], SCAN]}, "2 flows would have the name"),
        ({**GRAPH, "edges": []}, "edges"),
        ("robot.toml", "found 'robot.toml'"),
        ({**GRAPH, "flow": [{**SCAN, "type": "a"}, {**SCAN, "from": "base", "type": "b"}],
          "node": [{"name": n} for n in ("lidar", "base", "slam", "costmap")]},
         "topic /scan: found the types a and b"),
    ],
)  # fmt: skip
def test_a_fault_of_a_topology_is_refused(table, fragment):
    assert fragment in refused(table)


def test_a_study_has_a_topology_or_flows():
    flow = {"name": "x", "payload_bytes": 64, "rate_hz": 10}
    assert "both topology and [[flow]]" in refused(flow=[flow])


def test_the_levels_of_flows_are_not_levels_of_the_study():
    assert "payload_bytes is set" in refused(fixed={"middleware": "loopback", "payload_bytes": 64})
