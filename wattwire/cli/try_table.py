"""Format the result tables of `try`, with one row per treatment and the report's statistics.

The rows of a table are the levels of the compared factor: the cells, or with a single cell the
first factor that varies. Each combination of the other factors' levels has its own table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.answering.answer_types import Answers, Result
from wattwire.analysis.answering.baselines import baseline_in
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.answering.single_contrast import contrast
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather, rows_at, same_level
from wattwire.analysis.document import Document, document
from wattwire.analysis.latency import all_series
from wattwire.analysis.responses import CPU, LATENCY_P50
from wattwire.analysis.topics.answers.nothing import ended
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.headline.numbers import PageHeadline
from wattwire.analysis.topics.latency.due_time import late_senders, outages
from wattwire.analysis.topics.placements.numbers import Placements
from wattwire.analysis.topics.rates.numbers import delivered_hz, delivered_kind
from wattwire.analysis.topics.settings.numbers import Settings
from wattwire.analysis.topics.settling.numbers import expects_steady_state, few_active, settling
from wattwire.cli import answer_table
from wattwire.cli.wrap import table, wrapped
from wattwire.model import words
from wattwire.model.derived import FloatArray, after_warmup, column, due_after_warmup
from wattwire.report.headline import headline
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

WIDTH = 80
FACTOR, OTHER = "cell", "payload_bytes"
PENDING = stats.NotComputable("not computed")


@dataclass(frozen=True)
class Line:
    """Results of a treatment, as medians over its runs and the ratio to the baseline.

    `level` is its level of the compared `factor`, and `others` are its levels of the other varied
    factors. `title` is the name of `level`.
    """

    title: str
    factor: str
    level: Any
    others: tuple[tuple[str, Any], ...]
    cell: str
    payload_bytes: int
    runs: int
    latency_us: stats.Interval | stats.TooFew | stats.NotComputable
    centre_us: float
    ratio: Result | None
    per_s: float
    loss_share: float
    """Share of the sent messages."""
    unsent_share: float
    """Share of the due messages that were never sent."""
    failed_share: float
    cpu_us: float
    outcomes: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """The page's answer, the rows of the tables, counts and notes.

    Within each table, the fastest level comes first. `headings` are the titles of the tables, by
    the levels of the other factors.
    """

    answer: str
    factor: str
    baseline: Any
    headings: Mapping[tuple[tuple[str, Any], ...], str]
    rows: tuple[Line, ...]
    usable: int
    runs: int
    blocks: int
    family: int
    per_s: str
    """The unit of the rate of delivery: calls/s or messages/s."""
    answer_lines: tuple[str, ...]
    """The lines of the table of answers, or an empty tuple for a single answer."""
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the lines of the comparison in 80 columns. The first line states the result."""
        text_lines = [*_wrap(self.answer), ""]
        for others, heading in self.headings.items():
            rows = [row for row in self.rows if row.others == others]
            text_lines += _table(heading, rows, self.baseline, self.per_s) if rows else []
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
        baseline = next(
            (row.title for row in self.rows if same_level(row.level, self.baseline)), self.baseline
        )
        first = "the first cell, " if self.factor == FACTOR else ""
        text += f" Ratios are relative to {first}{baseline}, within blocks"
        if len(self.headings) > 1:
            names = words.listed([words.factor_title(name) for name, _ in self.rows[0].others])
            return f"{text}; the {level} intervals are per {names}, not simultaneous."
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
                    "levels": {self.factor: row.level, **dict(row.others)},
                    "runs": row.runs,
                    "latency_p50_us": _plain(row.latency_us),
                    "ratio_to_baseline": _plain(ratio),
                    "delivered_per_s": _finite(row.per_s),
                    "loss_share": _finite(row.loss_share),
                    "unsent_share": _finite(row.unsent_share),
                    "failed_share": _finite(row.failed_share),
                    "cpu_us_per_message": _finite(row.cpu_us),
                    "outcomes": list(row.outcomes),
                }
            )
        return {
            "answer": self.answer,
            "baseline": self.baseline,
            "factor": self.factor,
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
    factor = FACTOR if FACTOR in evidence.varied else next(iter(evidence.varied), FACTOR)
    other_factors = [name for name in evidence.varied if name != factor]
    rows: list[Line] = []
    headings = {}
    for levels in itertools.product(*(evidence.factors[name] for name in other_factors)):
        others = tuple(zip(other_factors, levels, strict=True))
        headings[others] = _heading(evidence, factor, others)
        of_table = (_line(evidence, frame, factor, v, others) for v in evidence.factors[factor])
        rows += sorted(filter(None, of_table), key=_place)
    compared_rows = tuple(_with_ratio(evidence, frame, factor, row, answers) for row in rows)
    results = document(evidence, answers)
    return Comparison(
        _answer(evidence, results, compared_rows),
        factor,
        baseline_in(evidence, factor, LATENCY_P50),
        headings,
        compared_rows,
        0 if ended(evidence) else evidence.usable.height,
        len(evidence.planned),
        frame["block"].n_unique() if frame.height else 0,
        answers.family if evidence.usable.height else answers.family_of_all,
        Sentences("rates").delivered(delivered_kind(evidence)),
        tuple(answer_table.lines(results, WIDTH)),
        tuple(_notes(evidence, results)),
    )


def _place(row: Line) -> tuple[bool, float]:
    """Return the sort key of a row, fastest first and rows without a latency last."""
    return math.isnan(row.centre_us), row.centre_us


def _heading(evidence: Evidence, factor: str, others: Sequence[tuple[str, Any]]) -> str:
    """Return the title of a table: the cell or the payload, and the levels of the other factors."""
    common = [(FACTOR, level) for level in evidence.factors[FACTOR] if factor != FACTOR]
    if OTHER not in (factor, *dict(others)) and OTHER in evidence.study.fixed:
        common.append((OTHER, evidence.study.fixed[OTHER]))
    return ", ".join(evidence.title(*pair) for pair in (*common, *others))


def _answer(evidence: Evidence, results: Document, rows: Sequence[Line]) -> str:
    """Return the first line of the page.

    Without a valid run, it includes the reason that all runs share. For a single cell, it begins
    with the cell's median latency.
    """
    if not rows:
        title = evidence.study.title
        return f"{title}: no run was finished, so there is nothing to compare."
    page_answer = headline(results)
    study = results.result(AnsweredStudy)
    if not evidence.usable.height:
        statements = (item for question in study.questions for item in question.with_all)
        texts = map(Sentences("answers").with_excluded, statements)
        return " ".join([page_answer, *itertools.islice(texts, 1)])
    if FACTOR in evidence.varied or study.headline.ended:
        return page_answer
    if single := results.result(PageHeadline).single:
        return Sentences("headline").single(single)
    baseline = baseline_in(evidence, rows[0].factor, LATENCY_P50)
    row = next((row for row in rows if same_level(row.level, baseline)), rows[0])
    titles = [row.title, *(evidence.title(*pair) for pair in row.others)]
    at = f" at {', '.join(titles)}" if len(rows) > 1 else ""
    median_words = f"{row.cell}{at}: median latency {_centre(row)}."
    return f"{median_words} {page_answer}" if study.contrasts.computed() else median_words


def _line(
    evidence: Evidence,
    frame: pl.DataFrame,
    factor: str,
    level: Any,
    others: tuple[tuple[str, Any], ...],
) -> Line | None:
    """Return the results of the runs of `frame` at these levels, or None without such runs."""
    if not frame.height:
        return None
    levels = {**evidence.study.fixed, factor: level, **dict(others)}
    frame = frame.filter(pl.Series(rows_at(frame, {factor: level, **dict(others)})))
    if not frame.height:
        return None
    latency = column(frame, LATENCY_P50.column)
    known = latency[latency == latency]
    expected, due = after_warmup(frame, "expected").sum(), due_after_warmup(frame).sum()
    cpu = column(frame, CPU.column)
    too_few = carried.why_not(frame, LATENCY_P50.column)
    interval = too_few or (stats.geometric_mean(known, CONFIDENCE) if len(known) else PENDING)
    return Line(
        evidence.title(factor, level),
        factor,
        level,
        others,
        str(levels.get(FACTOR, evidence.factors[FACTOR][0])),
        int(levels[OTHER]),
        frame.height,
        interval,
        _geometric(known),
        None,
        delivered_hz(frame) or math.nan,
        float(after_warmup(frame, "lost").sum() / expected) if expected else math.nan,
        float(np.nan_to_num(after_warmup(frame, "unsent")).sum() / due) if due else math.nan,
        float(after_warmup(frame, "failed").sum() / expected) if expected else math.nan,
        _geometric(cpu[cpu > 0]),
        tuple(sorted(set(frame["outcome"].to_list()) - {"completed"})),
    )


def _geometric(values: FloatArray) -> float:
    return math.exp(float(np.mean(np.log(values)))) if len(values) else math.nan


def _with_ratio(
    evidence: Evidence, frame: pl.DataFrame, factor: str, row: Line, answers: Answers
) -> Line:
    """Return the line with the page's ratio, or with the ratio at its levels of other factors."""
    matching = [
        answer
        for answer in answers.items
        if answer.response == LATENCY_P50
        and answer.factor == factor
        and same_level(answer.level, row.level)
    ]
    if not matching:
        return row
    *held, last = row.others or (None,)
    if last is None:
        result = matching[0].result if evidence.usable.height else matching[0].with_all
        return replace(row, ratio=result)
    if held:  # A model of the page is over all runs, so the runs at these levels have their own.
        frame = frame.filter(pl.Series(rows_at(frame, dict(held))))
        evidence = replace(evidence, usable=frame, fits={})
    return replace(row, ratio=contrast(evidence, frame, matching[0], CONFIDENCE, last))


def _notes(evidence: Evidence, results: Document) -> list[str]:
    notes: list[str] = []
    of_settling, of_latency = Sentences("settling"), Sentences("latency")
    if expects_steady_state(evidence):
        notes.append(of_settling.unsettled(settling(evidence, all_series(evidence))))
    notes.append(of_settling.few_active(tuple(few_active(evidence))))
    notes += map(Sentences("settings").unequal, results.result(Settings).unequal)
    notes += [of_latency.outages(outages(evidence)), of_latency.late(late_senders(evidence))]
    notes = [note for note in notes if note]
    if evidence.warm_up:
        warm_up_words = str(evidence.warm_up["words"])
        notes.append(f"{warm_up_words[:1].upper()}{warm_up_words[1:]}.")
    left_out = {f"{_name(evidence, e['treatment'])}: {e['skipped']}" for e in evidence.skipped}
    notes += [f"Skipped: {text}." for text in sorted(left_out)]
    notes += _placements(results.result(Placements))
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
            f"{_name(evidence, run['levels'])} {run['outcome'].replace('_', ' ')}: "
            f"{run['outcome_detail']}"
            for run in evidence.runs.values()
            if run["outcome"] != "completed"
        }
    )
    return notes + [f"Outcome: {text}." for text in outcomes]


