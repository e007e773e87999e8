"""Read the flows of a recorded ROS bag: topics with their types, sizes, rates and QoS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.flows import PAYLOAD_BYTES, RATE_HZ, plain_name

if TYPE_CHECKING:
    from rosbags import rosbag1, rosbag2
else:
    rosbag1, rosbag2 = LazyModule("rosbags.rosbag1"), LazyModule("rosbags.rosbag2")

SECOND_NS = 1_000_000_000
BAG_1 = ".bag"
"""Ending of a bag of ROS 1."""
STORAGES_2 = (".mcap", ".db3")
"""Endings of the files of a bag of ROS 2: a folder with METADATA, or one of these files alone."""
METADATA = "metadata.yaml"
REMARKS = "remarks"
"""Key of a flow: a table of its keys whose values the bag does not state exactly, with remarks."""
RECORDER = "recorder"
"""Node that receives all flows of a bag, as the recorder did."""
QOS_LEVELS = {
    "reliability": ("reliable", "best_effort"),
    "history": ("keep_last", "keep_all"),
    "durability": ("volatile", "transient_local"),
}


@dataclass
class _Recorded:
    """What a bag contains of one topic and type of one sender."""

    connection: Any
    sender: str
    messages: int = 0
    bytes_total: int = 0
    bytes_min: int = 0
    bytes_max: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, time_ns: int, size: int) -> None:
        is_first = not self.messages
        self.bytes_min = size if is_first else min(self.bytes_min, size)
        self.bytes_max = max(self.bytes_max, size)
        self.first_ns = time_ns if is_first else min(self.first_ns, time_ns)
        self.last_ns = max(self.last_ns, time_ns)
        self.bytes_total += size
        self.messages += 1


def is_bag(path: Path) -> bool:
    """Return whether a path has the form of a bag: a folder, or a file with its ending."""
    return path.is_dir() or path.suffix in (BAG_1, *STORAGES_2)


def names_no_nodes(path: Path) -> bool:
    """Return whether a source is a bag of ROS 2, which does not name the nodes that published."""
    return is_bag(path) and path.suffix != BAG_1


def bag_topology(path: Path) -> dict[str, Any]:
    """Return the table of the topology that a bag recorded; its flows can have REMARKS.

    A bag of ROS 1 names the nodes that published. One of ROS 2 does not: the node is then the first
    part of the topic's name. All flows end at RECORDER. Raises UsageError for a bag that cannot be
    read, or without flows, and MissingError without the library.
    """
    with _opened(path) as reader:
        recorded = _recorded(reader, path)
    if not recorded:
        raise UsageError(
            f"{path}: the bag is empty: found no message; allowed: a bag with messages. Record the "
            "topics while the robot runs."
        )
    first_ns = min(entry.first_ns for entry in recorded)
    bag_ns = max(entry.last_ns for entry in recorded) - first_ns
    senders = dict.fromkeys(entry.sender for entry in recorded)
    receiver = RECORDER if RECORDER not in senders else f"bag_{RECORDER}"
    flows = [_flow(entry, receiver, bag_ns, path) for entry in recorded]
    nodes = [{"name": name} for name in (*senders, receiver)]
    return {"node": nodes, "flow": flows}


def _recorded(reader: Any, path: Path) -> list[_Recorded]:
    """Return what a bag contains, sorted by topic.

    A node that published a topic on several connections, such as after a restart, is one sender.
    """
    of_connection: dict[Any, _Recorded] = {}
    by_flow: dict[tuple[str, str, str], _Recorded] = {}
    for each in sorted(reader.connections, key=lambda each: (each.topic, each.id)):
        if not each.msgtype:
            raise UsageError(
                f"{path}: topic {each.topic}: found no type; allowed: a bag that names "
                "the type of each topic. Record it again, or write a topology file "
                "(docs/topologies.md)."
            )
        sender = _sender(each)
        entry = by_flow.setdefault((each.topic, sender, each.msgtype), _Recorded(each, sender))
        of_connection[each.id] = entry
    for connection, time_ns, data in reader.messages():
        of_connection[connection.id].add(time_ns, len(data))
    return [entry for entry in by_flow.values() if entry.messages]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a bag with the library's reader for it, and convert its errors."""
    try:
        reader_type = (rosbag1 if path.suffix == BAG_1 else rosbag2).Reader
    except ImportError as error:
        raise MissingError(
            f"{path}: bags need the package rosbags ({error}); install it with `make setup` or pip"
        ) from error
    is_device = path.exists() and not path.is_dir() and not path.is_file()  # may never end
    if is_device or (path.is_dir() and not (path / METADATA).is_file()):
        missing = "plain file" if is_device else METADATA
        raise UsageError(
            f"{path}: found no {missing}; allowed: the folder of a bag of ROS 2, or a file "
            f"NAME{BAG_1} of ROS 1"
        )
    try:
        with reader_type(path) as reader:
            yield reader
    except UsageError:
        raise
    except Exception as error:  # a damaged bag: errors of SQLite, compression, struct, Unicode …
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{path}: this bag cannot be read ({reason}); allowed: the folder of a bag of ROS 2, "
            f"or a file NAME{BAG_1} of ROS 1, or NAME{STORAGES_2[0]} or NAME{STORAGES_2[1]}. If it "
            "is one, record it again."
        ) from error


