"""Collect the settings in force of all nodes, and find nodes with different guarantees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.topics.settings.nested_tables import flat

VALUES_MAX = 3
"""Number of values of a setting above which the table only counts them."""
RELIABILITY, BEST_EFFORT = "reliability", "best_effort"
UNREPEATED = f"{RELIABILITY} = {BEST_EFFORT}"
RowKey = tuple[str, str, str, str, str, str]


@dataclass(frozen=True)
class Setting:
    """A setting with the different values of some nodes."""

    name: str
    values: tuple[str, ...]
    values_max: int = VALUES_MAX


@dataclass(frozen=True)
class NodeSettings:
    """The settings of `nodes` nodes of a cell, a pattern and a role.

    `varied` has their levels of the settings that the study varies.
    """

    cell: str
    pattern: str
    role: str
    library: str
    guarantee: str
    varied: str
    effective: tuple[Setting, ...]
    nodes: int


@dataclass(frozen=True)
class Guarantee:
    """A guarantee and its cells, with their levels if these decide about it."""

    guarantee: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Unequal:
    """Patterns whose nodes have different guarantees; no patterns if it is the same for all.

    With `is_unrepeated`, the setting `unrepeated` of some nodes repeats no lost message.
    """

    patterns: tuple[str, ...]
    guarantees: tuple[Guarantee, ...]
    unrepeated: str = UNREPEATED

    @property
    def is_unrepeated(self) -> bool:
        """Whether nodes of a guarantee repeat no lost message."""
        return any(kind.guarantee.endswith(self.unrepeated) for kind in self.guarantees)


@dataclass(frozen=True)
class Settings:
    """The settings of all nodes that became ready, and the patterns with unequal guarantees."""

    has_messages: bool = False
    rows: tuple[NodeSettings, ...] = ()
    unequal: tuple[Unequal, ...] = ()

    @property
    def has_varied(self) -> bool:
        """Whether the study varies a setting."""
        return any(row.varied for row in self.rows)


def settings(evidence: Evidence) -> Settings:
    """Return the settings of all nodes; nothing for campaigns without messages."""
    if not evidence.has_messages:
        return Settings()
    groups: dict[RowKey, list[Mapping[str, Any]]] = {}
    for key, ready in _ready_nodes(evidence):
        groups.setdefault(key, []).append(ready.get("effective") or {})
    rows = (NodeSettings(*key, _merged(nodes), len(nodes)) for key, nodes in sorted(groups.items()))
    return Settings(True, tuple(rows), tuple(unequal(evidence)))


def _ready_nodes(evidence: Evidence) -> Iterator[tuple[RowKey, Mapping[str, Any]]]:
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


def _merged(nodes: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """Return each setting with its different values, in their first order."""
    values: dict[str, dict[str, None]] = {}
    for of_node in nodes:
        for key, value in flat(of_node).items():
            values.setdefault(key, {})[value] = None
    return tuple(Setting(key, tuple(distinct)) for key, distinct in values.items())


def unequal(evidence: Evidence) -> Iterator[Unequal]:
    """Yield the patterns whose nodes have different guarantees.

    Patterns with the same guarantees are together.
    """
    by_pattern: dict[str, dict[str, dict[tuple[str, str], None]]] = {}
    for (cell, pattern, _, _, guarantee, levels), _ in _ready_nodes(evidence):
        by_pattern.setdefault(pattern, {}).setdefault(guarantee, {})[cell, levels] = None
    alike: dict[tuple[Guarantee, ...], list[str]] = {}
    for pattern, nodes_of in by_pattern.items():
        kinds = tuple(Guarantee(kind, _titles(nodes_of, kind)) for kind in sorted(nodes_of))
        alike.setdefault(kinds, []).append(pattern)
    for kinds, patterns in alike.items():
        if len(kinds) > 1:
            yield Unequal(tuple(patterns) if len(alike) > 1 else (), kinds)


def _titles(nodes_of: Mapping[str, Mapping[tuple[str, str], None]], kind: str) -> tuple[str, ...]:
    """Return the cells of a guarantee, with their levels if these decide about the guarantee."""
    others = {cell for other in nodes_of if other != kind for cell, _ in nodes_of[other]}
    return tuple(
        sorted(
            {
                f"{cell} ({levels})" if cell in others and levels else cell
                for cell, levels in nodes_of[kind]
            }
        )
    )
