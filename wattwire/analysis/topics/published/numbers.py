"""Compare the numbers that a paper prints with the campaign's values at the same levels.

What it computes: per printed row, the mean over runs with its t interval, for one node of the row's
role.
What it misses: other machines, instruments and lengths of the window explain most differences, so
nothing is tested.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence, all_levels, rows_at, same_level, window_seconds
from wattwire.analysis.published_values import ROLE, SOURCE, TABLE, published_file, table_title
from wattwire.model import words
from wattwire.model.derived import FloatArray, column, mean_of, members
from wattwire.model.errors import UsageError

LABELS = (TABLE, ROLE, SOURCE, "platform")
"""Columns of the file that are neither levels nor quantities."""
QUANTITIES = {
    "cpu_percent": ("CPU", "%"),
    "memory_kib": ("memory", "KiB"),
    "power_w": ("power", "W"),
    "energy_j": ("energy", "J"),
    "energy_ratio": ("energy over the best's", ""),
    "time_s": ("time", "s"),
    "time_ratio": ("time over the best's", ""),
    "energy_total_j": ("total energy", "J"),
    "memory_max_thousand_kib": ("largest memory", "thousand KiB"),
    "faults_minor_thousand": ("minor page faults", "thousands"),
    "switches_voluntary_thousand": ("voluntary context switches", "thousands"),
}
ENERGIES = ("power_w", "energy_j")
MEASURED = ("cpu_percent", "memory_kib", "power_w", "energy_j")
"""Quantities that our runs also measure. Other quantities have only published values."""
Estimate = stats.Interval | stats.Band | stats.TooFew | stats.NotComputable | float | None
NO_ROLE, NOT_PLANNED, SKIPPED = "no role", "not planned", "skipped"
NOT_RUN, EXCLUDED = "not run", "excluded"


@dataclass(frozen=True)
class Absence:
    """Why a printed row has no measured counterpart; `reasons` are those of its runs."""

    kind: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Here:
    """Our value of a quantity, and the mean of each node."""

    value: Estimate = None
    nodes: tuple[float, ...] | None = None


@dataclass(frozen=True)
class PrintedRow:
    """A printed row: its levels, its numbers as printed, and our values of the same quantities."""

    levels: tuple[str, ...]
    runs: int
    printed: tuple[str | None, ...]
    here: tuple[Here, ...]
    absence: Absence | None
    busy_share: tuple[Estimate, ...]
    """Our energies by share of busy CPU time, in the order of `here`."""


@dataclass(frozen=True)
class LevelColumn:
    """A column of levels. `titles` maps the levels to the study's titles."""

    name: str
    title: str
    unit: str
    titles: Mapping[str, str]


@dataclass(frozen=True)
class Quantity:
    """A printed quantity. If our runs have it, `kind` is "measured" or "estimate"."""

    key: str
    title: str
    unit: str
    kind: str = ""
    has_nodes: bool = False
    has_busy_share: bool = False
    """Whether `PrintedRow.busy_share` has it: the printed energy is that of a process."""