def _sender(connection: Any) -> str:
    """Return the name of the node that published."""
    caller = getattr(connection.ext, "callerid", None)
    return plain_name(caller or connection.topic.strip("/").partition("/")[0])


def _flow(entry: _Recorded, receiver: str, bag_ns: int, path: Path) -> dict[str, Any]:
    """Return the table of a flow with the mean size and rate of its messages."""
    topic = entry.connection.topic
    remarks: dict[str, str] = {}
    mean_bytes = round(entry.bytes_total / entry.messages)
    flow: dict[str, Any] = {
        "topic": topic,
        "from": entry.sender,
        "to": [receiver],
        "type": entry.connection.msgtype,
        "bytes": max(PAYLOAD_BYTES[0], mean_bytes),
        "rate_hz": _rate_hz(entry, bag_ns, remarks, f"{path}: topic {topic}"),
    }
    if qos := _qos(entry.connection):
        flow["qos"] = qos
    if entry.bytes_min != entry.bytes_max or mean_bytes < PAYLOAD_BYTES[0]:
        remarks["bytes"] = f"mean; recorded: {entry.bytes_min} to {entry.bytes_max} bytes"
    return {**flow, REMARKS: remarks} if remarks else flow


def _rate_hz(entry: _Recorded, bag_ns: int, remarks: dict[str, str], place: str) -> float:
    """Return the mean rate of a topic, and add a remark if it is not that of its own messages.

    Messages of less than half the time of the bag, such as maps and transforms that are sent at the
    start, have the mean of the whole bag: the rate within their own time would be that of a burst.
    """
    span_ns, intervals = entry.last_ns - entry.first_ns, entry.messages - 1
    if span_ns < bag_ns / 2:
        remarks["rate_hz"] = (
            f"mean of the bag; recorded: {entry.messages} in {span_ns / SECOND_NS:.3g} of "
            f"{bag_ns / SECOND_NS:.3g} s"
        )
        span_ns, intervals = bag_ns, entry.messages
    if span_ns <= 0:
        raise UsageError(
            f"{place}: all messages have one time, so it has no rate; allowed: a bag of some "
            "seconds. Record it again."
        )
    recorded_hz = intervals * SECOND_NS / span_ns
    rate_hz = min(max(RATE_HZ[0], recorded_hz), RATE_HZ[1])
    if rate_hz != recorded_hz:
        limit = "lowest" if rate_hz == RATE_HZ[0] else "highest"
        remarks["rate_hz"] = f"the {limit} rate of a flow; recorded: {recorded_hz:.6g} Hz"
    return float(f"{rate_hz:.6g}")


def _qos(connection: Any) -> dict[str, Any]:
    """Return the QoS that the publisher offered, as far as the bag has it."""
    profiles = getattr(connection.ext, "offered_qos_profiles", None)
    if not profiles:
        return {}
    profile = profiles[0]
    stated = {name: getattr(profile, name).name.lower() for name in QOS_LEVELS}
    return known_qos({**stated, "depth": profile.depth})


def known_qos(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the levels of a recorded QoS that a flow can have; others are unknown."""
    qos: dict[str, Any] = {
        key: stated[key] for key, levels in QOS_LEVELS.items() if stated.get(key) in levels
    }
    if qos.get("history") == "keep_last" and stated.get("depth", 0) > 0:
        qos["depth"] = stated["depth"]
    return qos
