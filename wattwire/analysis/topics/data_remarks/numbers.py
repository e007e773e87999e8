"""Arrange the remarks on imported data, with the columns of their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.store import ImportedCampaign

OPEN_ROWS = 12
"""Maximum number of rows of an expanded table."""
NUMBER = re.compile(r"[−-]?[0-9][0-9., ]*(e[+-]?[0-9]+)?( %)?")
WITH_UNIT = re.compile(r"(.+) \(([^()]{1,6})\)")
TEXT, MEASURED, PUBLISHED = "text", "measured", "published"


@dataclass(frozen=True)
class RemarkColumn:
    """A column of a remark's table: its `name`, and what this says: title, kind and unit."""

    name: str
    title: str
    kind: str
    unit: str


@dataclass(frozen=True)
class Remark:
    """A remark with a row per case. If it is `at_top`, it qualifies every answer."""

    title: str
    text: str
    columns: tuple[RemarkColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    at_top: bool

    @property
    def is_open(self) -> bool:
        """Whether the table is short enough to be expanded, with the text below it."""
        return 0 < len(self.rows) <= OPEN_ROWS


@dataclass(frozen=True)
class DataRemarks:
    """The remarks on imported data; empty for a measured campaign."""

    remarks: tuple[Remark, ...] = ()

    @property
    def at_top(self) -> tuple[Remark, ...]:
        """The remarks that qualify every answer."""
        return tuple(remark for remark in self.remarks if remark.at_top)


def data_remarks(evidence: Evidence) -> DataRemarks:
    """Return the remarks that the reader of the data wrote."""
    reader = evidence.reader
    remarks = reader.remarks() if isinstance(reader, ImportedCampaign) else []
    return DataRemarks(tuple(_remark(remark) for remark in remarks))


def _remark(remark: Mapping[str, Any]) -> Remark:
    rows = remark["rows"]
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return Remark(
        remark["title"],
        remark["text"],
        tuple(_column(name, [row.get(name) for row in rows]) for name in names),
        tuple(tuple(row.get(name) for name in names) for row in rows),
        bool(remark.get("at_top")),
    )


def _column(name: str, values: Sequence[Any]) -> RemarkColumn:
    """Return the column of a name such as `energy (J)`."""
    match = WITH_UNIT.fullmatch(name)
    title, unit = (match[1], match[2]) if match else (name, "")
    known = [value for value in values if value is not None]
    kind = TEXT
    if known and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in known
    ):
        kind = MEASURED
    elif known and all(isinstance(value, str) and NUMBER.fullmatch(value) for value in known):
        # Digits are as written. Published numbers have the same style in every table.
        printed = title.startswith("printed") or title.endswith("printed")
        kind = PUBLISHED if printed else MEASURED
    return RemarkColumn(name, title.replace("_", " "), kind, unit)
