"""Read the paper's printed tables (published.csv), and decide when a value prints as a number."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from wattwire.imports import Match
from wattwire.imports.agreement import agrees, close

FILE = Path(__file__).resolve().parent / "published.csv"
WEAK_SHARE = 0.01
"""A match is weak where the values that print the same span more than this share of them."""
Row = tuple[str, str, str, str]
"""Table, node ("client", "server", "both"), technology, language."""
PLATFORM = {"4": "intel", "5": "arm", "7": "intel", "8": "arm"}


@dataclass(frozen=True)
class Printed:
    """All numbers of the tables by row and column of published.csv, with every digit printed."""

    rows: dict[Row, dict[str, str]]

    def text(self, row: Row, column: str) -> str:
        """The text printed; empty where the table has none."""
        return self.rows.get(row, {}).get(column, "")

    def number(self, row: Row, column: str) -> float | None:
        text = self.text(row, column)
        return float(text) if text else None

    def times(self) -> dict[tuple[str, str, str], float]:
        """Printed seconds by platform, technology and language."""
        return {
            (PLATFORM[table], ipc, language): float(row["time_s"])
            for (table, node, ipc, language), row in self.rows.items()
            if node == "both"
        }


def load(path: Path = FILE) -> Printed:
    """Read the tables."""
    rows = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["table"], row["node_role"], row["middleware"], row["language"])
            rows[key] = row
    return Printed(rows)


def decimals(text: str) -> int:
    """Digits behind the point."""
    return len(text.partition(".")[2])


def prints_as(value: float, text: str, places: int, slack: int = 0) -> bool:
    """Whether `value`, rounded or cut to `places`, is the printed number, or at most `slack`
    units of its last place away."""
    unit = Decimal(1).scaleb(-places)
    near = (Decimal(text) + step * unit for step in range(-slack, slack + 1))
    return any(agrees(str(one), value, places) for one in near)


def match(value: float, text: str, places: int, slack: int = 0) -> Match:
    """How a value compares with the printed number."""
    if not math.isfinite(value):
        return Match.NOT_COMPUTABLE
    if prints_as(value, text, places, slack):
        return Match.EXACT
    return Match.WITHIN_1_PERCENT if close(text, value) else Match.DIFFERS


def weak(text: str, places: int, slack: int = 0) -> bool:
    """Whether few digits make a match easy."""
    width = (1.5 + 2 * slack) * 10.0**-places  # rounded or cut: from half a unit below to one above
    return width > WEAK_SHARE * abs(float(text))
