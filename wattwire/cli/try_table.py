"""Format the result table of `try`, with one row per cell and the statistics of the report."""

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
from wattwire.analysis.document import document
from wattwire.analysis.latency import all_series
from wattwire.analysis.responses import CPU, LATENCY_P50
from wattwire.cli import answer_table
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
"""Number of left-aligned columns at the start of the table."""


@dataclass(frozen=True)
class Line:
    """Results of a cell at a payload, as medians over its runs and the ratio to the baseline."""

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
    """The page's answer, the rows of the table, counts and notes.

    Within each payload, the fastest cell comes first.
    """

    answer: str
    baseline: str
    rows: tuple[Line, ...]
    usable: int
    runs: int
    blocks: int
    family: int
    answer_lines: tuple[str, ...]
    """The lines of the table of answers, or an empty tuple for a single answer."""
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the lines of the comparison in 80 columns. The first line states the result."""
        text_lines = [*_wrap(self.answer), ""]
        for payload in dict.fromkeys(row.payload_bytes for row in self.rows):
            payload_rows = [row for row in self.rows if row.payload_bytes == payload]
            text_lines += _table(payload, payload_rows, self.baseline)
        text_lines += [*self.answer_lines, ""] if self.answer_lines else []
        for note in (self._basis(), *self.notes):
            text_lines += _wrap(note)
        return text_lines

    def _basis(self) -> str:
        level = words.confidence(CONFIDENCE)
        verb = "is" if self.runs == 1 else "are"
        text = (
            f"{self.usable} of {words.plural(self.runs, 'run')} {verb} valid, in "
            f"{words.plural(self.blocks, 'block')}. Medians are geometric means over runs, with "
            f"{level} intervals. CPU time is the sum over all nodes, per message."
        )
        if not any(isinstance(row.ratio, stats.Ratio) for row in self.rows):
            return text
        text += f" Ratios are relative to the first cell, {self.baseline}, within blocks"
        if len({row.payload_bytes for row in self.rows}) > 1:
            return f"{text}; the {level} intervals are per payload, not simultaneous."
        simultaneous = f"; the {self.family} intervals of the page are simultaneous at {level}"
        return text + (simultaneous if self.family > 1 else "") + "."

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object. A missing number is replaced by its reason."""
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
    """Compare the cells of a complete or interrupted trial, with the answers of its page."""
    evidence = gather(campaign)
    frame = evidence.usable
    if not frame.height:  # Excluded runs are still informative, and a note lists them.
        frame = evidence.excluded
    answers = answer_all(evidence)
    rows: list[Line] = []
    for payload in evidence.factors.get(OTHER) or (evidence.study.fixed[OTHER],):
        payload_runs = _runs_at(frame, OTHER, payload)
        cells = [(cell, _runs_at(payload_runs, FACTOR, cell)) for cell in evidence.factors[FACTOR]]
        lines = [_line(str(cell), int(payload), runs) for cell, runs in cells if runs.height]
        rows += sorted(lines, key=lambda row: (math.isnan(row.centre_us), row.centre_us))
    compared_rows = tuple(_with_ratio(evidence, frame, row, answers) for row in rows)
    return Comparison(
        _answer(evidence, answers, compared_rows),
        str(baseline_in(evidence, FACTOR, LATENCY_P50)),
        compared_rows,
        0 if all_ended(evidence) else evidence.usable.height,
        len(evidence.planned),
        frame["block"].n_unique() if frame.height else 0,
        answers.family if evidence.usable.height else answers.family_of_all,
        tuple(answer_table.lines(document(evidence, answers), WIDTH)),
        tuple(_notes(evidence)),
    )


def _answer(evidence: Evidence, answers: Answers, rows: Sequence[Line]) -> str:
    """Return the first line of the page.

    Without a valid run, it includes the reason that all runs share. For a single cell, it begins
    with the cell's median latency.
    """
    if not rows:
        title = evidence.study.title
        return f"{title}: no run was finished, so there is nothing to compare."
    page_answer = headline(evidence, answers)
    if not evidence.usable.height:
        sentences = (sentence_of_all(evidence, answer, answers) for answer in answers.items)
        return " ".join(filter(None, (page_answer, next(filter(None, sentences), None))))
    if len({row.cell for row in rows}) > 1 or all_ended(evidence):
        return page_answer
    size = f" at {words.count(rows[0].payload_bytes)} B" if len(rows) > 1 else ""
    median_words = f"{rows[0].cell}{size}: median latency {_centre(rows[0])}."
    return f"{median_words} {page_answer}" if answers.computed() else median_words


def _runs_at(frame: pl.DataFrame, factor: str, level: Any) -> pl.DataFrame:
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
    too_few = carried.why_not(frame, LATENCY_P50.column)
    interval = too_few or (stats.geometric_mean(known, CONFIDENCE) if len(known) else PENDING)
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
    """Return the line with the page's ratio, or with the ratio at its payload if payloads vary."""
    matching = [
        answer
        for answer in answers.items
        if answer.response == LATENCY_P50
        and answer.factor == FACTOR
        and same_level(answer.level, row.cell)
    ]
    if not matching:
        return row
    if len(evidence.factors.get(OTHER, ())) > 1:
        ratio = contrast(evidence, frame, matching[0], CONFIDENCE, (OTHER, row.payload_bytes))
    else:
        ratio = matching[0].result if evidence.usable.height else matching[0].with_all
    return replace(row, ratio=ratio)