@dataclass(frozen=True)
class Constant:
    """A level that all rows of a table share."""

    title: str
    level: str


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper for the nodes of one role."""

    id: str
    source: str
    role: str
    constants: tuple[Constant, ...]
    columns: tuple[LevelColumn, ...]
    quantities: tuple[Quantity, ...]
    rows: tuple[PrintedRow, ...]
    has_several_nodes: bool

    @property
    def has_busy_share(self) -> bool:
        """Whether it has energies by share of busy CPU time."""
        return any(quantity.has_busy_share for quantity in self.quantities)

    @property
    def has_absences(self) -> bool:
        """Whether any row has no measured counterpart."""
        return any(row.absence for row in self.rows)


@dataclass(frozen=True)
class Windows:
    """The shortest and the longest window of a valid run; None if they are unknown."""

    shortest_s: float | None = None
    longest_s: float | None = None
    has_runs: bool = True

    @property
    def are_equal(self) -> bool:
        """Whether both have the same text."""
        if self.shortest_s is None or self.longest_s is None:
            return False
        return words.duration(self.shortest_s) == words.duration(self.longest_s)


@dataclass(frozen=True)
class Published:
    """The printed tables of a study; empty if it has none, or if requested tables show them all.

    `missing_file` is the name of the file of printed numbers if the campaign lacks it. `source` is
    the paper's DOI.
    """

    missing_file: str = ""
    source: str = ""
    windows: Windows = Windows()
    has_energy: bool = False
    tables: tuple[PrintedTable, ...] = ()


def published(evidence: Evidence) -> Published:
    """Return the printed tables of a measured study with our values.

    Raises UsageError if the file of printed numbers has no rows.
    """
    study = evidence.study
    if not study.published or evidence.imported:
        return Published()
    path = published_file(evidence)
    if path is None:
        return Published(missing_file=study.published)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise UsageError(f"{path}: the file has no rows; restore it from the study's folder")
    rows = [row for row in rows if row.get(TABLE, "") not in study.shown.published]
    if not rows:
        return Published()
    by_table: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        by_table.setdefault((row.get(TABLE, ""), row.get(ROLE, "")), []).append(row)
    has_energy = bool(np.isfinite(column(evidence.usable, "energy_message_j")).any()) or any(
        row.get(key) for row in rows for key in ENERGIES
    )
    return Published(
        source=study.source,
        windows=_windows(evidence),
        has_energy=has_energy,
        tables=tuple(
            _table(evidence, name, role, table_rows)
            for (name, role), table_rows in by_table.items()
        ),
    )


def _windows(evidence: Evidence) -> Windows:
    if evidence.usable.height == 0:
        return Windows(has_runs=False)
    windows_s = window_seconds(evidence, evidence.usable)
    lengths_s = windows_s[np.isfinite(windows_s)]
    if not lengths_s.size:
        return Windows()
    return Windows(float(lengths_s.min()), float(lengths_s.max()))


def _table(
    evidence: Evidence, name: str, role: str, rows: Sequence[Mapping[str, str]]
) -> PrintedTable:
    keys = [key for key in rows[0] if key not in LABELS and key not in QUANTITIES]
    constant = {key: rows[0][key] for key in keys if len({row[key] for row in rows}) == 1}
    has_several_nodes = len(_members(evidence.usable, "cpu_share", role, 1.0)) > 1
    is_energy_measured = bool(_members(evidence.usable, "energy_j", role, 1.0))
    has_busy_share = bool(_members(evidence.usable, "energy_busy_share_j", role, 1.0))
    quantities = tuple(
        replace(
            _quantity(key, has_several_nodes, is_energy_measured),
            has_busy_share=has_busy_share and key in ENERGIES,
        )
        for key in QUANTITIES
        if any(row.get(key) for row in rows)
    )
    varied = [key for key in keys if key not in constant]
    return PrintedTable(
        f"published-{name}-{role}".replace("_", "-"),
        str(rows[0].get(SOURCE) or table_title(name)),
        role.replace("_", " "),
        # A column that is empty belongs to other tables of the same file.
        tuple(Constant(words.factor_title(key), level) for key, level in constant.items() if level),
        tuple(
            LevelColumn(
                key,
                words.factor_title(key),
                words.FACTOR_UNITS.get(key, ""),
                dict(evidence.titles.get(key, {})),
            )
            for key in varied
        ),
        quantities,
        tuple(_row(evidence, role, row, keys, varied, quantities) for row in rows),
        has_several_nodes,
    )


def _quantity(key: str, has_several_nodes: bool, is_energy_measured: bool) -> Quantity:
    title, unit = QUANTITIES[key]
    if key not in MEASURED:
        return Quantity(key, title, unit)
    is_estimated = key in ENERGIES and not is_energy_measured
    kind = "estimate" if is_estimated else "measured"
    return Quantity(key, title, unit, kind, has_several_nodes and not is_estimated)


def _row(
    evidence: Evidence,
    role: str,
    row: Mapping[str, str],
    keys: Sequence[str],
    varied: Sequence[str],
    quantities: Sequence[Quantity],
) -> PrintedRow:
    levels = {key: row[key] for key in keys}
    frame = _matching(evidence.usable, levels)
    item = PrintedRow(
        tuple(row[key] for key in varied),
        frame.height,
        tuple(row.get(quantity.key) or None for quantity in quantities),  # as printed
        tuple(Here() for _ in quantities),
        None,
        tuple(None for _ in quantities),
    )
    if frame.height == 0:
        return replace(item, absence=_absence(evidence, levels))
    windows_s = window_seconds(evidence, frame)
    shares = _members(frame, "cpu_share", role, 100.0)
    memories = _members(frame, "memory_kib", role, 1.0)
    here = {"cpu_percent": _here(shares), "memory_kib": _here(memories)}
    if joules := _members(frame, "energy_j", role, 1.0):
        here |= _energies(joules, windows_s)
    else:
        low = mean_of(frame, members(frame, "energy_estimate_low_j", role))
        high = mean_of(frame, members(frame, "energy_estimate_high_j", role))
        here["energy_j"] = Here(stats.Band.of_means(low, high))
        here["power_w"] = Here(stats.Band.of_means(low / windows_s, high / windows_s))
    lacks_role = not shares and not memories
    has_measured = any(quantity.kind for quantity in quantities)
    by_busy_share = _energies(_members(frame, "energy_busy_share_j", role, 1.0), windows_s)
    return replace(
        item,
        here=tuple(here.get(quantity.key, Here()) for quantity in quantities),
        absence=Absence(NO_ROLE, (role,)) if lacks_role and has_measured else None,
        busy_share=tuple(by_busy_share.get(quantity.key, Here()).value for quantity in quantities),
    )


def _energies(nodes_j: Sequence[FloatArray], windows_s: FloatArray) -> dict[str, Here]:
    """Return energy (J) and power (W) of the nodes in windows of these lengths."""
    return {
        "energy_j": _here(nodes_j),
        "power_w": _here([values_j / windows_s for values_j in nodes_j]),
    }


def _here(nodes: Sequence[FloatArray]) -> Here:
    """Return the interval of the runs' mean over nodes, and the mean of each node."""
    if not nodes:
        return Here()
    stack = np.stack(nodes)
    known = np.isfinite(stack)
    per_run = np.where(known, stack, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    per_run = per_run[known.any(axis=0)]
    means = (float(np.mean(row[np.isfinite(row)])) for row in stack if np.isfinite(row).any())
    return Here(stats.mean_interval(per_run) if per_run.size else None, tuple(means))


def _members(frame: pl.DataFrame, prefix: str, role: str, scale: float) -> list[FloatArray]:
    arrays = [column(frame, name) * scale for name in members(frame, prefix, role)]
    return [values for values in arrays if np.isfinite(values).any()]


def _matching(frame: pl.DataFrame, levels: Mapping[str, str]) -> pl.DataFrame:
    if frame.height == 0:
        return frame
    return frame.filter(pl.Series(rows_at(frame, levels)))


def _absence(evidence: Evidence, wanted: Mapping[str, str]) -> Absence:
    """Return the reason why a published row has no measured counterpart."""
    matches = [
        entry
        for entry in evidence.plan
        if not entry.get("control")
        and all(same_level(all_levels(entry).get(k), v) for k, v in wanted.items())
    ]
    if not matches:
        return Absence(NOT_PLANNED)
    reasons = dict.fromkeys(str(entry["skipped"]) for entry in matches if entry.get("skipped"))
    if reasons:
        return Absence(SKIPPED, tuple(reasons))
    tried = {entry["run"] for entry in matches} & set(evidence.runs)
    if not tried:
        return Absence(NOT_RUN)
    codes = dict.fromkeys(
        str(reason.get("detail") or reason["code"])
        for run in sorted(tried)
        for reason in evidence.runs[run].get("reasons", [])
    )
    return Absence(EXCLUDED, tuple(codes))
