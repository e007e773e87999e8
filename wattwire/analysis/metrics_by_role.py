"""Compute responses per run, for the nodes of a role or for the whole run."""

from __future__ import annotations

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, window_seconds
from wattwire.analysis.responses import Response
from wattwire.model.derived import FloatArray, column, mean_of, members, messages_of_costs

BOTH = "both"
SHARES = {"energy_uj_per_message": "energy_j", "cpu_us_per_message": "cpu_share"}
"""Responses per message, and the per-node column that each is computed from."""
NOT_MEASURED = "not measured on this machine"


def values_of(evidence: Evidence, frame: pl.DataFrame, response: Response, role: str) -> FloatArray:
    """Return the response of each run of `frame`, shape (runs,); NaN if it was not measured.

    A response per message is the sum over the nodes of the role, divided by the number of messages.
    Other responses are the mean over these nodes. For a whole run (`BOTH`), the result is the run's
    value, or else the sum over all nodes.
    """
    run_values = column(frame, response.column)
    if role == BOTH and np.isfinite(run_values).any():
        return run_values
    if role == BOTH:
        return sum_of(evidence, frame, members(frame, response.column), BOTH)
    stem = SHARES.get(response.column, response.column)
    names = members(frame, stem, role)
    if stem == response.column:
        return mean_of(frame, names)
    sent = messages_of_costs(frame)
    per_message = 1e6 * sum_of(evidence, frame, names, role) / np.where(sent > 0, sent, np.nan)
    return per_message * window_seconds(evidence, frame) if stem == "cpu_share" else per_message


def is_measured(evidence: Evidence, response: Response, role: str) -> bool:
    """Return whether any valid run has a value of the response."""
    if evidence.usable.height == 0:
        return False
    return bool(np.isfinite(values_of(evidence, evidence.usable, response, role)).any())


def sum_of(evidence: Evidence, frame: pl.DataFrame, names: list[str], role: str) -> FloatArray:
    """Return the sum over the nodes of the role in each run, shape (runs,).

    If the value of any node is unknown, the result is NaN.
    """
    if not names:
        return np.full(frame.height, np.nan)
    stack = np.stack([column(frame, name) for name in names])
    known = np.isfinite(stack).sum(axis=0)
    node_counts = np.array([_nodes(evidence, run, role) for run in frame["run"].to_list()])
    return np.where((known > 0) & (known >= node_counts), np.nansum(stack, axis=0), np.nan)


def _nodes(evidence: Evidence, run: str, role: str) -> int:
    """Return the number of nodes in a run, for one role or for all roles.

    Return 0 if the run's document lists no nodes.
    """
    nodes = evidence.runs.get(run, {}).get("nodes") or []
    return sum(1 for node in nodes if role in (BOTH, node.get("role")))


def of_role(response: Response, role: str) -> str:
    """Return the title of the response with its role, such as "CPU time per message, client"."""
    return response.title if role == BOTH else f"{response.title}, {role.replace('_', ' ')}"
