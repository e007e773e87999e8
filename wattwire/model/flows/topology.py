"""Parse a topology: the nodes of a graph, and the flows between them.

A topology is the table `topology` of a study, which wattwire fills from the study's topology file.
A node can publish and receive several flows. `irobot_topology` reads the format of iRobot's
ros2-performance.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, listed_tables, names, needed, number, read_table
from wattwire.model.flows.study_flows import (
    FLOWS_MAX,
    PAYLOAD_BYTES,
    PLACE,
    PLACE_SIGN,
    RATE_HZ,
    TopologyFlow,
)
from wattwire.model.treatment import Level

TOPOLOGY = "topology"
"""Key of a study: the path of its topology file, or the content of this file as a table."""
FILE, NODE, FLOW_TABLE = "file", "node", "flow"
"""Keys of the table: the name of its file, the nodes and the flows."""
QOS = ("reliability", "history", "depth", "durability")
"""Settings of a flow that a topology can state."""
_NODE_NAME = re.compile(r"[A-Za-z][\w-]*")
_NODE_WORDS = "a name of letters, digits, _ and -, which begins with a letter"

IROBOT_NODES_MAX = 2 * FLOWS_MAX
"""Largest number of nodes with their copies. Each is a process."""
IROBOT_HEADER_BYTES = 20
"""Bytes of performance_test_msgs/PerformanceHeader: a time, two uint32 and a float32."""
IROBOT_DATA_BYTES = {
    "stamped3_float32": 12, "stamped4_float32": 16, "stamped9_float32": 36,
    "stamped12_float32": 48, "stamped4_int32": 16, "stamped_int64": 8,
    "stamped10b": 10, "stamped100b": 100, "stamped250b": 250, "stamped1kb": 1024,
    "stamped10kb": 10_240, "stamped50kb": 51_200, "stamped100kb": 102_400,
    "stamped250kb": 256_000, "stamped500kb": 512_000, "stamped600kb": 614_400,
    "stamped1mb": 1_048_576, "stamped4mb": 4_194_304, "stamped5mb": 5_120_000,
    "stamped8mb": 8_388_608,
}  # fmt: skip
"""Type of irobot_interfaces_plugin → bytes of its data. A vector has the bytes of `msg_size`."""
IROBOT_VECTOR = "stamped_vector"
IROBOT_IGNORED = {
    "msg_pass_by", "qos_liveliness", "qos_deadline", "qos_lifespan",
    "qos_liveliness_lease_duration", "qos_avoid_ros_namespace_conventions",
}  # fmt: skip
"""Keys of iRobot's publishers and subscribers that have no counterpart between processes here."""


@dataclass(frozen=True)
class _Node:
    """A table `[[node]]`. `place` is a key of the placements, whose host runs the node.

    Without it, the node runs on the host of members.
    """

    name: str = needed(_NODE_WORDS, allows=_NODE_NAME.fullmatch)
    place: str = given("a key of the placements", "", word=PLACE)


@dataclass(frozen=True)
class _Flow:
    """A table `[[flow]]`: the messages that one node publishes to a topic."""

    topic: str = needed("the name of a topic, of printable characters", allows=str.isprintable)
    sender: str = needed("a node")
    receivers: tuple[str, ...] = names("a list of nodes")
    type: str = given("a message type, of printable characters", "", allows=str.isprintable)
    bytes: float | None = number("the bytes of a message", float.is_integer)
    rate_hz: float | None = number("a rate in Hz", lambda value: True)
    qos: Mapping[str, Level] = given(f"a table with {', '.join(QOS)}", {})


def parse_topology(table: Any, places: Collection[str], where: str) -> tuple[TopologyFlow, ...]:
    """Parse and validate a table `topology`; return its flows.

    `places` are the keys of placements. Raises UsageError with the position, the value, the allowed
    values and the remedy.
    """
    if not isinstance(table, Mapping):
        raise UsageError(
            f"{where}: {TOPOLOGY}: found {table!r}; allowed: the name of a topology file "
            "(docs/topologies.md)"
        )
    place = f"{where}: {TOPOLOGY} {table.get(FILE, '')}".rstrip()
    for key in table:
        if key not in (FILE, NODE, FLOW_TABLE):
            raise unknown(place, "key", key, (NODE, FLOW_TABLE))
    nodes = _nodes(table.get(NODE, []), places, place)
    flows = _flows(table.get(FLOW_TABLE, []), place)
    if not flows:
        raise UsageError(
            f"{place}: found no flow; allowed: a table [[flow]] for each topic that a node "
            "publishes"
        )
    if len(flows) > FLOWS_MAX:
        raise UsageError(f"{place}: found {len(flows):,} flows; allowed: {FLOWS_MAX} or less")
    _check_nodes_in_use(nodes, [flow for _, flow in flows], place)
    flow_names = _flow_names([flow for _, flow in flows])
    parsed = [
        _parsed(flow, flow_name, nodes, where)
        for (where, flow), flow_name in zip(flows, flow_names, strict=True)
    ]
    for name, count in Counter(flow.name for flow in parsed).items():
        if count > 1:
            raise UsageError(
                f"{place}: {count} flows would have the name {name}, which topic and sender "
                "determine; allowed: one. Publish a topic once per node, and use topics that "
                "differ in more than signs."
            )
    _check_types([flow for _, flow in flows], place)
    return tuple(parsed)


