"""Sentences on comparisons of nodes whose libraries guarantee different deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "guarantees",
    {
        "unequal": (
            "The comparison is not like for like, because the nodes{patterns} had {kinds} "
            "different guarantees (delivery, order, overload): {guarantees}.{repeats}"
        ),
        "patterns": " of {patterns:listed}",
        "of_cells": "{cells:listed}: {guarantee}",
        "with_levels": "{cell} ({levels})",
        "repeats": (
            " With {setting}, nothing repeats a lost message; otherwise a repetition makes a loss "
            "a delay. Compare losses and latencies together."
        ),
    },
)
RELIABILITY, BEST_EFFORT = "reliability", "best_effort"
UNREPEATED = f"{RELIABILITY} = {BEST_EFFORT}"
RowKey = tuple[str, str, str, str, str, str]


def ready_nodes(evidence: Evidence) -> Iterator[tuple[RowKey, Mapping[str, Any]]]:
    """Yield the row key and the READY line of each node that became ready.

    The key contains cell, pattern, role, library, guarantee and varied settings. Without the varied
    settings, a row would mix levels.
    """
    varied = [name for name in evidence.varied if name.startswith("settings.")]
    for run in evidence.runs.values():
        levels = all_levels(run)
        levels_text = ", ".join(evidence.title(name, levels.get(name)) for name in varied)
        for node in run.get("nodes", []):
            if ready := node.get("ready"):
                library = ready.get("library") or {}
                names = [str(library[k]) for k in ("name", "version", "build") if library.get(k)]
                cell = str(node.get("cell") or levels.get("cell", ""))
                pattern = str(levels.get("pattern", ""))
                role, guarantee = str(node.get("role", "")), _guarantee(ready)
                yield (cell, pattern, role, " ".join(names), guarantee, levels_text), ready


def _guarantee(ready: Mapping[str, Any]) -> str:
    """Return the guarantee of a node, and whether it is set to repeat no lost message.

    With a queue of limited length no node guarantees delivery, with or without repetitions.
    """
    values = [str(v).replace("_", " ") for v in (ready.get("guarantee") or {}).values()]
    is_unrepeated = (ready.get("effective") or {}).get(RELIABILITY) == BEST_EFFORT
    return ", ".join([*values, *([UNREPEATED] if is_unrepeated else [])])


def unequal(evidence: Evidence) -> list[Phrase]:
    """Return a sentence for the patterns whose nodes have different guarantees.

    Patterns with the same guarantees share a sentence. The line is below the title of the page,
    because it limits the answer.
    """
    by_pattern: dict[str, dict[str, dict[tuple[str, str], None]]] = {}
    for (cell, pattern, _, _, guarantee, levels), _ in ready_nodes(evidence):
        by_pattern.setdefault(pattern, {}).setdefault(guarantee, {})[cell, levels] = None
    alike: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
    for pattern, nodes_of in by_pattern.items():
        kinds = tuple((kind, _titles(nodes_of, kind)) for kind in sorted(nodes_of))
        alike.setdefault(kinds, []).append(pattern)
    return [
        PHRASES(
            "unequal",
            patterns=PHRASES("patterns", patterns=patterns) if len(alike) > 1 else "",
            kinds=len(kinds),
            guarantees=joined(
                [PHRASES("of_cells", cells=cells, guarantee=kind) for kind, cells in kinds], "; "
            ),
            repeats=PHRASES("repeats", setting=UNREPEATED)
            if any(kind.endswith(UNREPEATED) for kind, _ in kinds)
            else "",
        )
        for kinds, patterns in alike.items()
        if len(kinds) > 1
    ]


def _titles(nodes_of: Mapping[str, Mapping[tuple[str, str], None]], kind: str) -> tuple[str, ...]:
    """Return the cells of a guarantee, with their levels if these decide about the guarantee."""
    others = {cell for other in nodes_of if other != kind for cell, _ in nodes_of[other]}
    return tuple(
        sorted(
            {
                PHRASES("with_levels", cell=cell, levels=levels)
                if cell in others and levels
                else cell
                for cell, levels in nodes_of[kind]
            }
        )
    )
