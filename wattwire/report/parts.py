"""Sections, paragraphs, tables, figures and folds, which are the elements of a page."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wattwire.model import words
from wattwire.model.paths import spreadsheet_safe
from wattwire.stats import Band, BelowResolution, Interval, NotComputable, TooFew

TEXT_MAX, SHORT_MAX, WORD_MAX = 240, 28, 10
WIDE_LETTERS = 90
"""Largest number of letters in a row that fits the page in the usual font."""


@dataclass(frozen=True)
class Text:
    """A paragraph. `tone` is "", "lead", "note" or "warning".

    `key` and `value` are what the paragraph states, without its words. The page joins neighbouring
    texts of the same `paragraph`.
    """

    words: str
    tone: str = ""
    key: str = ""
    value: str = ""
    paragraph: str = ""
    shape: ClassVar[str] = "text"


@dataclass(frozen=True)
class Column:
    """A column of a table. `kind` is one of KINDS.

    `labels` replace text on the page but not in the CSV file. Neighbouring columns of a `group`
    share a heading. `factor` names the factor whose levels the cells contain. The page can filter
    rows by these levels. Long text is truncated unless `is_whole`. The numbers of a column that
    `is_count` are counts, or means of counts.
    """

    key: str
    title: str
    kind: str = "text"
    unit: str = ""
    digits: int = 3
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    factor: str = ""
    is_whole: bool = False
    is_count: bool = False

    @property
    def numeric(self) -> bool:
        """Return whether the cells are right-aligned."""
        return self.kind != "text"


@dataclass(frozen=True)
class Table:
    """A table. Rows map column keys to cell values.

    A value is text, a number, None, Interval, Band, Marked, or the reason for a missing number
    (such as TooFew).
    """

    id: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    note: str = ""
    shape: ClassVar[str] = "table"

    def text(self, column: Column, row: dict[str, Any]) -> str:
        """Return the text of a cell."""
        value = row.get(column.key)
        if isinstance(value, str):
            text = clipped(column.labels.get(value, value), column)
            return with_minus(text) if column.numeric else text
        if isinstance(value, Marked):
            return with_minus(str(value))
        if value == 0 and isinstance(value, float) and column.title.split(",")[0] == "p":
            return words.NO_P
        if isinstance(value, TooFew):
            return value.brief
        return counted(value, column.digits) if column.is_count else shown(value, column.digits)

    def hint(self, column: Column, row: dict[str, Any]) -> str:
        """Return the tooltip of a cell.

        It is the hint of a marked number, the full text of a truncated cell, or the reason for a
        missing number. Other cells have the tooltip "".
        """
        value = row.get(column.key)
        if isinstance(value, Marked):
            return value.hint
        hidden = isinstance(value, str) and clipped(value, column) != value
        return str(value) if hidden or self.muted(column, row) else ""

    def cells(self, row: dict[str, Any]) -> list[tuple[str, str, str]]:
        """Return (style, tooltip, text) of each cell of a row."""
        cells = []
        for column in self.columns:
            text = self.text(column, row)
            style = "number " if column.numeric else ""
            style += column.kind + (" muted" if self.muted(column, row) else "")
            style += " short" if len(text) <= SHORT_MAX else ""
            style += " word" if len(text) <= WORD_MAX else ""
            cells.append((style, self.hint(column, row), text))
        return cells

    def levels(self, row: dict[str, Any]) -> str:
        """Return the levels in a row by factor as JSON, or "" if the row has none."""
        levels = {
            column.factor: str(row[column.key])
            for column in self.columns
            if column.factor and row.get(column.key) not in (None, "")
        }
        return json.dumps(levels) if levels else ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Return (heading, number of columns) of each group of columns.

        The result is empty if no column belongs to a group.
        """
        if not any(column.group for column in self.columns):
            return []
        headings: list[tuple[str, int]] = []
        for column in self.columns:
            if headings and column.group and headings[-1][0] == column.group:
                headings[-1] = (column.group, headings[-1][1] + 1)
            else:
                headings.append((column.group, 1))
        return headings

    @property
    def is_wide(self) -> bool:
        """Return whether the page uses a small font and breaks cells before their intervals."""
        texts = [[self.text(column, row) for column in self.columns] for row in self.rows[:20]]
        longest = (max(map(len, cells)) for cells in zip(*texts, strict=True))
        return len(self.columns) > 10 or sum(longest) > WIDE_LETTERS

    @property
    def headed(self) -> bool:
        """Return whether any column has a heading."""
        return any(column.title for column in self.columns)

    def muted(self, column: Column, row: dict[str, Any]) -> bool:
        """Return whether the cell contains a reason in place of a number."""
        return isinstance(row.get(column.key), (TooFew, NotComputable, BelowResolution))