def _nodes(items: Any, places: Collection[str], place: str) -> dict[str, _Node]:
    nodes = [
        read_table(_Node, item, numbered, {PLACE: places})
        for numbered, item in listed_tables(items, NODE, place)
    ]
    for name, count in Counter(node.name for node in nodes).items():
        if count > 1:
            raise UsageError(
                f"{place}: found {count} nodes with the name {name}; allowed: one, because flows "
                "name their nodes. Rename the others."
            )
    return {node.name: node for node in nodes}


def _flows(items: Any, place: str) -> list[tuple[str, _Flow]]:
    """Return the position and the content of each table `[[flow]]`.

    The keys `from` and `to` have other names in Python.
    """
    called = {"from": ("sender", "a node"), "to": ("receivers", "a list of nodes")}
    flows = []
    for numbered, item in listed_tables(items, FLOW_TABLE, place):
        topic = item.get("topic")
        position = f"{place}: {FLOW_TABLE} {topic}" if isinstance(topic, str) else numbered
        for word, (key, allowed) in called.items():
            if key in item:
                raise unknown(position, "key", key, ("topic", *called, "bytes", "rate_hz", "qos"))
            if word not in item or item[word] in ("", []):
                raise UsageError(
                    f"{position}: {word}: found no {key.rstrip('s')}; allowed: {allowed}. Name at "
                    "least one, or delete the flow."
                )
        renamed = {called[k][0] if k in called else k: value for k, value in item.items()}
        try:
            flows.append((position, read_table(_Flow, renamed, position)))
        except UsageError as error:
            text = str(error)
            for word, (key, _) in called.items():
                text = text.replace(f": {key}: ", f": {word}: ")
            raise UsageError(text) from error
    return flows


def _check_nodes_in_use(nodes: Mapping[str, _Node], flows: Sequence[_Flow], place: str) -> None:
    named = {name for flow in flows for name in (flow.sender, *flow.receivers)}
    for flow in flows:
        ends = (("from", (flow.sender,)), ("to", flow.receivers))
        for key, node_names in ends:
            for name in node_names:
                if name not in nodes:
                    raise unknown(f"{place}: {FLOW_TABLE} {flow.topic}: {key}", "node", name, nodes)
    idle = [name for name in nodes if name not in named]
    if idle:
        raise UsageError(
            f"{place}: node {idle[0]}: it neither publishes nor receives a flow, so nothing of it "
            "can be measured; add a flow, or delete the node"
        )


def _parsed(flow: _Flow, name: str, nodes: Mapping[str, _Node], place: str) -> TopologyFlow:
    """Return the flow of a table, whose nodes are words NAME or NAME@PLACE."""
    size = flow_bytes(flow.type, None if flow.bytes is None else int(flow.bytes), place)
    if not PAYLOAD_BYTES[0] <= size <= PAYLOAD_BYTES[1]:
        limits = "{:,} to {:,}".format(*PAYLOAD_BYTES)
        raise UsageError(f"{place}: bytes: found {size}; allowed: {limits}")
    if flow.rate_hz is None or not RATE_HZ[0] <= flow.rate_hz <= RATE_HZ[1]:
        rate = "no rate" if flow.rate_hz is None else f"{flow.rate_hz:g}"
        limits = "{:g} to {:,.0f} Hz".format(*RATE_HZ)
        raise UsageError(
            f"{place}: rate_hz: found {rate}; allowed: {limits}. State the rate "
            "at which the node publishes, or delete the flow."
        )
    for key, level in flow.qos.items():
        if key not in QOS:
            raise unknown(f"{place}: qos", "key", key, QOS)
        if not isinstance(level, (str, int)) or isinstance(level, bool):
            raise UsageError(f"{place}: qos.{key}: found {level!r}; allowed: a text or an integer")
    return TopologyFlow(
        name=name,
        payload_bytes=size,
        rate_hz=float(flow.rate_hz),
        sender=_word(nodes[flow.sender]),
        settings=dict(flow.qos),
        receivers=tuple(_word(nodes[receiver]) for receiver in flow.receivers),
    )


