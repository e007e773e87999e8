"""Write a topology as a file, and a study of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.bags import (
    BAG_1,
    METADATA,
    REMARKS,
    STORAGES_2,
    bag_topology,
    is_bag,
    names_no_nodes,
)
from wattwire.catalog.cells import MEMBERS
from wattwire.catalog.topologies import read_topology
from wattwire.cli.topics.recorded_topology import LINES, is_watched, watched_topology
from wattwire.model.errors import MissingError, UsageError

TOPOLOGY_FILES = (".toml", ".json")
SOURCES = (
    "allowed: a campaign folder of `wattwire topics --campaign` or `wattwire exec --topics`, lines "
    f"of `wattwire topics --json` in a file NAME{LINES}, a bag of ROS (the folder of a bag of ROS "
    f"2, NAME{BAG_1}, {' or '.join(f'NAME{ending}' for ending in STORAGES_2)}), or a topology file "
    "(NAME.json in the format of iRobot's ros2-performance, or NAME.toml)"
)
"""Every kind of source that `wattwire new --from` reads."""
Remarks = Mapping[int, Mapping[str, str]]
"""Number of a flow, from 0 → its keys with the remarks on their values."""
TEMPLATE = "topology_template.toml"
TEMPLATE_TOPOLOGY, TEMPLATE_CELL = "topology.toml", '["loopback/python"]'
"""Texts of the template that a study replaces."""
QUESTION = """
[[question]]
id = "Q1"
text = "Which cell carries the graph at the lowest cost?"
factors = ["cell"]
responses = ["cpu_us_per_message", "loss_share"]
"""


def topology_of(source: Path) -> tuple[dict[str, Any], Remarks]:
    """Return the table of a topology from its source, and the remarks of its flows.

    The source is a watched graph, a bag or a topology file.

    A topology file has no remarks, and its table may have faults. Raises UsageError with all kinds
    of sources for a path that is none of them.
    """
    if not source.exists():
        raise UsageError(f"--from {source}: found no such file or folder; {SOURCES}")
    if source.is_dir() and not (is_watched(source) or (source / METADATA).exists()):
        raise UsageError(f"--from {source}: found a folder of another kind; {SOURCES}")
    if is_watched(source):
        table = watched_topology(source)
    elif is_bag(source):
        table = bag_topology(source)
    else:
        try:
            return read_topology(source), {}
        except UsageError as error:
            if source.suffix in TOPOLOGY_FILES:
                raise
            raise UsageError(f"--from {error}; {SOURCES}") from error
    return table, {n: flow.pop(REMARKS, {}) for n, flow in enumerate(table["flow"])}


def topology_text(table: Mapping[str, Any], remarks: Remarks, source: Path) -> str:
    """Return the text of a topology file with a valid table, which was made from `source`."""
    name = "".join(sign if sign.isprintable() else "?" for sign in source.name)
    lines = [f"# The topology of {name}. docs/topologies.md describes the keys."]
    if not is_watched(source) and names_no_nodes(source):
        lines.append("# A bag of ROS 2 names no nodes: give each flow its sender and receivers.")
    for node in table["node"]:
        lines += ["", "[[node]]", *(f"{key} = {_toml(value)}" for key, value in node.items())]
    for number, flow in enumerate(table["flow"]):
        of_flow = remarks.get(number, {})
        lines += ["", "[[flow]]"]
        for key, value in flow.items():
            remark = f" # {of_flow[key]}" if key in of_flow else ""
            lines.append(f"{key} = {_toml(value)}{remark}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a printable text, a number, a list of texts or a table of them in TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def study_text(topology: str, cells: Iterable[str]) -> str:
    """Return the text of a study that runs a topology file on cells."""
    text = (resources.files("wattwire.cli") / TEMPLATE).read_text(encoding="utf-8")
    names = list(cells)
    quoted = json.dumps(topology, ensure_ascii=False)[1:-1]
    text = text.replace(TEMPLATE_TOPOLOGY, quoted).replace(TEMPLATE_CELL, json.dumps(names))
    return text.replace("\n\n[factors]", f"\n{QUESTION}\n[factors]", 1) if names[1:] else text


def cells_for(table: Mapping[str, Any], catalog: Catalog) -> Sequence[str]:
    """Return the cells that have members, and the settings of the topology's QoS.

    Raises MissingError if no cell has both.
    """
    settings = {key for flow in table["flow"] for key in flow.get("qos", {})}

    def suits(cell: Cell) -> bool:
        has_members = MEMBERS in cell.document["capabilities"]
        return has_members and settings <= cell.middleware.settings.keys()

    names = sorted(name for name in catalog.cells if suits(catalog.cell(name)))
    if not names:
        needed = f" and the settings {', '.join(sorted(settings))}" if settings else ""
        raise MissingError(f"no cell has the capability {MEMBERS}{needed}, so none can run it")
    return names
