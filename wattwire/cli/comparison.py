"""Cells side by side in the terminal: the statistics are those of the report."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.report import words
from wattwire.report.answers import CONFIDENCE, Answer, Result, contrast
from wattwire.report.evidence import Evidence, FloatArray, column, gather, levels_of, same_level
from wattwire.report.responses import CPU, LATENCY_P50
from wattwire.store import Campaign

WIDTH = 80
FACTOR, OTHER = "cell", "payload_bytes"
PENDING = stats.NotComputable("not computed")
NUMBERS_FROM = 2
"""Columns of the table after this one stand to the right."""


@dataclass(frozen=True)
class Line:
    """One cell at one payload: medians over its runs, and its ratio to the fastest cell there."""

    cell: str
    payload_bytes: int
    runs: int
    latency_us: stats.Interval | stats.TooFew | stats.NotComputable
    centre_us: float
    ratio: Result | None
    loss_share: float
    cpu_us: float
    outcomes: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """All lines, fastest first within a payload, and what must be said beside them."""

    title: str
    rows: tuple[Line, ...]
    usable: int
    runs: int
    blocks: int
    family: int
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """The comparison in 80 columns; the first line is its result in words."""
        told = [*_wrap(self._result()), ""]
        for payload in dict.fromkeys(row.payload_bytes for row in self.rows):
            told += _table(payload, [r for r in self.rows if r.payload_bytes == payload])
        for note in (self._basis(), *self.notes):
            told += _wrap(note)
        return told

    def _result(self) -> str:
        if not self.rows:
            return f"{self.title}: no run was finished, so there is nothing to compare."
        told = self._winner()
        if self.usable:
            return told
        return f"No run may be used, see below. Counted all the same: {told}"

    def _winner(self) -> str:
        first = self.rows[0].payload_bytes
        at = [row for row in self.rows if row.payload_bytes == first]
        size = f" at {words.count(first)} B" if self.rows[-1].payload_bytes != first else ""
        best, rest = at[0], at[1:]
        if not rest:
            return f"{best.cell}{size}: median latency {_centre(best)}."
        ratios = [row.ratio for row in rest]
        if isinstance(ratios[0], stats.Ratio) and not ratios[0].interval.excludes(1.0):
            return (
                f"{best.cell} and {rest[0].cell} cannot be told apart{size}: their median "
                f"latencies differ by a factor of {_interval(ratios[0].interval)}."
            )
        if len(rest) == 1 and isinstance(ratios[0], stats.Ratio):
            return (
                f"{best.cell} was faster{size}: {rest[0].cell} took "
                f"{_interval(ratios[0].interval)} times its median latency."
            )
        if isinstance(ratios[0], stats.Ratio):
            return f"{best.cell} was the fastest{size}, by median latency."
        return f"{best.cell} had the lowest median latency{size}; no interval: {ratios[0]}."

    def _basis(self) -> str:
        level = words.confidence(CONFIDENCE)
        together = (
            f" The {self.family} ratios' intervals hold together at {level}, paired in blocks."
            if self.family > 1
            else f" The ratio's interval is at {level}, paired in blocks."
            if self.family
            else ""
        )
        return (
            f"{self.usable} of {words.plural(self.runs, 'run')} can be used, in "
            f"{words.plural(self.blocks, 'block')}. Medians are geometric means over runs, with "
            f"{level} intervals; CPU time is all nodes' for one message.{together}"
        )

    def to_json(self) -> dict[str, Any]:
        """The same as values; an answer that has no number is its reason."""
        rows = []
        for row in self.rows:
            ratio = row.ratio.interval if isinstance(row.ratio, stats.Ratio) else row.ratio
            rows.append(
                {
                    "cell": row.cell,
                    "payload_bytes": row.payload_bytes,
                    "runs": row.runs,
                    "latency_p50_us": _plain(row.latency_us),
                    "ratio_to_fastest": _plain(ratio),
                    "loss_share": _finite(row.loss_share),
                    "cpu_us_per_message": _finite(row.cpu_us),
                    "outcomes": list(row.outcomes),
                }
            )
        return {"rows": rows, "usable": self.usable, "runs": self.runs, "notes": list(self.notes)}


def compare(campaign: Campaign) -> Comparison:
    """Compare the cells of a finished or broken-off trial."""
    evidence = gather(campaign)
    rows: list[Line] = []
    frame = evidence.usable
    if not frame.height:  # what there is says more than nothing, as long as it is called by name
        frame = evidence.set_aside
    payloads = evidence.factors.get(OTHER) or (evidence.study["fixed"][OTHER],)
    family = 0
    for payload in payloads:
        at = _at(frame, OTHER, payload)
        cells = [(cell, _at(at, FACTOR, cell)) for cell in evidence.factors[FACTOR]]
        lines = [_line(str(cell), int(payload), runs) for cell, runs in cells if runs.height]
        lines.sort(key=lambda row: (math.isnan(row.centre_us), row.centre_us))
        family += max(0, len(lines) - 1)
        rows += lines
    level = stats.bonferroni(CONFIDENCE, max(1, family))
    compared = tuple(_with_ratio(evidence, frame, row, rows, level, len(payloads)) for row in rows)
    blocks = frame["block"].n_unique() if frame.height else 0
    return Comparison(
        str(evidence.study.get("title", "")),
        compared,
        evidence.usable.height,
        len(evidence.planned),
        blocks,
        sum(isinstance(row.ratio, stats.Ratio) for row in compared),
        tuple(_notes(evidence)),
    )


def _at(frame: pl.DataFrame, factor: str, level: Any) -> pl.DataFrame:
    if not frame.height:
        return frame
    return frame.filter(pl.Series([same_level(v, level) for v in levels_of(frame, factor)]))


def _line(cell: str, payload: int, frame: pl.DataFrame) -> Line:
    latency = column(frame, LATENCY_P50.column)
    known = latency[latency == latency]
    expected = column(frame, "expected").sum()
    centre = _geometric(known)
    cpu = column(frame, CPU.column)
    positive = cpu[cpu > 0]
    interval = stats.geometric_mean(known, CONFIDENCE) if len(known) else PENDING
    return Line(
        cell,
        payload,
        frame.height,
        interval,
        centre,
        None,
        float(column(frame, "lost").sum() / expected) if expected else math.nan,
        float(math.exp(sum(map(math.log, positive)) / len(positive)))
        if len(positive)
        else math.nan,
        tuple(sorted(set(frame["outcome"].to_list()) - {"completed"})),
    )


def _geometric(values: FloatArray) -> float:
    return math.exp(float(np.mean(np.log(values)))) if len(values) else math.nan


def _with_ratio(
    evidence: Evidence,
    frame: pl.DataFrame,
    row: Line,
    rows: Sequence[Line],
    level: float,
    payloads: int,
) -> Line:
    best = next(r for r in rows if r.payload_bytes == row.payload_bytes)
    if best is row or math.isnan(row.centre_us) or math.isnan(best.centre_us):
        return row
    wanted = Answer("", LATENCY_P50, FACTOR, row.cell, best.cell, PENDING, PENDING)
    within = (OTHER, row.payload_bytes) if payloads > 1 else None
    ratio = contrast(evidence, frame, wanted, level, within)
    return replace(row, ratio=ratio)


def _notes(evidence: Evidence) -> list[str]:
    notes = []
    left_out = {
        f"{entry['treatment'].get(FACTOR)} at {words.count(entry['treatment'].get(OTHER))} B: "
        f"{entry['skipped']}"
        for entry in evidence.skipped
    }
    notes += [f"Left out: {text}." for text in sorted(left_out)]
    guarantees: dict[str, str] = {}
    for run in evidence.runs.values():
        ready = run["nodes"][-1].get("ready") or {}
        told = ready.get("guarantee", {}).get("delivery")
        if told:
            guarantees[str(run["levels"].get(FACTOR))] = told.replace("_", " ")
    if len(set(guarantees.values())) > 1:
        listed = ", ".join(f"{cell} {told}" for cell, told in sorted(guarantees.items()))
        notes.append(f"Not like for like: they promise different delivery ({listed}).")
    if evidence.set_aside.height:
        reasons: dict[str, list[str]] = {}
        for run in evidence.set_aside["run"].to_list():
            for reason in evidence.runs[run]["reasons"]:
                reasons.setdefault(reason["code"], []).append(reason["detail"])
        told = [f"{details[0]} (so in {len(details)})" for details in reasons.values()]
        notes.append(
            f"{words.plural(evidence.set_aside.height, 'run')} set aside: {'; '.join(told)}."
        )
    ended = sorted(
        {
            f"{run['levels'].get(FACTOR)} {run['outcome'].replace('_', ' ')}: "
            f"{run['outcome_detail']}"
            for run in evidence.runs.values()
            if run["outcome"] != "completed"
        }
    )
    return notes + [f"Outcome: {text}." for text in ended]


# -- words -------------------------------------------------------------------------------------


HEADINGS = ("", "median latency, µs", "times the fastest", "lost", "CPU, µs")


def _table(payload: int, rows: Sequence[Line]) -> list[str]:
    """A payload's cells, the fastest first; columns are as wide as what stands in them."""
    cells = [_row(row, row is rows[0], len(rows) == 1) for row in rows]
    widths = [max(len(text) for text in column_) for column_ in zip(HEADINGS, *cells, strict=True)]
    lines = [f"{words.count(payload)} B"]
    for texts in (HEADINGS, *cells):
        padded = [
            text.rjust(width) if at > NUMBERS_FROM else text.ljust(width)
            for at, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return [*lines, ""]


def _row(row: Line, best: bool, alone: bool) -> tuple[str, ...]:
    limits = row.latency_us
    between = _limits(limits) if isinstance(limits, stats.Interval) else _brief(limits)
    ratio = "–" if not best else "" if alone else "1"
    if isinstance(row.ratio, stats.Ratio):
        ratio = f"{words.number(row.ratio.interval.estimate)} {_limits(row.ratio.interval)}"
    elif row.ratio is not None:
        ratio = _brief(row.ratio)
    return (
        row.cell,
        f"{words.number(row.centre_us)} {between}",
        ratio,
        words.percent(row.loss_share),
        words.number(row.cpu_us),
    )


def _limits(interval: stats.Interval) -> str:
    return f"({words.number(interval.low)}–{words.number(interval.high)})"


def _brief(result: Any) -> str:
    return result.brief if isinstance(result, stats.TooFew) else "no number"


def _interval(interval: stats.Interval) -> str:
    return (
        f"{words.number(interval.estimate)} (interval {words.number(interval.low)} to "
        f"{words.number(interval.high)})"
    )


def _centre(row: Line) -> str:
    limits = row.latency_us
    told = f"{words.number(row.centre_us)} µs"
    if isinstance(limits, stats.Interval):
        told += f" ({words.number(limits.low)} to {words.number(limits.high)})"
    return f"{told} over {words.plural(row.runs, 'run')}"


def _plain(value: Any) -> Any:
    if value is None or not isinstance(value, stats.Interval):
        return None if value is None else str(value)
    return asdict(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
