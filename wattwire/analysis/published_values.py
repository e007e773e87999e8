"""Look up the printed numbers of a paper by table, role and levels."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.analysis.dataset import Evidence, same_level
from wattwire.model.paths import is_plain_name

TABLE, ROLE, SOURCE = "table", "node_role", "source"


def table_title(table: str) -> str:
    """Return the title of a published table without a source."""
    return f"Table {table}"


def published_file(evidence: Evidence) -> Path | None:
    """Return the path of the study's published numbers in the campaign.

    The result is None if the file is missing.
    """
    name = evidence.study.published
    path = evidence.reader.path / name
    return path if is_plain_name(name) and path.is_file() else None


@dataclass(frozen=True)
class Printed:
    """The study's published numbers by row. If their file is missing, there are no rows."""

    rows: Sequence[Mapping[str, str]]

    def source(self, table: str) -> str:
        """Return the display name of a published table: its source, if all its rows have one."""
        names = {row.get(SOURCE) for row in self.rows if row.get(TABLE) == table}
        only = names.pop() if len(names) == 1 else None
        return only or table_title(table)

    def of(self, table: str, levels: Mapping[str, Any], role: str = "") -> list[Mapping[str, str]]:
        """Return the rows of a table with these levels, of a role or of all roles."""
        return [
            row
            for row in self.rows
            if row.get(TABLE) == table
            and (not role or row.get(ROLE) == role)
            and all(same_level(row.get(name, ""), level) for name, level in levels.items())
        ]

    def text(self, table: str, levels: Mapping[str, Any], role: str, column: str) -> str | None:
        """Return a number as printed, or None if the table lacks it."""
        values = [row[column] for row in self.of(table, levels, role) if row.get(column)]
        return values[0] if values and column else None

    def total(self, table: str, levels: Mapping[str, Any], column: str) -> float | None:
        """Return the sum of a column over the roles, or None if no role has a number."""
        values = [float(row[column]) for row in self.of(table, levels) if row.get(column)]
        return sum(values) if values else None


def printed_of(evidence: Evidence) -> Printed:
    """Return the published numbers of the campaign's study."""
    path = published_file(evidence)
    if path is None:
        return Printed(())
    with path.open(newline="", encoding="utf-8") as file:
        return Printed(tuple(csv.DictReader(file)))
