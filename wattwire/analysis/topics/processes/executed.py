"""Compute the costs of a command: values of each repeat, and a row per process over the repeats."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import CampaignReader
from wattwire.analysis.rejudged import Rejudged
from wattwire.model import metrics
from wattwire.model.deployment import PROBE, Request
from wattwire.model.variants import FACTOR
from wattwire.model.verdict import Verdict
from wattwire.stats import BelowResolution, Interval, NotComputable, TooFew
from wattwire.store import Campaign

SAME_NAME_MAX = 3
"""Several processes of one name in a run share a row: SUMMED, MEANS, HIGHEST."""
RUNS_MIN = 3
SUMMED, MEANS, HIGHEST = (
    metrics.combined_by(way) for way in (metrics.SUM, metrics.MEAN, metrics.HIGHEST)
)
"""Means are not summed, because the processes may have run at different times."""
PEAK_IS_BOUND = "memory_peak_is_bound"
CPU_IS_BOUND = "cpu_is_bound"
SWITCHES_ARE_BOUND = "switches_are_bound"
BOUNDS = (PEAK_IS_BOUND, CPU_IS_BOUND, SWITCHES_ARE_BOUND)
COMPLETE = ("cpu_user_s", "cpu_system_s")
"""Parts of the CPU time, which are unknown if they are unknown of one process or run."""
PER_MESSAGE = (
    "cpu_us_per_message",
    "energy_j_per_message",
    "energy_estimate_low_j_per_message",
    "energy_estimate_high_j_per_message",
)
VARIANT_COLUMN = f"factor.{FACTOR}"

Value = Interval | float | None


@dataclass(frozen=True)
class Row:
    """The processes with one name: their number per run, and the values of each metric by run."""

    name: str
    count: float
    figures: Mapping[str, Sequence[float]]

    def mean(self, figure: str) -> float | None:
        """Return the mean of a metric over the runs."""
        values = self.figures.get(figure, ())
        return sum(values) / len(values) if values else None

    def is_bound(self, flag: str) -> bool:
        """Return whether a metric is a lower bound in a run. An unknown peak counts as one."""
        return any(self.figures.get(flag, (1.0,) if flag == PEAK_IS_BOUND else ()))

    def interval(self, figure: str) -> Value:
        """Return the mean over runs, with its t interval if there are enough runs."""
        return mean_of(self.figures.get(figure, ()))


def mean_of(values: Sequence[float]) -> Value:
    """Return the mean of one value per run, with its t interval from RUNS_MIN runs on."""
    if not values:
        return None
    if len(values) < RUNS_MIN:
        return float(sum(values) / len(values))
    return stats.mean_interval(values)


@dataclass(frozen=True)
class Executed:
    """The repeats of a command or of a variant, and the costs of its processes.

    Every run that was judged is a repeat, because no condition of the machine excludes a run.
    `repeats` maps the `columns` of the summary to the values of each repeat. `rows` has the command
    first, then the attached systems, each by descending CPU time. The attempts of the repeats
    `lost_blocks` all failed, so that they have no values.
    """

    request: Request
    variant: str = ""
    repeats: Sequence[Mapping[str, Any]] = ()
    columns: Sequence[str] = ()
    lost_blocks: Sequence[int] = ()
    rows: Sequence[Row] = ()

    def values(self, figure: str) -> list[float]:
        """Return the value of a metric over all processes, for each run that has a value."""
        return [value for _, value in self.values_by_run(figure)]

    def values_by_run(self, figure: str) -> list[tuple[str, float]]:
        """Return the name of each run that has a value, with the value over all processes."""
        return [
            (str(row.get("run")), value)
            for row in self.repeats
            if (value := _of_run(row, figure)) is not None
        ]

    def energy_per_message(self) -> Value | BelowResolution | TooFew | NotComputable:
        """Return the measured energy (J) per message, or BelowResolution if it is too small."""
        needed = ("power_window_w", "power_machine_w", "messages", "window_s")
        if not self.values("energy_j_per_message"):
            return None
        rows = [[repeat[name] for name in needed] for repeat in self.repeats]
        rows = [row for row in rows if None not in row]
        if len(rows) < RUNS_MIN:
            return mean_of(self.values("energy_j_per_message"))
        delta_w = [window - base for window, base, _, _ in rows]
        return stats.joules_per_message(delta_w, [m / s for _, _, m, s in rows])

    def as_json(self) -> dict[str, Any]:
        """Return the whole table as JSON values."""
        printed = [name for name in self.columns if name.startswith("value.")]
        totals = {
            name: _plain(mean_of(self.values(name)))
            for name in (*SUMMED, *MEANS, *HIGHEST, *PER_MESSAGE, "window_s", "messages", *printed)
        }
        totals["energy_j_per_message"] = _plain(self.energy_per_message())
        totals[PEAK_IS_BOUND] = any(self.values(PEAK_IS_BOUND) or [True])
        return {
            **({"variant": self.variant} if self.variant else {}),
            "command": list(self.request.command),
            "attached": [asdict(target) for target in self.request.attached],
            "repeats": list(map(dict, self.repeats)),
            "processes": [
                {
                    "process": row.name,
                    "count": row.count,
                    **{n: _plain(row.interval(n)) for n in row.figures if n not in BOUNDS},
                    **{flag: row.is_bound(flag) for flag in BOUNDS},
                }
                for row in self.rows
            ],
            "whole": totals,
        }


def tables_of(reader: CampaignReader) -> list[Executed]:
    """Return the repeats of each variant of a campaign; [] if `exec` did not measure it.

    Control and settling runs, which answers do not use, are not among them.
    """
    request = reader.study.request
    if request is None or not isinstance(reader, (Campaign, Rejudged)):
        return []
    summary, processes = reader.summary(), reader.processes()
    processes = pl.DataFrame() if processes is None else processes
    variants = reader.study.variants
    designed = summary.filter(pl.col("control") == "") if summary.height else summary
    if not variants or summary.is_empty():
        return [executed(request, designed, processes)]
    tables = []
    for name, variant in variants.items():
        own = designed.filter(pl.col(VARIANT_COLUMN) == name)
        command = tuple(shlex.split(variant.command))
        tables.append(executed(replace(request, command=command), own, processes, name))
    return tables


def executed(
    request: Request, summary: pl.DataFrame, processes: pl.DataFrame, variant: str = ""
) -> Executed:
    """Return the repeats in `summary`, with their costs by process."""
    is_judged = pl.col("verdict") != Verdict.FAILED.value
    judged = summary.filter(is_judged) if summary.height else summary
    has_blocks = "block" in summary.columns
    lost_blocks = {*summary["block"]} - {*judged["block"]} if has_blocks else set()
    # A failed attempt is repeated, so its processes would count twice.
    keys = ["run", "attempt"]
    has_keys = processes.height and judged.height and set(keys) <= {*judged.columns}
    own = (
        processes.join(judged.select(keys), on=keys, how="semi", maintain_order="left")
        if has_keys
        else processes.clear()
    )
    return Executed(
        request,
        variant,
        tuple(judged.to_dicts()),
        tuple(judged.columns),
        tuple(sorted(lost_blocks)),
        tuple(_rows(own, judged.height)),
    )


def _rows(processes: pl.DataFrame, runs: int) -> list[Row]:
    if processes.is_empty() or "process" not in processes.columns:
        return []
    frame = processes.with_columns(labels_of(processes))
    figures_by_label: dict[str, dict[str, list[float]]] = {}
    counts: Counter[str] = Counter()
    for _, run_rows in sorted(frame.group_by("run"), key=lambda item: item[0]):
        for (label,), process_rows in run_rows.group_by("label", maintain_order=True):
            counts[str(label)] += len(process_rows)
            figures = figures_by_label.setdefault(str(label), {})
            for name in (*SUMMED, *MEANS, *HIGHEST, *BOUNDS):
                value = _fold(process_rows, name)
                if value is not None:
                    figures.setdefault(name, []).append(value)
    for figures in figures_by_label.values():
        # A mean over fewer runs could exceed the mean of a total or of a peak.
        for name in (*COMPLETE, *MEANS):
            if len(figures.get(name, [])) < len(figures["cpu_s"]):
                figures.pop(name, None)
    table_rows = [Row(name, counts[name] / runs, f) for name, f in figures_by_label.items()]
    # The command comes first, then attached subjects, each sorted by descending CPU time.
    subject_of = dict(zip(frame["label"].to_list(), frame["subject"].to_list(), strict=True))
    return sorted(
        table_rows,
        key=lambda row: (_subject_key(subject_of[row.name]), -(row.mean("cpu_s") or 0.0)),
    )


def labels_of(processes: pl.DataFrame) -> pl.Series:
    """Return a label for each process that is the same in all runs."""
    several = len({*processes["subject"].to_list()} - {PROBE}) > 1
    names = [
        f"{subject}: {process}" if several else str(process)
        for subject, process in processes.select("subject", "process").iter_rows()
    ]
    runs = processes["run"].to_list()
    most_per_run: dict[str, int] = {}
    for (name, _), count in Counter(zip(names, runs, strict=True)).items():
        most_per_run[name] = max(most_per_run.get(name, 0), count)
    occurrences: Counter[tuple[str, str]] = Counter()
    labels = []
    for name, run in zip(names, runs, strict=True):
        occurrences[name, run] += 1
        is_unique = most_per_run[name] == 1 or most_per_run[name] > SAME_NAME_MAX
        labels.append(name if is_unique else f"{name} ({occurrences[name, run]})")
    return pl.Series("label", labels)


def _of_run(row: Mapping[str, Any], figure: str) -> float | None:
    """Return a metric of a run; a metric of its subjects is summed over them."""
    stem = figure.removesuffix("_per_message")
    if figure not in row and stem != figure:
        value, messages = _of_run(row, stem), row.get("messages")
        return value / messages if value is not None and messages else None
    if figure == "memory_mean_kib":
        figure = "memory_kib_total"
    values = [row[figure]] if figure in row else _of_subjects(row, figure)
    return None if not values or None in values else float(sum(values))


def _of_subjects(row: Mapping[str, Any], figure: str) -> list[Any]:
    """Return the values of a metric of the measured systems; those of a probe if there are none."""
    keys = [key for key in row if key.startswith(f"{figure}.")]
    systems = [key for key in keys if key != f"{figure}.{PROBE}"]
    return [row[key] for key in systems or keys]


def _subject_key(subject: str) -> int:
    """Return the position of a subject's rows: the command, attached0, attached1, the probe."""
    if subject == PROBE:
        return sys.maxsize
    digits = subject.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) + 1 if digits.isdecimal() else 0


def _fold(rows: pl.DataFrame, name: str) -> float | None:
    """Return the sum, mean or maximum over several processes with the same name."""
    if name not in rows.columns:
        return None
    values = [float(v) for v in rows[name].to_list() if v is not None]
    if not values or (name in COMPLETE and len(values) < rows.height):
        return None
    if name in HIGHEST or name in BOUNDS:
        return max(values)
    return sum(values) / len(values) if name in MEANS else sum(values)


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return {"mean": value.estimate, "low": value.low, "high": value.high, "n": value.count}
    if isinstance(value, (BelowResolution, TooFew, NotComputable)):
        return {"mean": None, "why": str(value)}
    return value if value is None else {"mean": value}
