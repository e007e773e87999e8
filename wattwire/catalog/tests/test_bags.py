"""A recorded bag comes back as its flows: topics, types, sizes, rates and QoS."""

from __future__ import annotations

import pytest
from rosbags import rosbag1, rosbag2
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.typesys import Stores, get_typestore

from wattwire.catalog.bags import bag_topology, is_bag
from wattwire.model.deployment import PLACED
from wattwire.model.errors import UsageError
from wattwire.model.flows import parse_topology

SECOND_NS = 1_000_000_000
NEVER = QosTime(0, 0)
BEST_EFFORT = Qos(
    QosHistory.KEEP_LAST, 5, QosReliability.BEST_EFFORT, QosDurability.VOLATILE, NEVER, NEVER,
    QosLiveliness.AUTOMATIC, NEVER, False,
)  # fmt: skip
SCAN, ODOMETRY, MAP = "/lidar/scan", "/base/odom", "/map"
TYPES = {
    SCAN: "sensor_msgs/msg/LaserScan", ODOMETRY: "nav_msgs/msg/Odometry",
    MAP: "nav_msgs/msg/OccupancyGrid",
}  # fmt: skip
SIZES = {SCAN: 4364, ODOMETRY: 724, MAP: 40_000}
RATES_HZ = {SCAN: 10.0, ODOMETRY: 30.0}
SECONDS = 4


def without_remarks(table):
    flows = [{k: v for k, v in flow.items() if k != "remarks"} for flow in table["flow"]]
    return {**table, "flow": flows}


def times_ns(rate_hz):
    return [round(number * SECOND_NS / rate_hz) for number in range(int(SECONDS * rate_hz))]


def write_bag(path, storage=None):
    """Write a bag of ROS 2: a scan, an odometry whose times vary by 1 ms, and one map."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    plugin = {"storage_plugin": storage} if storage else {}
    with rosbag2.Writer(path, version=9, **plugin) as writer:
        connections = {
            topic: writer.add_connection(
                topic, TYPES[topic], typestore=store,
                offered_qos_profiles=[BEST_EFFORT] if topic == SCAN else [],
            )
            for topic in TYPES
        }  # fmt: skip
        sent = [(time, SCAN) for time in times_ns(RATES_HZ[SCAN])]
        sent += [
            (time + 1_000_000 * (number % 2), ODOMETRY)
            for number, time in enumerate(times_ns(RATES_HZ[ODOMETRY]))
        ]
        for time_ns, topic in sorted([*sent, (SECOND_NS, MAP)]):
            writer.write(connections[topic], SECOND_NS + time_ns, bytes(SIZES[topic]))
    return path


@pytest.mark.parametrize("storage", [*rosbag2.StoragePlugin], ids=lambda plugin: plugin.value)
def test_a_bag_comes_back_as_its_flows_with_exact_sizes_and_rates_within_one_percent(
    tmp_path, storage
):
    table = bag_topology(write_bag(tmp_path / "bag", storage))
    flows = {flow["topic"]: flow for flow in table["flow"]}
    assert {topic: flow["type"] for topic, flow in flows.items()} == TYPES
    assert {topic: flow["bytes"] for topic, flow in flows.items()} == SIZES
    assert not any("bytes" in flow.get("remarks", {}) for flow in flows.values())
    for topic, rate_hz in RATES_HZ.items():
        assert flows[topic]["rate_hz"] == pytest.approx(rate_hz, rel=0.01)
    # One message in the time of the whole bag.
    assert flows[MAP]["rate_hz"] == pytest.approx(1 / SECONDS, rel=0.03)
    assert flows[MAP]["remarks"]["rate_hz"].startswith("mean of the bag; recorded: 1 in 0 of ")
    assert "remarks" not in flows[SCAN]
    assert flows[SCAN]["qos"] == {
        "reliability": "best_effort", "history": "keep_last", "durability": "volatile", "depth": 5,
    }  # fmt: skip
    assert "qos" not in flows[ODOMETRY]


def test_the_flows_of_a_bag_are_a_valid_topology_with_a_node_for_each_namespace(tmp_path):
    table = bag_topology(write_bag(tmp_path / "bag"))
    assert [node["name"] for node in table["node"]] == ["base", "lidar", "map", "recorder"]
    flows = parse_topology(without_remarks(table), PLACED, "study.toml")
    assert [(flow.name, flow.sender, flow.receivers) for flow in flows] == [
        ("base_odom", "base", ("recorder",)),
        ("lidar_scan", "lidar", ("recorder",)),
        ("map", "map", ("recorder",)),
    ]


def test_a_file_of_a_bag_has_the_flows_of_its_folder(tmp_path):
    path = write_bag(tmp_path / "bag", rosbag2.StoragePlugin.MCAP)
    (file,) = path.glob("*.mcap")
    assert is_bag(file)
    assert bag_topology(file) == bag_topology(path)


def test_messages_of_different_sizes_have_their_mean_and_a_remark(tmp_path):
    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/x", "std_msgs/msg/String", typestore=store)
        for number, size in enumerate((10, 20, 60)):
            writer.write(connection, number * SECOND_NS, bytes(size))
    (flow,) = bag_topology(tmp_path / "bag")["flow"]
    assert flow["bytes"] == 30
    assert flow["remarks"] == {"bytes": "mean; recorded: 10 to 60 bytes"}


def flows_at(path, times_ns):
    """Return the flows of a bag with messages of these topics at these times."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(path, version=9) as writer:
        connections = {
            topic: writer.add_connection(topic, "std_msgs/msg/String", typestore=store)
            for topic in times_ns
        }
        sent = [(time_ns, topic) for topic, times in times_ns.items() for time_ns in times]
        for time_ns, topic in sorted(sent):
            writer.write(connections[topic], time_ns, bytes(20))
    return {flow["topic"]: flow for flow in bag_topology(path)["flow"]}


