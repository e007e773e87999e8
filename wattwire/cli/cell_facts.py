"""Implement `show cell`, which prints the state, settings, guarantees and libraries of a cell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.pins import pins_of
from wattwire.cli.verbs.doctor import cell_item
from wattwire.model.deployment import PATTERNS
from wattwire.model.errors import UsageError, WattwireError
from wattwire.model.words import count
from wattwire.rig import AgentClient
from wattwire.rig.observed import observed

Block = tuple[str, list[tuple[str, str]]]
KIND = "cell"


def cell_blocks(catalog: Catalog, name: str | None) -> list[Block]:
    """Return blocks of facts about a cell, as (title, [(name, value), …]).

    Raises UsageError for a missing or unknown name.
    """
    if name is None:
        raise UsageError(f"show {KIND}: CELL is missing; `wattwire list cells` lists the cells")
    cell = catalog.cell(name)
    ready = observed(cell.name).ready
    blocks = [(_title(cell, catalog), list(_abilities(cell)))]
    blocks.append(("Settings, as settings.NAME in a study or --set", list(_settings(cell))))
    blocks.append(("Guarantees", list(_guarantees(ready))))
    blocks.append(("Libraries", list(_libraries(cell, ready))))
    return blocks


def _title(cell: Cell, catalog: Catalog) -> str:
    titles = catalog.titles()
    language = titles["language"].get(cell.language, cell.language)
    return f"{cell.name}: {titles['middleware'][cell.middleware.name]} in {language}"


def _abilities(cell: Cell) -> Iterator[tuple[str, str]]:
    yield "here", _here(cell)
    for pattern in cell.document["patterns"]:
        listens = cell.middleware.listens(pattern)
        yield (
            f"pattern {pattern}",
            PATTERNS[pattern].title()
            + (
                f"; the {listens} listens"
                if listens != "none"
                else "; the nodes discover each other"
            ),
        )
    yield "capabilities", ", ".join(cell.document["capabilities"])
    for key, bound in (("payload_bytes_min", "at least"), ("payload_bytes_max", "at most"),
                       ("record_bytes_max", "as a record at most")):  # fmt: skip
        if key in cell.document:
            yield "payload", f"{bound} {count(cell.document[key])} bytes"
    if cell.emulated:
        yield "emulated device", f"{cell.emulated['device']}; its times are not compared"
    if cell.middleware.reach == "host":
        yield "reach", "all nodes must be on one host"
    if cell.middleware.services:
        yield "service processes", ", ".join(cell.middleware.services)


def _here(cell: Cell) -> str:
    """Describe whether the cell is built, can be built or lacks requirements.

    The function starts an agent, because the agent knows the cached builds.
    """
    with tempfile.TemporaryDirectory(prefix="wattwire-show-") as state_folder:
        try:
            agent = AgentClient(Path(state_folder))
        except WattwireError as error:
            return f"unknown, because no agent is running: {error}"
        try:
            item = cell_item(cell, agent)
        finally:
            agent.close()
    words_by_state = {
        "ok": item.text,
        "note": item.text,
        "missing": f"cannot be built: {item.text}",
    }
    return words_by_state[item.state] + (f" ($ {item.command})" if item.command else "")


def _settings(cell: Cell) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting, and its allowed values, default, purpose and restrictions."""
    if not cell.middleware.settings:
        yield "none", "this middleware has no settings"
    for name, table in cell.middleware.settings.items():
        all_values = [True, False] if table["type"] == "boolean" else table.get("allowed")
        allowed = cell.settings_allowed.get(name, all_values)
        values_text = ", ".join(map(_shown, allowed)) if allowed else str(table["type"])
        bounds = [f"{key} {table[key]}" for key in ("minimum", "maximum") if key in table]
        bounds = [] if name in cell.settings_allowed else bounds
        text = f"{' '.join([values_text, *bounds])}; default {_shown(table['default'])}"
        text += f". {table['summary']}" if table.get("summary") else ""
        text += f" (purpose {table['purpose']})" if table.get("purpose") else ""
        for level, factors in table.get("only", {}).items():
            for factor, levels in factors.items():
                text += f". {level} supports only {factor} = {', '.join(map(_shown, levels))}"
        if name in cell.settings_allowed and table.get("allowed", []) != allowed:
            because = cell.document["settings"][name].get("because", "this cell supports no others")
            text += f". This cell allows only these: {because}"
        yield name, text


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return '""' if value == "" else str(value)


def _guarantees(ready: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the effective guarantees, which the nodes report in their READY lines."""
    if not ready.get("guarantee"):
        yield "not known yet", "unknown before the first run of the cell"
        return
    for name, value in ready["guarantee"].items():
        yield name, str(value).replace("_", " ")
    yield (
        "seen",
        (f"{ready.get('seen', '')}, reported by the latest run here, with that run's settings"),
    )


def _libraries(cell: Cell, ready: dict[str, Any]) -> Iterator[tuple[str, str]]:
    library = ready.get("library", {})
    name_words = [str(library[k]) for k in ("name", "version", "build") if library.get(k)]
    library_name = " ".join(dict.fromkeys(name_words))
    if library_name:
        yield "in the latest run here", library_name
    for name, version in pins_of(cell.folder).items():
        yield name, f"{version}, pinned by the cell"
    for program, table in cell.document["versions"].items():
        yield program, f"{table['minimum']} or newer"
    for program in cell.document["requires"]:
        if program not in cell.document["versions"]:
            yield program, "version on PATH"