def _notes(evidence: Evidence) -> list[str]:
    notes: list[str] = []
    if steady_state.expects_steady_state(evidence):
        unsettled = steady_state.unsettled_sentence(evidence, all_series(evidence))
        notes += [unsettled] if unsettled else []
    notes += filter(None, [concurrency.sentence(evidence)])
    if evidence.warm_up:
        warm_up_words = str(evidence.warm_up["words"])
        notes.append(f"{warm_up_words[:1].upper()}{warm_up_words[1:]}.")
    left_out = {
        f"{_treatment_name(entry['treatment'])}: {entry['skipped']}" for entry in evidence.skipped
    }
    notes += [f"Skipped: {text}." for text in sorted(left_out)]
    guarantees: dict[str, str] = {}
    for run in evidence.runs.values():
        ready = run["nodes"][-1].get("ready") or {}
        delivery = ready.get("guarantee", {}).get("delivery")
        if delivery:
            guarantees[str(run["levels"].get(FACTOR))] = delivery.replace("_", " ")
    if len(set(guarantees.values())) > 1:
        listed = ", ".join(f"{cell} {delivery}" for cell, delivery in sorted(guarantees.items()))
        notes.append(
            "The comparison is not like for like, because the cells guarantee different "
            f"delivery ({listed})."
        )
    if evidence.excluded.height:
        reasons: dict[str, list[str]] = {}
        for run in evidence.excluded["run"].to_list():
            for reason in evidence.runs[run]["reasons"]:
                reasons.setdefault(reason["code"], []).append(reason["detail"])
        causes = [
            f"{details[0]} (in {words.plural(len(details), 'run')})" for details in reasons.values()
        ]
        notes.append(
            f"{words.plural(evidence.excluded.height, 'run')} excluded: {'; '.join(causes)}."
        )
    outcomes = sorted(
        {
            f"{run['levels'].get(FACTOR)} {run['outcome'].replace('_', ' ')}: "
            f"{run['outcome_detail']}"
            for run in evidence.runs.values()
            if run["outcome"] != "completed"
        }
    )
    return notes + [f"Outcome: {text}." for text in outcomes]


def _treatment_name(treatment: Mapping[str, Any]) -> str:
    """Return the name of a treatment, with its payload if payloads vary."""
    payload = treatment.get(OTHER)
    payload_words = "" if payload is None else f" at {words.count(payload)} B"
    return f"{treatment.get(FACTOR)}{payload_words}"


# -- words -------------------------------------------------------------------------------------


HEADINGS = ("", "median latency, µs", "times baseline", "lost", "CPU, µs")


def _table(payload: int, rows: Sequence[Line], baseline: str) -> list[str]:
    """Return the lines of a payload's table, fastest cell first.

    The width of a column is the maximum width of its texts.
    """
    cells = [_row(row, row.cell == baseline and len(rows) > 1) for row in rows]
    widths = [
        max(len(text) for text in column_texts)
        for column_texts in zip(HEADINGS, *cells, strict=True)
    ]
    lines = [f"{words.count(payload)} B"]
    for texts in (HEADINGS, *cells):
        padded = [
            text.rjust(width) if index > NUMBERS_FROM else text.ljust(width)
            for index, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return [*lines, ""]


def _row(row: Line, is_baseline: bool) -> tuple[str, ...]:
    latency = row.latency_us
    interval_words = _limits(latency) if isinstance(latency, stats.Interval) else _brief(latency)
    ratio = "1" if is_baseline else ""
    if isinstance(row.ratio, stats.Ratio):
        ratio = f"{words.number(row.ratio.interval.estimate)} {_limits(row.ratio.interval)}"
    elif row.ratio is not None:
        ratio = _brief(row.ratio)
    return (
        row.cell,
        f"{words.number(row.centre_us)} {interval_words}",
        ratio,
        words.percent(row.loss_share),
        words.number(row.cpu_us),
    )


def _limits(interval: stats.Interval) -> str:
    return f"({words.number(interval.low)}–{words.number(interval.high)})"


def _brief(result: Any) -> str:
    return result.brief if isinstance(result, stats.TooFew) else "no number"


def _centre(row: Line) -> str:
    latency = row.latency_us
    text = f"{words.number(row.centre_us)} µs"
    if isinstance(latency, stats.Interval):
        text += f" ({words.number(latency.low)} to {words.number(latency.high)})"
    return f"{text} over {words.plural(row.runs, 'run')}"


def _plain(value: Any) -> Any:
    if value is None or not isinstance(value, stats.Interval):
        return None if value is None else str(value)
    return asdict(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
