"""Runs pipelines of nodes for the tests of the kits: a source, relays and a sink."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairs import Node, Outcome, run_window, settings, spec


def chain_specs(middleware: str, relays: int, **changes: Any) -> list[dict[str, Any]]:
    """Return the specs of a pipeline by hop; the node's number is its hop."""
    common = {"run": f"t{os.getpid()}x{time.monotonic_ns() % 10**9}", **changes}
    specs = []
    for hop in range(relays + 2):
        role = "source" if hop == 0 else "sink" if hop == relays + 1 else "relay"
        values = spec("pipeline", role, hop, [0 if hop else 1], hop=hop, **common)
        values["peers.count"] = 2 if role == "relay" else 1
        specs.append(settings(middleware) | values)
    return specs


def run_chain(
    middleware: str, languages: Sequence[str], folder: Path,
    planted: dict[int, dict[str, Any]] | None = None, **changes: Any,
) -> Outcome:  # fmt: skip
    """Run one node per language; all lists of the result are in the order of the hops.

    `planted` has settings by hop. Each node listens and starts after its successor.
    """
    result = Outcome()
    nodes: list[Node] = []
    endpoints: list[str] = []
    specs = chain_specs(middleware, len(languages) - 2, **changes)
    try:
        for hop in reversed(range(len(languages))):
            chosen = (planted or {}).get(hop, {})
            values = specs[hop] | {f"settings.{name}": value for name, value in chosen.items()}
            values["peers.endpoints"] = endpoints
            nodes.insert(0, Node(f"{middleware}/{languages[hop]}", values, folder / str(hop)))
            if hop > 0:
                endpoints = nodes[0].expect("LISTENING")["endpoints"]
        result.ready = [node.expect("READY") for node in nodes]
        run_window(result, nodes, sender=nodes[0])
    finally:
        for node in nodes:
            node.close()
    return result
