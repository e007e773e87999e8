"""Sentences on valid runs without a value of a response."""

from __future__ import annotations

import numpy as np
import polars as pl

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.model.derived import column
from wattwire.model.flows import has_flow_of
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "missing_values",
    {
        "runs_ended": "{runs:plural valid run} ended with the outcome “{outcome}”.",
        "runs_without": "The ratios of {response} omit {runs:plural valid run} without a value.",
    },
)


def sentences(evidence: Evidence, answers: Answers) -> list[Phrase]:
    """Return sentences on valid runs that failed or lack a response.

    Ratios of the remaining runs make the affected treatments appear better than they are.
    """
    frame = evidence.usable
    texts = []
    for outcome in sorted(set(frame["outcome"].to_list()) - {"completed"}):
        runs = frame.filter(pl.col("outcome") == outcome).height
        texts.append(PHRASES("runs_ended", runs=runs, outcome=outcome.replace("_", " ")))
    for response in dict.fromkeys(answer.response for answer in answers.items):
        # A run without a flow has no values of this flow, and lacks none.
        sends = [has_flow_of(response.column, all_levels(evidence.runs[run]))
                 if run in evidence.runs else True for run in frame["run"].to_list()]  # fmt: skip
        missing = int(
            (np.isnan(column(frame, response.column)) & np.array(sends, dtype=bool)).sum()
        )
        if 0 < missing < frame.height:
            texts.append(PHRASES("runs_without", runs=missing, response=response.title))
    return texts
