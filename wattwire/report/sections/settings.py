"""Under which conditions the numbers came about: what measuring cost, settings in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.model import words
from wattwire.report.parts import Column, Section, Table, Text

VALUES_MAX = 3


def section(evidence: Evidence) -> Section:
    """The page's part about the settings in force, as the libraries told them."""
    part = Section("settings", "Settings in force")
    cards: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    guarantees: dict[str, set[str]] = {}
    for run in evidence.runs.values():
        for node in run.get("nodes", []):
            ready = node.get("ready")
            if not ready:
                continue
            key = _card(evidence, node, all_levels(run))
            guarantees.setdefault(key[1], set()).add(key[4])
            cards.setdefault(key, []).append(ready.get("effective") or {})
    if not cards:
        part.parts.append(Text("No node reported its settings.", "warning"))
        return part
    for pattern, kinds in guarantees.items():
        if len(kinds) > 1:
            part.parts.append(
                Text(
                    f"Not like for like: {pattern or 'the nodes'} ran under "
                    f"{len(kinds)} different guarantees: {'; '.join(sorted(kinds))}.",
                    "warning",
                )
            )
    rows = [
        dict(zip(("cell", "pattern", "role", "library", "guarantee", "varied"), key, strict=True))
        | {"effective": merged(told), "nodes": len(told)}
        for key, told in sorted(cards.items())
    ]
    part.parts.append(
        Table(
            "settings-in-force",
            "What each node said it was using",
            [
                Column("cell", "cell"),
                Column("pattern", "pattern"),
                Column("role", "role"),
                *([Column("varied", "varied")] if any(row["varied"] for row in rows) else []),
                Column("library", "library"),
                Column("effective", "in force"),
                Column("guarantee", "guarantee"),
                Column("nodes", "nodes", "measured"),
            ],
            rows,
            "Asked of the library at READY where it can tell. Nodes of a row agree in everything "
            "but what stands with several values.",
        )
    )
    return part


def _card(
    evidence: Evidence, node: Mapping[str, Any], levels: Mapping[str, Any]
) -> tuple[str, ...]:
    """What nodes of one row have in common; varied settings are in it, else levels would mix."""
    ready = node["ready"]
    varied = [name for name in evidence.varied if name.startswith("settings.")]
    told = ", ".join(evidence.title(name, levels.get(name)) for name in varied)
    library = ready.get("library") or {}
    named = " ".join(str(library[k]) for k in ("name", "version", "build") if library.get(k))
    guarantee = ", ".join(str(v) for v in (ready.get("guarantee") or {}).values())
    cell, pattern = str(node.get("cell", "")), str(levels.get("pattern", ""))
    return cell, pattern, str(node.get("role", "")), named, guarantee, told


def merged(told: Sequence[Mapping[str, Any]]) -> str:
    """Settings of several nodes as one list: `a = 1, b = 3 | 7`, many values as their number."""
    values: dict[str, dict[str, None]] = {}
    for settings_of_one in told:
        for key, value in flat(settings_of_one).items():
            values.setdefault(key, {})[value] = None
    parts = []
    for key, known in values.items():
        few = len(known) <= VALUES_MAX
        parts.append(f"{key} = {' | '.join(known) if few else f'{len(known)} different values'}")
    return ", ".join(parts)


def flat(table: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """A nested table with dotted keys and values in words."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.")
        elif isinstance(value, list):
            found[f"{above}{key}"] = " ".join(words.plain(v) for v in value) or "none"
        else:
            found[f"{above}{key}"] = words.plain(value) or "none"
    return found


def pairs(table: Mapping[str, Any]) -> str:
    """A nested table as `a = 1, b.c = 2`."""
    return ", ".join(f"{key} = {value}" for key, value in flat(table).items())