def with_values(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the columns that have a value in a row, or all columns without rows."""
    return [
        column
        for column in columns
        if not rows or any(row.get(column.key) not in (None, "") for row in rows)
    ]


@dataclass(frozen=True)
class Marked:
    """A number with the outcome of a comparison. The tooltip `hint` gives the reason."""

    value: float | None
    words: str
    mark: str
    verdict: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.words} {self.mark}".strip()


@dataclass(frozen=True)
class Figure:
    """A chart as a Vega-Lite `spec`, which is drawn on the page and in SVG and PDF files."""

    id: str
    title: str
    caption: str
    spec: dict[str, Any]
    shape: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Fold:
    """A title with parts that are collapsed until the reader opens them."""

    title: str
    parts: Sequence[Any]
    shape: ClassVar[str] = "fold"


@dataclass
class Section:
    """A section of the page with an entry in the table of contents."""

    id: str
    title: str
    parts: list[Any] = field(default_factory=list)
    has_no_data: bool = False
    """Whether the section contains only the reason for missing data. The page then collapses it."""


def with_minus(number: str) -> str:
    """Return a formatted number of another source with the page's minus sign (−)."""
    return f"−{number[1:]}" if number[:1] == "-" else number


def clipped(text: str, column: Column) -> str:
    """Truncate `text` to TEXT_MAX characters. The CSV file and the tooltip have the full text."""
    return text if column.is_whole or len(text) <= TEXT_MAX else text[: TEXT_MAX - 1].rstrip() + "…"


def shown(value: Any, digits: int = 3) -> str:
    """Return a cell value as text."""
    if value is None:
        return words.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Interval):
        estimate, low, high = words.limits(value.estimate, value.low, value.high, digits)
        return f"{estimate} [{low},\u00a0{high}]"
    if isinstance(value, Band):
        return f"{words.number(value.low, digits)} – {words.number(value.high, digits)}"
    if isinstance(value, int):
        return words.count(value)
    if isinstance(value, float):
        return words.number(value, digits)
    return str(value)


def counted(value: Any, digits: int = 3) -> str:
    """Return the value of a cell of counts, or of means of counts, as text."""
    if isinstance(value, Interval):
        estimate, low, high = (
            words.mean_count(number, digits) for number in (value.estimate, value.low, value.high)
        )
        return f"{estimate} [{low},\u00a0{high}]"
    return words.mean_count(value, digits) if isinstance(value, float) else shown(value, digits)


def tables_of(parts: Sequence[Any]) -> list[Table]:
    """Return all tables in `parts` in order, including those in folds."""
    return [part for part in _flat(parts) if isinstance(part, Table)]


def figures_of(parts: Sequence[Any]) -> list[Figure]:
    """Return all figures in `parts` in order, including those in folds."""
    return [part for part in _flat(parts) if isinstance(part, Figure)]


def _flat(parts: Sequence[Any]) -> list[Any]:
    flat_parts: list[Any] = []
    for part in parts:
        flat_parts.extend(_flat(part.parts) if isinstance(part, Fold) else [part])
    return flat_parts


def write_csv(table: Table, path: Path) -> None:
    """Write the table with full precision.

    An interval also has the columns _low, _high, _level and _note.
    """
    column_suffixes = [
        (column, _suffixes([row.get(column.key) for row in table.rows])) for column in table.columns
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                spreadsheet_safe(_csv_heading(column) + suffix)
                for column, suffixes in column_suffixes
                for suffix in suffixes
            ]
        )
        for row in table.rows:
            writer.writerow(
                [
                    spreadsheet_safe(_csv_value(row.get(column.key), suffix, len(suffixes) > 1))
                    for column, suffixes in column_suffixes
                    for suffix in suffixes
                ]
            )


def _csv_heading(column: Column) -> str:
    marked = f"{column.key}_estimate" if column.kind == "estimate" else column.key
    return marked if "estimate" not in column.key else column.key


def _suffixes(values: Sequence[Any]) -> list[str]:
    if any(isinstance(value, Interval) for value in values):
        return ["", "_low", "_high", "_level", "_note"]
    if any(isinstance(value, Band) for value in values):
        return ["_low", "_high", "_note"]
    if any(isinstance(value, Marked) for value in values):
        return ["", "_verdict"]
    return [""]


def _csv_value(value: Any, suffix: str, has_suffixes: bool) -> Any:
    if value is None:
        return ""
    if isinstance(value, Marked):
        return value.verdict if suffix else value.value
    if isinstance(value, (Interval, Band)):
        attribute = {"": "estimate", "_note": "method"}.get(suffix, suffix[1:])
        return getattr(value, attribute, "")
    if isinstance(value, float) and math.isinf(value):
        value = "inf"
    if isinstance(value, (TooFew, NotComputable, BelowResolution)):
        value = str(value)
    if not has_suffixes:
        return value
    text_suffix = "_note" if isinstance(value, str) else ""
    return value if suffix == text_suffix else ""
