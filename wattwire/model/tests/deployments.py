"""Deployments of made-up runs, which tests name by their nodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wattwire.model.deployment import NODE, PATTERNS, Deployment, Node, Process, flows_of


def deployment_of_nodes(entries: Iterable[Mapping[str, Any]]) -> Deployment:
    """Return the deployment of nodes as in run.json, which have at least `node` and `role`.

    The pattern is the first one that has all their roles.
    """
    nodes = list(entries)
    roles = {entry["role"] for entry in nodes}
    pattern = next(pattern for pattern in PATTERNS.values() if roles <= {*pattern.roles})
    relays = sum(entry["role"] in pattern.path[1:-1] for entry in nodes)
    made = []
    for entry in nodes:
        number, role, index = entry["node"], entry["role"], entry.get("index", 0)
        process = entry.get("process", f"{role}-{number}")
        hop = pattern.hop(role, index, relays)
        made.append(Node(number, process, role, index, hop, entry.get("cell", "")))
    processes = tuple(Process(node.process, NODE) for node in made)
    return Deployment(processes, tuple(made), flows_of(made, pattern))


def run_of_nodes(roles: Mapping[int, str]) -> dict[str, Any]:
    """Return the document of a run with these roles by the node's number."""
    nodes = [{"node": number, "role": role} for number, role in roles.items()]
    return {"nodes": nodes, "deployment": deployment_of_nodes(nodes).to_json()}
