"""Which builds come before the first run, and how long they are likely to take."""

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
    """Return cell or environment → seconds its build is expected to take, for what is not built.

    `cells` maps treatment key → role → cell. Builds that only copy files are left out. Empty
    where there is no agent to ask.
    """
    wanted = {cell.known_as: cell for roles in cells.values() for cell in roles.values()}
    with tempfile.TemporaryDirectory(prefix="wattwire-plan-") as state:
        try:
            agent = AgentClient(Path(state))
        except WattwireError:
            return {}
        try:
            unbuilt = Builder(agent, look=True).unbuilt(wanted.values())
        finally:
            agent.close()
    return {name: seconds for name, seconds in unbuilt.items() if seconds >= SHORTEST_S}


def build_words(builds: Mapping[str, float]) -> str:
    """The builds in one sentence, the longest first."""
    longest_first = sorted(builds.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {duration_words(seconds)}" for name, seconds in longest_first)
    count = plural(len(builds), "build")
    return f"{count} first, about {duration_words(sum(builds.values()))} (estimate): {listed}"
