"""Compute the document of a campaign: all its results, which page and terminal print.

report/analysis.json stores `values`. Its schema is `analysis.schema.json` in this folder. VERSION
increases when a key is removed or changes its meaning, but not when a key is added. results.json
next to it stores the results of the topics (`result_codec.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.carried import too_few
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import CampaignReader, Evidence, all_levels, by_treatment, gather
from wattwire.analysis.header import Header, header
from wattwire.analysis.json_values import finite
from wattwire.analysis.latency import Series, all_series
from wattwire.analysis.responses import question_responses
from wattwire.analysis.topics import topics
from wattwire.model.derived import FloatArray, column

Result = TypeVar("Result")
VERSION = 2


@dataclass(frozen=True)
class Document:
    """All results of a campaign. `results` are those of the topics, by the name of their folder.

    Without series of latencies, topics that need them or that only the page has have no result.
    `values` is the content of analysis.json; missing numbers are null.
    """

    results: Mapping[str, Any]
    values: dict[str, Any]
    header: Header = Header()

    def result(self, kind: type[Result]) -> Result:
        """Return the result of the topic that computes this type."""
        return next(result for result in self.results.values() if isinstance(result, kind))


def page_document(campaign: CampaignReader) -> Document:
    """Compute all results of a campaign, with those that only the page has."""
    evidence = gather(campaign)
    return document(evidence, series=all_series(evidence))


def document(
    evidence: Evidence,
    answers: Answers | None = None,
    series: Mapping[str, Series] | None = None,
) -> Document:
    """Compute each topic once, and return all results.

    `answers` are those of a caller that has them. `series` maps each valid run to its latencies,
    for a page. analysis.json has no result that needs them.
    """
    answers = answers or answer_all(evidence)
    results: dict[str, Any] = {}
    values = _other_values(evidence, answers)
    for name, topic in topics().items():
        if series is not None or not (topic.needs_series or topic.is_for_page):
            results[name] = topic.result(evidence, series or {}, {"contrasts": answers, **results})
            values |= topic.stored(results[name])
    return Document(results, values, header(evidence))


def _other_values(evidence: Evidence, answers: Answers) -> dict[str, Any]:
    """Return the results that belong to no topic as JSON values."""
    return {
        "version": VERSION,
        "study": evidence.study.name,
        "title": evidence.study.title,
        "primary": evidence.primary,
        "runs": {"valid": evidence.usable.height, "excluded": evidence.excluded.height},
        "confidence": CONFIDENCE,
        "treatments": list(_treatments(evidence, answers)),
        "warm_up": evidence.warm_up,
    }


def _treatments(evidence: Evidence, answers: Answers) -> Iterator[dict[str, Any]]:
    """Yield the levels, the number of valid runs and the centre of each response per treatment."""
    responses = dict.fromkeys(
        (*(answer.response for answer in answers.items), *question_responses(evidence, True))
    )
    for frame in by_treatment(evidence, evidence.usable).values():
        values = {response.column: _values(frame, response.column) for response in responses}
        levels = all_levels(evidence.runs[frame["run"][0]])
        yield {
            "levels": {name: levels.get(name) for name in evidence.varied},
            "runs": frame.height,
            "medians": {name: _median(column_values) for name, column_values in values.items()},
            "geometric_means": {
                name: _geometric_mean(column_values) for name, column_values in values.items()
            },
        }


def _values(frame: pl.DataFrame, name: str) -> FloatArray:
    """Return a column, shape (runs,); empty if any run has too few messages for a percentile.

    Using only the runs with enough messages would introduce bias.
    """
    return np.empty(0) if too_few(frame, name).any() else column(frame, name)


def _median(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return finite(float(np.median(known))) if known.size else None


def _geometric_mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    if not known.size or (known <= 0).any():
        return None
    return finite(float(np.exp(np.mean(np.log(known)))))