def _placements(placements: Placements) -> list[str]:
    """Return the sentences on different placements and on CPUs that were not available."""
    sentences = Sentences("placements")
    notes = [*map(sentences.apart, placements.apart), sentences.more(placements)]
    return [note for note in (*notes, *map(sentences.restricted, placements.restrictions)) if note]


def _name(evidence: Evidence, levels: Mapping[str, Any]) -> str:
    """Return the varied levels of a treatment, or its cell if nothing varies."""
    return evidence.treatment_title(levels) or str(levels.get(FACTOR))


# -- words -------------------------------------------------------------------------------------


HEADINGS = ("", "median latency, µs", "times baseline", "lost", "CPU, µs")
ALIGN = "<<<>>"


def _table(heading: str, rows: Sequence[Line], baseline: Any, per_s: str) -> list[str]:
    """Return the lines of a table, fastest level first."""
    cells = [_row(row, same_level(row.level, baseline) and len(rows) > 1) for row in rows]
    lines = [*_wrap(heading)] if heading else []
    lines += table([HEADINGS, *cells], ALIGN)
    if any(math.isfinite(row.per_s) for row in rows):  # a column would exceed 80 columns
        by_row = ", ".join(f"{row.title} {words.number(row.per_s)}" for row in rows)
        lines += _wrap(f"  {per_s}: {by_row}")
    unsent = [row for row in rows if row.unsent_share > 0]
    if unsent:
        by_row = ", ".join(f"{row.title} {words.percent(row.unsent_share)}" for row in unsent)
        lines += _wrap(f"  lost is a share of the sent messages; due but never sent: {by_row}")
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
        row.title,
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
    return wrapped(text, WIDTH, hanging="  ").splitlines()
