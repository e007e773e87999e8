"""Read the flows of a recorded ROS bag: topics with their types, sizes, rates and QoS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.flows import PAYLOAD_BYTES, plain_name

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
RECORDED = "recorded"
"""Key of a flow whose messages have different sizes: a remark with these sizes."""
RECORDER = "recorder"
"""Node that receives all flows of a bag, as the recorder did."""


@dataclass
class _Recorded:
    """What a bag contains of one topic of one sender."""

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


def bag_topology(path: Path) -> dict[str, Any]:
    """Return the table of the topology that a bag recorded.

    A bag of ROS 1 names the nodes that published. One of ROS 2 does not: the node is then the first
    part of the topic's name. All flows end at RECORDER. Raises UsageError for a bag that cannot be
    read, or without flows, and MissingError without the library.
    """
    recorded: dict[Any, _Recorded] = {}
    with _opened(path) as reader:
        for connection in reader.connections:
            if not connection.msgtype:
                raise UsageError(
                    f"{path}: topic {connection.topic}: found no type; allowed: a bag that names "
                    "the type of each topic. Record it again, or write a topology file "
                    "(docs/topologies.md)."
                )
        for connection, time_ns, data in reader.messages():
            recorded.setdefault(connection.id, _Recorded()).add(time_ns, len(data))
        connections = sorted(
            (each for each in reader.connections if each.id in recorded),
            key=lambda each: (each.topic, each.id),
        )
    if not connections:
        raise UsageError(
            f"{path}: the bag is empty: found no message; allowed: a bag with messages. Record the "
            "topics while the robot runs."
        )
    first_ns = min(entry.first_ns for entry in recorded.values())
    bag_ns = max(entry.last_ns for entry in recorded.values()) - first_ns
    senders = {connection.id: _sender(connection) for connection in connections}
    receiver = RECORDER if RECORDER not in senders.values() else f"bag_{RECORDER}"
    flows = [
        _flow(connection, senders[connection.id], receiver, recorded[connection.id], bag_ns, path)
        for connection in connections
    ]
    nodes = [{"name": name} for name in (*dict.fromkeys(senders.values()), receiver)]
    return {"node": nodes, "flow": flows}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a bag with the library's reader for it, and convert its errors."""
    try:
        library = rosbag1 if path.suffix == BAG_1 else rosbag2
        reader_type, reader_error = library.Reader, library.ReaderError
    except ImportError as error:
        raise MissingError(
            f"{path}: bags need the package rosbags ({error}); install it with `make setup` or pip"
        ) from error
    if path.is_dir() and not (path / METADATA).is_file():
        raise UsageError(
            f"{path}: found no {METADATA}; allowed: the folder of a bag of ROS 2, or a file "
            f"NAME{BAG_1} of ROS 1"
        )
    try:
        with reader_type(path) as reader:
            yield reader
    except (OSError, reader_error) as error:
        raise UsageError(
            f"{path}: this bag cannot be read ({error}); allowed: the folder of a bag of ROS 2, or "
            f"a file NAME{BAG_1} of ROS 1, or NAME{STORAGES_2[0]} or NAME{STORAGES_2[1]}"
        ) from error


def _sender(connection: Any) -> str:
    """Return the name of the node that published."""
    caller = getattr(connection.ext, "callerid", None)
    return plain_name(caller or connection.topic.strip("/").partition("/")[0])


def _flow(
    connection: Any, sender: str, receiver: str, entry: _Recorded, bag_ns: int, path: Path
) -> dict[str, Any]:
    """Return the table of a flow with the mean size and rate of its messages."""
    span_ns, intervals = entry.last_ns - entry.first_ns, entry.messages - 1
    if span_ns <= 0:  # such as a map that was sent once
        span_ns, intervals = bag_ns, entry.messages
    if span_ns <= 0:
        raise UsageError(
            f"{path}: topic {connection.topic}: all messages have one time, so it has no rate; "
            "allowed: a bag of some seconds. Record it again."
        )
    mean_bytes = round(entry.bytes_total / entry.messages)
    flow: dict[str, Any] = {
        "topic": connection.topic,
        "from": sender,
        "to": [receiver],
        "type": connection.msgtype,
        "bytes": max(PAYLOAD_BYTES[0], mean_bytes),
        "rate_hz": float(f"{intervals * SECOND_NS / span_ns:.6g}"),
    }
    if qos := _qos(connection):
        flow["qos"] = qos
    if entry.bytes_min != entry.bytes_max or mean_bytes < PAYLOAD_BYTES[0]:
        flow[RECORDED] = f"{entry.bytes_min} to {entry.bytes_max} bytes"
    return flow


def _qos(connection: Any) -> dict[str, Any]:
    """Return the QoS that the publisher offered, as far as the bag has it."""
    profiles = getattr(connection.ext, "offered_qos_profiles", None)
    if not profiles:
        return {}
    profile = profiles[0]
    levels = {
        "reliability": ("reliable", "best_effort"),
        "history": ("keep_last", "keep_all"),
        "durability": ("volatile", "transient_local"),
    }
    stated = {name: getattr(profile, name).name.lower() for name in levels}
    qos: dict[str, Any] = {k: v for k, v in stated.items() if v in levels[k]}
    if qos.get("history") == "keep_last" and profile.depth > 0:
        qos["depth"] = profile.depth
    return qos
