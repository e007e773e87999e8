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
    assert not any("recorded" in flow for flow in flows.values())
    for topic, rate_hz in RATES_HZ.items():
        assert flows[topic]["rate_hz"] == pytest.approx(rate_hz, rel=0.01)
    # One message in the time of the whole bag.
    assert flows[MAP]["rate_hz"] == pytest.approx(1 / SECONDS, rel=0.03)
    assert flows[SCAN]["qos"] == {
        "reliability": "best_effort", "history": "keep_last", "durability": "volatile", "depth": 5,
    }  # fmt: skip
    assert "qos" not in flows[ODOMETRY]


def test_the_flows_of_a_bag_are_a_valid_topology_with_a_node_for_each_namespace(tmp_path):
    table = bag_topology(write_bag(tmp_path / "bag"))
    assert [node["name"] for node in table["node"]] == ["base", "lidar", "map", "recorder"]
    flows = parse_topology(table, PLACED, "study.toml")
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
    assert (flow["bytes"], flow["recorded"]) == (30, "10 to 60 bytes")


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
