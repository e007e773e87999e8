"""What `exec` measured, as a table: a row per process, means over repeats with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire import stats
from wattwire.model.words import MISSING, number
from wattwire.stats import BelowResolution, Interval, NotComputable, TooFew
from wattwire.store import Execution

SAME_NAME_MAX = 3
"""More processes of one name than this in a repeat are one row: SUMMED, MEANS, HIGHEST."""
REPEATS_MIN = 3
SUMMED = (
    "cpu_s", "cpu_user_s", "cpu_system_s", "cpu_share", "voluntary_switches",
    "involuntary_switches", "energy_j", "energy_estimate_low_j", "energy_estimate_high_j",
)  # fmt: skip
MEANS = ("memory_mean_kib", "pss_mean_kib")
"""They need not have lived at the same time, so a sum would be memory that was never in use."""
HIGHEST = ("memory_peak_kib", "pss_peak_kib", "threads_max")
FOLDED_WORDS = (
    "A row of several processes (×N) has the sums of their CPU time, switches and energy; memory "
    "and threads are those of one process: the mean over them, and the highest."
)
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
    """One line of the table: what it is, how many processes, and each figure over the repeats."""

    name: str
    count: float
    figures: dict[str, list[float]]

    def mean(self, figure: str) -> float | None:
        values = self.figures.get(figure, [])
        return sum(values) / len(values) if values else None

    def interval(self, figure: str) -> Value:
        """Mean over repeats with its t interval; a bare mean for one, TooFew for two."""
        return mean_of(self.figures.get(figure, []))


def mean_of(values: Sequence[float]) -> Value:
    """One value per repeat as a mean with its interval, where there are enough of them."""
    if not values:
        return None
    if len(values) == 1:
        return float(values[0])
    if len(values) < REPEATS_MIN:
        return TooFew(len(values), REPEATS_MIN, "repeats")
    return stats.mean_interval(values)


class Executed:
    """The tables of an exec folder, ready to be told."""

    def __init__(self, store: Execution) -> None:
        self.document = store.document
        self.summary = store.summary()
        self._processes = store.processes()
        self.rows = self._rows()

    def _rows(self) -> list[Row]:
        if self._processes.is_empty() or "process" not in self._processes.columns:
            return []
        frame = self._processes.with_columns(self._labels())
        gathered: dict[str, dict[str, list[float]]] = {}
        counts: Counter[str] = Counter()
        for _, part in sorted(frame.group_by("repeat"), key=lambda item: item[0]):
            for (label,), rows in part.group_by("label", maintain_order=True):
                counts[str(label)] += len(rows)
                figures = gathered.setdefault(str(label), {})
                for name in (*SUMMED, *MEANS, *HIGHEST):
                    value = _fold(rows, name)
                    if value is not None:
                        figures.setdefault(name, []).append(value)
        repeats = len(self.summary)
        found = [Row(name, counts[name] / repeats, f) for name, f in gathered.items()]
        # The command first, then what is attached in its order; each with its dearest first.
        order = dict(zip(frame["label"].to_list(), frame["subject"].to_list(), strict=True))
        return sorted(
            found, key=lambda row: (_subject_place(order[row.name]), -(row.mean("cpu_s") or 0.0))
        )

    def _labels(self) -> pl.Series:
        """A name for each process that is the same in every repeat."""
        several = len(set(self._processes["subject"].to_list())) > 1
        names = [
            f"{subject}: {process}" if several else str(process)
            for subject, process in self._processes.select("subject", "process").iter_rows()
        ]
        repeats = self._processes["repeat"].to_list()
        most: dict[str, int] = {}
        for (name, _), count in Counter(zip(names, repeats, strict=True)).items():
            most[name] = max(most.get(name, 0), count)
        seen: Counter[tuple[str, int]] = Counter()
        labels = []
        for name, repeat in zip(names, repeats, strict=True):
            seen[name, repeat] += 1
            alone = most[name] == 1 or most[name] > SAME_NAME_MAX
            labels.append(name if alone else f"{name} ({seen[name, repeat]})")
        return pl.Series("label", labels)

    def values(self, figure: str) -> list[float]:
        """A figure of the whole, one per repeat that has it."""
        if figure not in self.summary.columns:
            return []
        return [float(v) for v in self.summary[figure].to_list() if v is not None]

    def energy_per_message(self) -> Value | BelowResolution | NotComputable:
        """Measured joules per message by measurement's rule: below resolution is no number."""
        needed = ("power_window_w", "power_baseline_w", "messages", "window_s")
        if not self.values("energy_j_per_message"):
            return None
        rows = [r for r in self.summary.select(needed).iter_rows() if None not in r]
        if len(rows) < REPEATS_MIN:
            return mean_of(self.values("energy_j_per_message"))
        delta_w = [window - base for window, base, _, _ in rows]
        return stats.joules_per_message(delta_w, [m / s for _, _, m, s in rows])

    def as_json(self) -> dict[str, Any]:
        """Everything of the table for a machine."""
        whole = {
            name: _plain(mean_of(self.values(name)))
            for name in (*SUMMED, *MEANS, *HIGHEST, *PER_MESSAGE, "window_s", "messages")
        }
        whole["energy_j_per_message"] = _plain(self.energy_per_message())
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
            "whole": whole,
        }


def _subject_place(subject: str) -> int:
    """Where a subject's rows stand: the command before attached0, that before attached1."""
    digits = subject.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) + 1 if digits.isdecimal() else 0


def _fold(rows: pl.DataFrame, name: str) -> float | None:
    """Several processes of one name as one row: the sum, the mean or the highest of them."""
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


def told(value: Any, factor: float = 1.0) -> str:
    """A figure as it stands in a cell: a number, or one with its interval, or why there is none."""
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        low, high = number(value.low * factor), number(value.high * factor)
        return f"{number(value.estimate * factor)} [{low}; {high}]"
    if isinstance(value, TooFew):
        return value.brief
    if isinstance(value, (BelowResolution, NotComputable)):
        return str(value)
    return number(float(value) * factor)
