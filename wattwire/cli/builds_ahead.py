"""Estimate the duration of the builds that precede the first run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from wattwire.catalog import Cell
from wattwire.cli.screen import duration_words
from wattwire.model.errors import WattwireError
from wattwire.model.words import plural
from wattwire.rig import AgentClient, Builder

SHORTEST_S = 0.5


def builds_ahead(cells: Mapping[str, Mapping[str, Cell]]) -> dict[str, float]:
    """Return the expected duration of each missing build (cell or environment → seconds).

    `cells` maps treatment key → role → cell. The result omits builds shorter than SHORTEST_S. It is
    empty if no agent is available.
    """
    cells_by_name = {cell.known_as: cell for roles in cells.values() for cell in roles.values()}
    with tempfile.TemporaryDirectory(prefix="wattwire-plan-") as state_folder:
        try:
            agent = AgentClient(Path(state_folder))
        except WattwireError:
            return {}
        try:
            unbuilt = Builder(agent, look=True).unbuilt(cells_by_name.values())
        finally:
            agent.close()
    return {name: seconds for name, seconds in unbuilt.items() if seconds >= SHORTEST_S}


def build_words(builds: Mapping[str, float]) -> str:
    """Return a sentence that lists the builds, longest first."""
    longest_first = sorted(builds.items(), key=lambda item: -item[1])
    build_list = ", ".join(f"{name} {duration_words(seconds)}" for name, seconds in longest_first)
    count = plural(len(builds), "build")
    time_text = duration_words(sum(builds.values()))
    return f"{count} before the first run, about {time_text} (estimate): {build_list}"
