"""Build the table of an `exec` measurement, with one row per process and means over repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire import stats
from wattwire.stats import BelowResolution, Interval, NotComputable, TooFew
from wattwire.store import Execution

SAME_NAME_MAX = 3
"""Several processes of one name in a repeat share a row: SUMMED, MEANS, HIGHEST."""
REPEATS_MIN = 3
SUMMED = (
    "cpu_s", "cpu_user_s", "cpu_system_s", "cpu_share", "voluntary_switches",
    "involuntary_switches", "energy_j", "energy_estimate_low_j", "energy_estimate_high_j",
)  # fmt: skip
MEANS = ("memory_mean_kib", "pss_mean_kib")
"""Not summed, because the processes may have run at different times."""
HIGHEST = ("memory_peak_kib", "pss_peak_kib", "threads_max")
PER_MESSAGE = (
    "cpu_us_per_message",
    "energy_j_per_message",
    "energy_estimate_low_j_per_message",
    "energy_estimate_high_j_per_message",
)
ESTIMATED = "estimate"

Value = Interval | TooFew | float | None


@dataclass(frozen=True)
class Row:
    """One row: a name, the number of processes per repeat, and the values of each metric."""

    name: str
    count: float
    figures: dict[str, list[float]]

    def mean(self, figure: str) -> float | None:
        values = self.figures.get(figure, [])
        return sum(values) / len(values) if values else None

    def interval(self, figure: str) -> Value:
        """Return the mean over repeats with its t interval.

        One repeat gives a value without an interval, and two repeats give TooFew.
        """
        return mean_of(self.figures.get(figure, []))


def mean_of(values: Sequence[float]) -> Value:
    """Return the mean of one value per repeat, with its interval if there are enough repeats."""
    if not values:
        return None
    if len(values) == 1:
        return float(values[0])
    if len(values) < REPEATS_MIN:
        return TooFew(len(values), REPEATS_MIN, "repeats")
    return stats.mean_interval(values)


class Executed:
    """The tables of an exec folder, prepared for output."""

    def __init__(self, store: Execution) -> None:
        self.document = store.document
        self.summary = store.summary()
        self._processes = store.processes()
        self.rows = self._rows()

    def _rows(self) -> list[Row]:
        if self._processes.is_empty() or "process" not in self._processes.columns:
            return []
        frame = self._processes.with_columns(self._labels())
        figures_by_label: dict[str, dict[str, list[float]]] = {}
        counts: Counter[str] = Counter()
        for _, repeat_rows in sorted(frame.group_by("repeat"), key=lambda item: item[0]):
            for (label,), process_rows in repeat_rows.group_by("label", maintain_order=True):
                counts[str(label)] += len(process_rows)
                figures = figures_by_label.setdefault(str(label), {})
                for name in (*SUMMED, *MEANS, *HIGHEST):
                    value = _fold(process_rows, name)
                    if value is not None:
                        figures.setdefault(name, []).append(value)
        repeats = len(self.summary)
        table_rows = [Row(name, counts[name] / repeats, f) for name, f in figures_by_label.items()]
        # The command comes first, then attached subjects, each sorted by descending CPU time.
        subject_of = dict(zip(frame["label"].to_list(), frame["subject"].to_list(), strict=True))
        return sorted(
            table_rows,
            key=lambda row: (_subject_key(subject_of[row.name]), -(row.mean("cpu_s") or 0.0)),
        )

    def _labels(self) -> pl.Series:
        """Return a label for each process that is the same in all repeats."""
        several = len(set(self._processes["subject"].to_list())) > 1
        names = [
            f"{subject}: {process}" if several else str(process)
            for subject, process in self._processes.select("subject", "process").iter_rows()
        ]
        repeats = self._processes["repeat"].to_list()
        most_per_repeat: dict[str, int] = {}
        for (name, _), count in Counter(zip(names, repeats, strict=True)).items():
            most_per_repeat[name] = max(most_per_repeat.get(name, 0), count)
        occurrences: Counter[tuple[str, int]] = Counter()
        labels = []
        for name, repeat in zip(names, repeats, strict=True):
            occurrences[name, repeat] += 1
            is_unique = most_per_repeat[name] == 1 or most_per_repeat[name] > SAME_NAME_MAX
            labels.append(name if is_unique else f"{name} ({occurrences[name, repeat]})")
        return pl.Series("label", labels)

    def values(self, figure: str) -> list[float]:
        """Return the sum of a metric over all processes, for each repeat that has a value."""
        if figure not in self.summary.columns:
            return []
        return [float(v) for v in self.summary[figure].to_list() if v is not None]

    def energy_per_message(self) -> Value | BelowResolution | NotComputable:
        """Return the measured energy (J) per message, or BelowResolution if it is too small."""
        needed = ("power_window_w", "power_baseline_w", "messages", "window_s")
        if not self.values("energy_j_per_message"):
            return None
        rows = [r for r in self.summary.select(needed).iter_rows() if None not in r]
        if len(rows) < REPEATS_MIN:
            return mean_of(self.values("energy_j_per_message"))
        delta_w = [window - base for window, base, _, _ in rows]
        return stats.joules_per_message(delta_w, [m / s for _, _, m, s in rows])

    def as_json(self) -> dict[str, Any]:
        """Return the whole table as JSON values."""
        totals = {
            name: _plain(mean_of(self.values(name)))
            for name in (*SUMMED, *MEANS, *HIGHEST, *PER_MESSAGE, "window_s", "messages")
        }
        totals["energy_j_per_message"] = _plain(self.energy_per_message())
        return {
            "command": self.document["command"],
            "attached": self.document["attached"],
            "repeats": self.summary.to_dicts(),
            "processes": [
                {
                    "process": row.name,
                    "count": row.count,
                    **{name: _plain(row.interval(name)) for name in row.figures},
                }
                for row in self.rows
            ],
            "whole": totals,
        }


def _subject_key(subject: str) -> int:
    """Return the position of a subject's rows: the command, then attached0, then attached1."""
    digits = subject.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) + 1 if digits.isdecimal() else 0


def _fold(rows: pl.DataFrame, name: str) -> float | None:
    """Return the sum, mean or maximum over several processes with the same name."""
    if name not in rows.columns:
        return None
    values = [float(v) for v in rows[name].to_list() if v is not None]
    if not values:
        return None
    if name in HIGHEST:
        return max(values)
    return sum(values) / len(values) if name in MEANS else sum(values)


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return {"mean": value.estimate, "low": value.low, "high": value.high, "n": value.count}
    if isinstance(value, (TooFew, BelowResolution, NotComputable)):
        return {"mean": None, "why": str(value)}
    return value if value is None else {"mean": value}
