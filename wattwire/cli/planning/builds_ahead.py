"""Estimate the duration of the builds that precede the first run."""

from __future__ import annotations

from collections.abc import Mapping

from wattwire.catalog import Cell
from wattwire.cli.screen import duration_words
from wattwire.model.words import plural
from wattwire.rig import Builder

SHORTEST_S = 0.5


def builds_ahead(
    cells: Mapping[str, Mapping[str, Cell]], builder: Builder | None
) -> dict[str, float]:
    """Return the expected duration of each missing build (cell or environment → seconds).

    `cells` maps treatment key → role → cell. The result omits builds shorter than SHORTEST_S. It is
    empty without a builder.
    """
    if builder is None:
        return {}
    cells_by_name = {cell.known_as: cell for roles in cells.values() for cell in roles.values()}
    unbuilt = builder.unbuilt(cells_by_name.values())
    return {name: seconds for name, seconds in unbuilt.items() if seconds >= SHORTEST_S}


def build_words(builds: Mapping[str, float]) -> str:
    """Return a sentence that lists the builds, longest first."""
    longest_first = sorted(builds.items(), key=lambda item: -item[1])
    build_list = ", ".join(f"{name} {duration_words(seconds)}" for name, seconds in longest_first)
    count = plural(len(builds), "build")
    time_text = duration_words(sum(builds.values()))
    return f"{count} before the first run, about {time_text} (estimate): {build_list}"
