"""Find flows that lost messages although their delivery is reliable, and their queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.model.deployment import deployment_of_run

RELIABLE = "reliable"
QUEUE_SETTINGS = ("history", "depth")


@dataclass(frozen=True)
class ReliableLosses:
    """The flows that lost messages despite reliable delivery, and the settings of their queues."""

    flows: tuple[str, ...]
    queues: tuple[str, ...]


def reliable_losses(evidence: Evidence) -> ReliableLosses | None:
    """Return the flows that lost messages despite reliable delivery; None if none did."""
    flows: dict[str, None] = {}
    queues: dict[str, None] = {}
    for row in evidence.usable.iter_rows(named=True):
        run = evidence.runs.get(row["run"], {})
        ready = {node["node"]: node.get("ready") or {} for node in run.get("nodes", [])}
        for flow in deployment_of_run(run).flows if ready else ():
            sender = ready.get(flow.sender, {})
            if row.get(f"lost.flow.{flow.name}") and _is_reliable(sender):
                flows[flow.name] = None
                queues |= dict.fromkeys(_queue(sender))
    return ReliableLosses(tuple(flows), tuple(queues)) if flows else None


def _is_reliable(ready: Mapping[str, Any]) -> bool:
    """Return whether a node reports reliable delivery, or a setting in force with this level.

    With a queue of limited length, nodes do not guarantee the delivery that their setting names.
    """
    delivery = (ready.get("guarantee") or {}).get("delivery")
    return RELIABLE in (delivery, *(ready.get("effective") or {}).values())


def _queue(ready: Mapping[str, Any]) -> list[str]:
    """Return the settings in force of a node's queue, or what it does when overloaded."""
    effective = ready.get("effective") or {}
    settings = [f"{key} = {effective[key]}" for key in QUEUE_SETTINGS if key in effective]
    overload = (ready.get("guarantee") or {}).get("overload")
    return settings or ([str(overload).replace("_", " ")] if overload else [])
