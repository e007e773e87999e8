"""Build the section on settings in force, which the libraries report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.report.page_parts import HeadLine, PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables.nested_tables import flat
from wattwire.report.words import guarantees
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "node_settings",
    {
        "title": "Settings in force",
        "none": "No node reported its settings.",
        "table": "Settings reported by each node",
        "note": (
            "Each node reports its library's settings at READY, if the library provides them. "
            "The nodes of a row have equal settings, unless a setting lists several values."
        ),
        "several": "{values} different values",
    },
)

VALUES_MAX = 3


def section(evidence: Evidence) -> Section:
    """Return the section on effective settings, which the libraries report."""
    part = Section("settings", PHRASES("title"))
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for key, ready in guarantees.ready_nodes(evidence):
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
                Column("effective", "in force", is_whole=True),
                Column("guarantee", "guarantee"),
                Column("nodes", "nodes", "measured"),
            ],
            rows,
            PHRASES("note"),
        )
    )
    return part


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
    lambda data: [section(data.evidence)],
    lambda data: [HeadLine(2, text) for text in guarantees.unequal(data.evidence)],
    measured_only=True,
    of_messages=True,
)
