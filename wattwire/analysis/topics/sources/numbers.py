"""Count the values, files and rows of imported data, per response and derivation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.store import ImportedCampaign

WAYS_MAX = 3
"""Maximum number of derivations in the row of a response."""
LINES = r"\blines? \d+( to \d+)?"
"""Line numbers in a source file. Derivations that differ only in these are treated as equal."""
OWN_LINE = "its own line"
_LINES_AT_END = re.compile(r", lines? \d+( to \d+)?$")
"""End of the path of excluded rows, after the name of the file."""


@dataclass(frozen=True)
class Provenance:
    """The values of a response, the files and rows that they come from, and their derivations."""

    column: str
    values: int
    files: int
    used: int
    left: int
    ways: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first derivation."""
        return self.ways[0]

    @property
    def how(self) -> str | None:
        """The derivations, or None if there are more than the row of a response names."""
        return "; ".join(self.ways) if len(self.ways) <= WAYS_MAX else None


@dataclass(frozen=True)
class Way:
    """A derivation of `values` values of a response, and a run with such a value."""

    column: str
    how: str
    values: int
    run: str


@dataclass(frozen=True)
class Exclusion:
    """A reason for the exclusion of files or rows. `rows` is None for whole files."""

    why: str
    places: int
    rows: int | None


@dataclass(frozen=True)
class Sources:
    """The sources of imported data; empty for a measured campaign.

    `ways` has the derivations of the responses with many of them.
    """

    is_imported: bool = False
    values: int = 0
    runs: int = 0
    files: int = 0
    recipe: str = ""
    provenance: tuple[Provenance, ...] = ()
    ways: tuple[Way, ...] = ()
    excluded: tuple[Exclusion, ...] = ()


def sources(evidence: Evidence) -> Sources:
    """Return the sources of an imported campaign."""
    reader = evidence.reader
    if not isinstance(reader, ImportedCampaign):
        return Sources()
    about = reader.document
    used = reader.provenance().filter(pl.col("rows_used") > 0)
    used = used.with_columns(pl.col("how").str.replace(LINES, OWN_LINE))
    provenance = tuple(_provenance(used))
    many_ways = [item.column for item in provenance if item.how is None]
    return Sources(
        True,
        int(about["values"]),
        about["runs"],
        about["files"],
        about.get("recipe") or "",
        provenance,
        tuple(_ways(used.filter(pl.col("column").is_in(many_ways)))) if many_ways else (),
        tuple(_excluded(reader)),
    )


def _provenance(used: pl.DataFrame) -> Iterator[Provenance]:
    files = used.select("column", "files").explode("files")
    counted_files = dict(files.group_by("column").agg(pl.col("files").n_unique()).iter_rows())
    by_response = used.group_by("column", maintain_order=True).agg(
        pl.len().alias("values"),
        pl.col("rows_used").sum(),
        pl.col("rows_left_out").sum(),
        pl.col("how").unique(maintain_order=True),
    )
    for name, values, rows_used, left_out, ways in by_response.iter_rows():
        yield Provenance(name, values, counted_files[name], rows_used, left_out, tuple(ways))


def _ways(used: pl.DataFrame) -> Iterator[Way]:
    counted_ways = (
        used.group_by("column", "how", maintain_order=True)
        .agg(pl.len().alias("values"), pl.col("run").first())
        .sort("column", maintain_order=True)
    )
    for row in counted_ways.iter_rows(named=True):
        yield Way(row["column"], row["how"], row["values"], row["run"])


def _excluded(reader: ImportedCampaign) -> Iterator[Exclusion]:
    """Yield the reasons, those of most files first."""
    files: dict[str, set[str]] = {}
    row_counts: Counter[str] = Counter()
    for excluded in reader.set_aside():
        file = _LINES_AT_END.sub("", excluded["path"])
        files.setdefault(excluded["why"], set()).add(file)
        row_counts[excluded["why"]] += int(excluded["rows"])
    for why, names in sorted(files.items(), key=lambda item: -len(item[1])):
        yield Exclusion(why, len(names), row_counts[why] or None)