def _word(node: _Node) -> str:
    return f"{node.name}{PLACE_SIGN}{node.place}" if node.place else node.name


def flow_bytes(message_type: str, size: int | None, place: str) -> int:
    """Return the bytes of a message: those stated, or those of a type of iRobot's."""
    if size is not None:
        return size
    known = message_type.rpartition("/")[2]
    if known in IROBOT_DATA_BYTES:
        return IROBOT_HEADER_BYTES + IROBOT_DATA_BYTES[known]
    stated = f"type {message_type!r}" if message_type else "neither bytes nor a type"
    raise UsageError(
        f"{place}: found {stated} without a known size; allowed: bytes = N, the size of a message, "
        f"or one of the types {', '.join(IROBOT_DATA_BYTES)}"
    )


def plain_name(name: str) -> str:
    """Return a name of letters, digits and _ for a topic or a node, such as camera_image."""
    plain = re.sub(r"\W+", "_", name.strip("/"), flags=re.ASCII)
    return plain if re.match("[A-Za-z]", plain) else f"n{plain}"


def _flow_names(flows: Sequence[_Flow]) -> list[str]:
    """Return the name of each flow: that of its topic, and of its sender if it has several."""
    senders = Counter(plain_name(flow.topic) for flow in flows)
    named = (plain_name(flow.topic) for flow in flows)
    return [
        name if senders[name] == 1 else f"{name}-{flow.sender}"
        for name, flow in zip(named, flows, strict=True)
    ]


def _check_types(flows: Sequence[_Flow], place: str) -> None:
    types: dict[str, str] = {}
    for flow in flows:
        if flow.type and types.setdefault(flow.topic, flow.type) != flow.type:
            raise _two_types(place, flow.topic, types[flow.topic], flow.type)


def _two_types(place: str, topic: str, first: str, second: str) -> UsageError:
    return UsageError(
        f"{place}: topic {topic}: found the types {first} and {second}; allowed: one type per "
        "topic, because publishers and subscribers of two types never match. Correct one."
    )


