"""Find the treatments whose layers a profiled run can record."""

from __future__ import annotations

from wattwire.run.node_specs import PlacedTreatment

TABLES = "layers/*.toml"
"""The tables of functions in the folder of a middleware."""


def layer_gap(placed: PlacedTreatment) -> str | None:
    """Return the reason why the layers of a treatment cannot be recorded, else None."""
    if not placed.cells:
        return "a command has no nodes"
    folder = placed.middleware.folder
    if not any(folder.glob(TABLES)):
        return f"{placed.middleware.name} has no table of functions ({TABLES})"
    gap = next((cell.layer_gap for cell in placed.cells.values() if cell.layer_gap), None)
    if gap is not None:
        return gap
    if placed.bridge is not None:
        return "a bridge gives the messages new time stamps"
    if placed.deployment.is_on_rig:
        return "layers are recorded on this machine only, not on the hosts of a rig"
    if any(flow.result for flow in placed.deployment.flows):
        return "a call is not a message of a topic"
    return None