def test_a_burst_of_latched_messages_has_the_mean_rate_of_the_bag_and_a_remark(tmp_path):
    latched = [SECOND_NS, SECOND_NS + 1_000_000, SECOND_NS + 2_000_000]
    flows = flows_at(tmp_path / "bag", {
        "/odom": [number * SECOND_NS // 10 for number in range(101)], "/tf_static": latched,
    })  # fmt: skip
    assert (flows["/odom"]["rate_hz"], flows["/tf_static"]["rate_hz"]) == (10.0, 0.3)
    remark = "mean of the bag; recorded: 3 in 0.002 of 10 s"
    assert flows["/tf_static"]["remarks"] == {"rate_hz": remark}


def test_a_message_of_a_long_bag_has_the_lowest_rate_and_a_remark(tmp_path):
    flows = flows_at(tmp_path / "bag", {
        "/odom": [number * SECOND_NS for number in range(1201)], "/map": [0],
    })  # fmt: skip
    assert flows["/map"]["rate_hz"] == 0.001
    remark = "the lowest rate of a flow; recorded: 0.000833333 Hz"
    assert flows["/map"]["remarks"] == {"rate_hz": remark}


def test_a_bag_of_ros_1_names_the_nodes_that_published(tmp_path):
    store = get_typestore(Stores.ROS1_NOETIC)
    path = tmp_path / "robot.bag"
    with rosbag1.Writer(path) as writer:
        for caller in ("/left/camera", "/right/camera"):
            connection = writer.add_connection(
                "/image", "std_msgs/msg/String", typestore=store, callerid=caller
            )
            for number in range(11):
                writer.write(connection, number * SECOND_NS // 10, bytes(100))
    table = bag_topology(path)
    assert [flow["from"] for flow in table["flow"]] == ["left_camera", "right_camera"]
    assert [flow["bytes"] for flow in table["flow"]] == [100, 100]
    assert [flow["rate_hz"] for flow in table["flow"]] == [10.0, 10.0]
    assert len(parse_topology(table, PLACED, "study.toml")) == 2


def test_two_connections_of_one_node_and_topic_are_one_flow(tmp_path):
    store = get_typestore(Stores.ROS1_NOETIC)
    path = tmp_path / "robot.bag"
    with rosbag1.Writer(path) as writer:
        for restart in range(2):
            connection = writer.add_connection(
                "/image", "std_msgs/msg/String", typestore=store, callerid="/camera",
                latching=restart,
            )  # fmt: skip
            for number in range(10):
                writer.write(connection, (10 * restart + number) * SECOND_NS // 10, bytes(100))
    table = bag_topology(path)
    (flow,) = parse_topology(table, PLACED, "study.toml")
    assert (flow.name, flow.sender, flow.rate_hz) == ("image", "camera", 10.0)


def refused(path) -> str:
    with pytest.raises(UsageError) as caught:
        bag_topology(path)
    return str(caught.value)


def test_an_empty_bag_is_refused(tmp_path):
    with rosbag2.Writer(tmp_path / "bag", version=9):
        pass
    assert "the bag is empty" in refused(tmp_path / "bag")
    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(tmp_path / "silent", version=9) as writer:
        writer.add_connection("/x", "std_msgs/msg/String", typestore=store)
    assert "the bag is empty" in refused(tmp_path / "silent")


def test_a_bag_without_types_is_refused_with_the_topic(tmp_path):
    path = write_bag(tmp_path / "bag")
    metadata = path / "metadata.yaml"
    text = metadata.read_text(encoding="utf-8")
    assert text.count(TYPES[SCAN]) == 1
    metadata.write_text(text.replace(TYPES[SCAN], "''"), encoding="utf-8")
    text = refused(path)
    assert f"topic {SCAN}: found no type" in text
    assert str(path) in text


def test_messages_of_one_time_have_no_rate(tmp_path):
    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/x", "std_msgs/msg/String", typestore=store)
        writer.write(connection, SECOND_NS, bytes(10))
    assert "topic /x: all messages have one time" in refused(tmp_path / "bag")


def test_a_folder_or_a_file_that_is_no_bag_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "found no metadata.yaml" in refused(tmp_path / "folder")
    (tmp_path / "folder" / "metadata.yaml").write_text("[", encoding="utf-8")
    assert "cannot be read" in refused(tmp_path / "folder")
    (tmp_path / "x.bag").write_bytes(b"#ROSBAG V9.9\n")
    assert "cannot be read" in refused(tmp_path / "x.bag")
    assert not is_bag(tmp_path / "x.json")


def test_a_damaged_bag_is_refused_whatever_its_reader_raises(tmp_path):
    path = write_bag(tmp_path / "mcap", rosbag2.StoragePlugin.MCAP)
    (file,) = path.glob("*.mcap")
    content = bytearray(file.read_bytes())
    for name, damaged in {
        "short": content[: len(content) // 2],
        "text": content[:20] + b"\xff" * 200 + content[220:],
    }.items():
        (tmp_path / f"{name}.mcap").write_bytes(damaged)
        assert f"{name}.mcap: this bag cannot be read" in refused(tmp_path / f"{name}.mcap")
    path = write_bag(tmp_path / "sqlite", rosbag2.StoragePlugin.SQLITE3)
    (file,) = path.glob("*.db3")
    file.write_bytes(file.read_bytes()[:5000])
    assert "sqlite: this bag cannot be read" in refused(path)
    (path / "metadata.yaml").write_bytes(b"\xff\xfe\xff")
    assert "sqlite: this bag cannot be read" in refused(path)
