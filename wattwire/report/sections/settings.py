"""Build the sections on settings in force: those of the libraries, and where the nodes ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.report.page_parts import HeadLine, PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables import placements
from wattwire.report.tables.nested_tables import flat
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "node_settings",
    {
        "title": "Settings in force",
        "none": "No node reported its settings.",
        "guarantees": (
            "The comparison is not like for like, because the nodes{patterns} had {kinds} "
            "different guarantees (delivery, order, overload): {guarantees}."
        ),
        "patterns": " of {patterns:listed}",
        "of_cells": "{cells:listed} {guarantee}",
        "table": "Settings reported by each node",
        "note": (
            "Each node reports its library's settings at READY, if the library provides them. "
            "The nodes of a row have equal settings, unless a setting lists several values."
        ),
        "several": "{values} different values",
    },
)

VALUES_MAX = 3


def _ready_nodes(
    evidence: Evidence,
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the key of a row and the READY line of each node that became ready."""
    for run in evidence.runs.values():
        for node in run.get("nodes", []):
            if ready := node.get("ready"):
                yield _row_key(evidence, node, all_levels(run)), ready


def unequal_guarantees(evidence: Evidence) -> list[Phrase]:
    """Return a sentence for the patterns whose nodes have different guarantees.

    Patterns with the same guarantees share a sentence. The line is below the title of the page,
    because it limits the answer.
    """
    by_pattern: dict[str, dict[str, dict[str, None]]] = {}
    for (cell, pattern, _, _, guarantee, _), _ in _ready_nodes(evidence):
        by_pattern.setdefault(pattern, {}).setdefault(guarantee, {})[cell] = None
    alike: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
    for pattern, cells_of in by_pattern.items():
        kinds = tuple(sorted((kind, tuple(sorted(cells))) for kind, cells in cells_of.items()))
        alike.setdefault(kinds, []).append(pattern)
    return [
        PHRASES(
            "guarantees",
            patterns=PHRASES("patterns", patterns=patterns) if len(alike) > 1 else "",
            kinds=len(kinds),
            guarantees=joined(
                [PHRASES("of_cells", cells=cells, guarantee=kind) for kind, cells in kinds], "; "
            ),
        )
        for kinds, patterns in alike.items()
        if len(kinds) > 1
    ]


def section(evidence: Evidence) -> Section:
    """Return the section on effective settings, which the libraries report."""
    part = Section("settings", PHRASES("title"))
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for key, ready in _ready_nodes(evidence):
        groups.setdefault(key, []).append(ready.get("effective") or {})
    if not groups:
        part.parts.append(Text(PHRASES("none"), "warning"))
        return part
    rows = [
        dict(zip(("cell", "pattern", "role", "library", "guarantee", "varied"), key, strict=True))
        | {"effective": merged(node_settings), "nodes": len(node_settings)}
        for key, node_settings in sorted(groups.items())
    ]
    part.parts.append(
        Table(
            "settings-in-force",
            PHRASES("table"),
            [
                Column("cell", "cell"),
                Column("pattern", "pattern"),
                Column("role", "role"),
                *(
                    [Column("varied", "varied settings")]
                    if any(row["varied"] for row in rows)
                    else []
                ),
                Column("library", "library"),
                Column("effective", "in force"),
                Column("guarantee", "guarantee"),
                Column("nodes", "nodes", "measured"),
            ],
            rows,
            PHRASES("note"),
        )
    )
    return part


def _row_key(
    evidence: Evidence, node: Mapping[str, Any], levels: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the row key of a node.

    The key contains cell, pattern, role, library, guarantee and varied settings. Without the varied
    settings, a row would mix levels.
    """
    ready = node["ready"]
    varied = [name for name in evidence.varied if name.startswith("settings.")]
    levels_text = ", ".join(evidence.title(name, levels.get(name)) for name in varied)
    library = ready.get("library") or {}
    library_text = " ".join(str(library[k]) for k in ("name", "version", "build") if library.get(k))
    guarantee = ", ".join(str(v).replace("_", " ") for v in (ready.get("guarantee") or {}).values())
    cell, pattern = str(node.get("cell", "")), str(levels.get("pattern", ""))
    return cell, pattern, str(node.get("role", "")), library_text, guarantee, levels_text


def merged(node_settings: Sequence[Mapping[str, Any]]) -> str:
    """Format the settings of nodes, such as `a = 1, b = 3 | 7`, with a count for many values."""
    values: dict[str, dict[str, None]] = {}
    for settings in node_settings:
        for key, value in flat(settings).items():
            values.setdefault(key, {})[value] = None
    entries = []
    for key, distinct in values.items():
        is_short = len(distinct) <= VALUES_MAX
        text = " | ".join(distinct) if is_short else PHRASES("several", values=len(distinct))
        entries.append(f"{key} = {text}")
    return ", ".join(entries)


PART = PagePart(
    160,
    lambda data: [section(data.evidence), placements.section(data.evidence)],
    lambda data: [
        *(HeadLine(2, text) for text in unequal_guarantees(data.evidence)),
        *(HeadLine(3, text) for text in placements.sentences(data.evidence)),
    ],
    measured_only=True,
    of_messages=True,
)
