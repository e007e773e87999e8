"""Cells side by side in the terminal: the statistics are those of the report."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.contrasts import (
    CONFIDENCE,
    Answers,
    Result,
    answer_all,
    baseline_in,
    contrast,
)
from wattwire.analysis.dataset import Evidence, gather, levels_of, same_level
from wattwire.analysis.latency import all_series
from wattwire.analysis.responses import CPU, LATENCY_P50
from wattwire.model import words
from wattwire.model.derived import FloatArray, after_warmup, column
from wattwire.report.tables import steady_state
from wattwire.report.words import concurrency
from wattwire.report.words.answers import all_ended, headline, sentence_of_all
from wattwire.store import Campaign

WIDTH = 80
FACTOR, OTHER = "cell", "payload_bytes"
PENDING = stats.NotComputable("not computed")
NUMBERS_FROM = 2
"""Columns of the table after this one stand to the right."""


@dataclass(frozen=True)
class Line:
    """One cell at one payload: medians over its runs, and its ratio to the baseline there."""

    cell: str
    payload_bytes: int
    runs: int
    latency_us: stats.Interval | stats.TooFew | stats.NotComputable
    centre_us: float
    ratio: Result | None
    loss_share: float
    failed_share: float
    cpu_us: float
    outcomes: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """The page's answer, all lines (fastest first within a payload), and what belongs to them."""

    answer: str
    baseline: str
    rows: tuple[Line, ...]
    usable: int
    runs: int
    blocks: int
    family: int
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """The comparison in 80 columns; the first line is its result in words."""
        told = [*_wrap(self.answer), ""]
        for payload in dict.fromkeys(row.payload_bytes for row in self.rows):
            at = [row for row in self.rows if row.payload_bytes == payload]
            told += _table(payload, at, self.baseline)
        for note in (self._basis(), *self.notes):
            told += _wrap(note)
        return told

    def _basis(self) -> str:
        level = words.confidence(CONFIDENCE)
        told = (
            f"{self.usable} of {words.plural(self.runs, 'run')} can be used, in "
            f"{words.plural(self.blocks, 'block')}. Medians are geometric means over runs, with "
            f"{level} intervals; CPU time is all nodes' for one message."
        )
        if not any(isinstance(row.ratio, stats.Ratio) for row in self.rows):
            return told
        told += f" Ratios are to {self.baseline}, named first, and inside blocks"
        if len({row.payload_bytes for row in self.rows}) > 1:
            return f"{told}; each payload's interval stands alone at {level}."
        together = f"; the page's {self.family} answers hold together at {level}"
        return told + (together if self.family > 1 else "") + "."

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
                    "ratio_to_baseline": _plain(ratio),
                    "loss_share": _finite(row.loss_share),
                    "failed_share": _finite(row.failed_share),
                    "cpu_us_per_message": _finite(row.cpu_us),
                    "outcomes": list(row.outcomes),
                }
            )
        return {
            "answer": self.answer,
            "baseline": self.baseline,
            "rows": rows,
            "usable": self.usable,
            "runs": self.runs,
            "notes": list(self.notes),
        }


def compare(campaign: Campaign) -> Comparison:
    """Compare the cells of a finished or broken-off trial, by the answers of its page."""
    evidence = gather(campaign)
    frame = evidence.usable
    if not frame.height:  # what there is says more than nothing, as long as it is called by name
        frame = evidence.set_aside
    answers = answer_all(evidence)
    rows: list[Line] = []
    for payload in evidence.factors.get(OTHER) or (evidence.study["fixed"][OTHER],):
        at = _at(frame, OTHER, payload)
        cells = [(cell, _at(at, FACTOR, cell)) for cell in evidence.factors[FACTOR]]
        lines = [_line(str(cell), int(payload), runs) for cell, runs in cells if runs.height]
        rows += sorted(lines, key=lambda row: (math.isnan(row.centre_us), row.centre_us))
    compared = tuple(_with_ratio(evidence, frame, row, answers) for row in rows)
    return Comparison(
        _answer(evidence, answers, compared),
        str(baseline_in(evidence, FACTOR, LATENCY_P50)),
        compared,
        0 if all_ended(evidence) else evidence.usable.height,
        len(evidence.planned),
        frame["block"].n_unique() if frame.height else 0,
        answers.family if evidence.usable.height else answers.family_of_all,
        tuple(_notes(evidence)),
    )