def is_irobot(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a topology in the format of iRobot's ros2-performance."""
    return isinstance(document.get("nodes"), list)


def irobot_topology(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the table of a topology in the format of iRobot's ros2-performance.

    The format is that of commit d47cfb2 of github.com/irobot-ros/ros2-performance: `node_name`,
    `number`, `publishers` and `subscribers`. Raises UsageError for a fault, with its position.
    """
    nodes = list(_irobot_nodes(document, where))
    subscribers: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    types: dict[str, str] = {}
    for name, node, place in nodes:
        for entry, position in _entries(node, "subscribers", place):
            subscribers.setdefault(entry["topic_name"], []).append((name, entry))
            _note_type(types, entry, position)
    flows: list[dict[str, Any]] = []
    for name, node, place in nodes:
        for entry, position in _entries(node, "publishers", place):
            if len(flows) == FLOWS_MAX:
                raise UsageError(
                    f"{position}: found more than {FLOWS_MAX} publishers in all nodes; allowed: "
                    f"{FLOWS_MAX} or less. Delete some, or lower `number`."
                )
            _note_type(types, entry, position)
            receivers = subscribers.get(entry["topic_name"], [])
            flows.append(_irobot_flow(name, entry, receivers, position))
    published = {flow["topic"] for flow in flows}
    for topic, ends in subscribers.items():
        if topic not in published:
            raise UsageError(
                f"{where}: node {ends[0][0]}: it subscribes to {topic}, which no node publishes; "
                "add a publisher, or delete the subscriber"
            )
    return {NODE: [{"name": plain_name(name)} for name, _, _ in nodes], FLOW_TABLE: flows}


def _irobot_nodes(
    document: Mapping[str, Any], where: str
) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield the name, the table and the position of each node, one for each copy (`number`).

    Raises UsageError for a fault, or more than IROBOT_NODES_MAX nodes.
    """
    free = IROBOT_NODES_MAX
    for position, node in enumerate(document["nodes"], 1):
        if not isinstance(node, Mapping) or not isinstance(node.get("node_name"), str):
            raise UsageError(
                f"{where}: nodes {position}: found {node!r:.80}; allowed: an object with node_name"
            )
        name, copies = node["node_name"], node.get("number")
        place = f"{where}: node {name}"
        for key in ("clients", "servers"):
            if node.get(key):
                raise UsageError(
                    f"{place}: {key}: found {node[key]!r:.80}; a topology has topics only. Delete "
                    "them; the pattern service measures services."
                )
        is_count = isinstance(copies, int) and not isinstance(copies, bool) and copies > 0
        if copies is not None and not is_count:
            raise UsageError(
                f"{place}: number: found {copies!r:.80}; allowed: an integer of 1 or more"
            )
        free -= copies or 1
        if free < 0:
            raise UsageError(
                f"{place}: found more than {IROBOT_NODES_MAX:,} nodes with the copies of `number`; "
                f"allowed: {IROBOT_NODES_MAX:,} or less. Delete nodes, or lower `number`."
            )
        if copies is None:
            yield name, node, place
        else:
            yield from ((f"{name}_{copy}", node, place) for copy in range(1, copies + 1))


def _entries(
    node: Mapping[str, Any], key: str, place: str
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each publisher or subscriber of a node with its position."""
    entries = node.get(key, [])
    if not isinstance(entries, list):
        raise UsageError(f"{place}: {key}: found {entries!r:.80}; allowed: a list of objects")
    for position, entry in enumerate(entries, 1):
        numbered = f"{place}: {key} {position}"
        for name in ("topic_name", "msg_type"):
            text = entry.get(name) if isinstance(entry, Mapping) else None
            if not isinstance(text, str) or not text:
                raise UsageError(f"{numbered}: {name}: found {text!r:.80}; allowed: a text")
        yield entry, f"{place}: topic {entry['topic_name']}"


def _note_type(types: dict[str, str], entry: Mapping[str, Any], place: str) -> None:
    topic, message_type = entry["topic_name"], entry["msg_type"]
    if types.setdefault(topic, message_type) != message_type:
        raise _two_types(place, topic, types[topic], message_type)


def _irobot_flow(
    sender: str,
    entry: Mapping[str, Any],
    subscribers: Sequence[tuple[str, Mapping[str, Any]]],
    place: str,
) -> dict[str, Any]:
    if not subscribers:
        raise UsageError(
            f"{place}: found no subscriber, so the flow has no receiver; allowed: at least one "
            "node that subscribes. Add it, or delete the publisher."
        )
    flow: dict[str, Any] = {
        "topic": entry["topic_name"],
        "from": plain_name(sender),
        "to": [plain_name(name) for name, _ in subscribers],
        "type": entry["msg_type"],
        "bytes": _irobot_bytes(entry, place),
        "rate_hz": _irobot_rate_hz(entry, place),
    }
    qos = _irobot_qos([entry, *(other for _, other in subscribers)], place)
    return {**flow, "qos": qos} if qos else flow


def _irobot_bytes(entry: Mapping[str, Any], place: str) -> int:
    message_type = entry["msg_type"].rpartition("::")[2]
    size = entry.get("msg_size")
    if message_type in IROBOT_DATA_BYTES:  # an array, whose size `msg_size` does not change
        return IROBOT_HEADER_BYTES + IROBOT_DATA_BYTES[message_type]
    if size is None and message_type == IROBOT_VECTOR:
        size = 0  # as in ros2-performance, which then sends an empty vector
    if size is None:
        return flow_bytes(entry["msg_type"], None, place)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise UsageError(f"{place}: msg_size: found {size!r:.80}; allowed: a number of bytes")
    return IROBOT_HEADER_BYTES + size


def _irobot_rate_hz(entry: Mapping[str, Any], place: str) -> float:
    for key in ("freq_hz", "period_ms"):
        if key not in entry:
            continue
        value = entry[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 < value <= sys.float_info.max:
            raise UsageError(
                f"{place}: {key}: found {value!r:.80}; allowed: a finite number above 0"
            )
        return float(value) if key == "freq_hz" else 1000 / value
    raise UsageError(f"{place}: found no rate; allowed: period_ms, or freq_hz, above 0")


def _irobot_qos(entries: Sequence[Mapping[str, Any]], place: str) -> dict[str, Level]:
    """Return the QoS of a topic. Its publisher and its subscribers must state the same."""
    qos: dict[str, Level] = {}
    for key in QOS:
        stated = [entry.get(f"qos_{key}") for entry in entries]
        for level in stated:
            if isinstance(level, bool) or not isinstance(level, (str, int, type(None))):
                raise UsageError(
                    f"{place}: qos_{key}: found {level!r:.80}; allowed: a text or an integer"
                )
        if len(set(stated)) > 1:
            raise UsageError(
                f"{place}: qos_{key}: found {' and '.join(map(repr, dict.fromkeys(stated)))}; "
                "allowed: one value for the publisher and all subscribers of a topic"
            )
        if stated[0] is not None:
            qos[key] = stated[0]
    known = {"topic_name", "msg_type", "msg_size", "period_ms", "freq_hz", *IROBOT_IGNORED}
    known |= {f"qos_{key}" for key in QOS}
    for entry in entries:
        for key in entry:
            if key not in known:
                raise unknown(place, "key", key, known)
    return qos