def _answer(evidence: Evidence, answers: Answers, rows: Sequence[Line]) -> str:
    """The first line of the page; where no run may be used, what all of them say besides."""
    if not rows:
        title = evidence.study.get("title", "")
        return f"{title}: no run was finished, so there is nothing to compare."
    told = headline(evidence, answers)
    if not evidence.usable.height:
        every = (sentence_of_all(evidence, answer, answers) for answer in answers.items)
        return " ".join(filter(None, (told, next(filter(None, every), None))))
    if len({row.cell for row in rows}) > 1 or all_ended(evidence):
        return told
    size = f" at {words.count(rows[0].payload_bytes)} B" if len(rows) > 1 else ""
    alone = f"{rows[0].cell}{size}: median latency {_centre(rows[0])}."
    return f"{alone} {told}" if answers.computed() else alone


def _at(frame: pl.DataFrame, factor: str, level: Any) -> pl.DataFrame:
    if not frame.height:
        return frame
    return frame.filter(pl.Series([same_level(v, level) for v in levels_of(frame, factor)]))


def _line(cell: str, payload: int, frame: pl.DataFrame) -> Line:
    latency = column(frame, LATENCY_P50.column)
    known = latency[latency == latency]
    expected = after_warmup(frame, "expected").sum()
    centre = _geometric(known)
    cpu = column(frame, CPU.column)
    positive = cpu[cpu > 0]
    few = carried.why_not(frame, LATENCY_P50.column)
    interval = few or (stats.geometric_mean(known, CONFIDENCE) if len(known) else PENDING)
    return Line(
        cell,
        payload,
        frame.height,
        interval,
        centre,
        None,
        float(after_warmup(frame, "lost").sum() / expected) if expected else math.nan,
        float(after_warmup(frame, "failed").sum() / expected) if expected else math.nan,
        _geometric(positive),
        tuple(sorted(set(frame["outcome"].to_list()) - {"completed"})),
    )


def _geometric(values: FloatArray) -> float:
    return math.exp(float(np.mean(np.log(values)))) if len(values) else math.nan


def _with_ratio(evidence: Evidence, frame: pl.DataFrame, row: Line, answers: Answers) -> Line:
    """The line with its ratio as the page has it: an answer, or what one is at this payload."""
    mine = [
        answer
        for answer in answers.items
        if answer.response == LATENCY_P50
        and answer.factor == FACTOR
        and same_level(answer.level, row.cell)
    ]
    if not mine:
        return row
    if len(evidence.factors.get(OTHER, ())) > 1:
        ratio = contrast(evidence, frame, mine[0], CONFIDENCE, (OTHER, row.payload_bytes))
    else:
        ratio = mine[0].result if evidence.usable.height else mine[0].with_all
    return replace(row, ratio=ratio)


def _notes(evidence: Evidence) -> list[str]:
    notes = []
    if steady_state.are_asked(evidence):
        moving = steady_state.told_unsettled(evidence, all_series(evidence))
        notes += [moving] if moving else []
    notes += filter(None, [concurrency.sentence(evidence)])
    if evidence.warm_up:
        found = str(evidence.warm_up["words"])
        notes.append(f"{found[:1].upper()}{found[1:]}.")
    left_out = {f"{_named(entry['treatment'])}: {entry['skipped']}" for entry in evidence.skipped}
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


def _named(treatment: Mapping[str, Any]) -> str:
    """A treatment by its cell, and by its payload where that is varied."""
    payload = treatment.get(OTHER)
    at = "" if payload is None else f" at {words.count(payload)} B"
    return f"{treatment.get(FACTOR)}{at}"


# -- words -------------------------------------------------------------------------------------


HEADINGS = ("", "median latency, µs", "times baseline", "lost", "CPU, µs")


def _table(payload: int, rows: Sequence[Line], baseline: str) -> list[str]:
    """A payload's cells, the fastest first; columns are as wide as what stands in them."""
    cells = [_row(row, row.cell == baseline and len(rows) > 1) for row in rows]
    widths = [max(len(text) for text in column_) for column_ in zip(HEADINGS, *cells, strict=True)]
    lines = [f"{words.count(payload)} B"]
    for texts in (HEADINGS, *cells):
        padded = [
            text.rjust(width) if at > NUMBERS_FROM else text.ljust(width)
            for at, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return [*lines, ""]


def _row(row: Line, baseline: bool) -> tuple[str, ...]:
    limits = row.latency_us
    between = _limits(limits) if isinstance(limits, stats.Interval) else _brief(limits)
    ratio = "1" if baseline else ""
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
