"""Sentences on valid runs without a value of a response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_of, same_level
from wattwire.analysis.not_compared import compared
from wattwire.analysis.responses import Response
from wattwire.model.derived import column
from wattwire.model.flows import has_flow_of
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "missing_values",
    {
        "runs_ended": "{runs:plural valid run} ended with the outcome “{outcome}”.",
        "fewer_combinations": (
            "{contrasts:listed 4}: over {own:count} of {all:count} combinations of the other "
            "factors, without {missing:listed 4}. Such an estimate is not directly comparable with "
            "one over other combinations."
        ),
        "contrast": "{level} against {baseline} in {response}",
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
    return [*texts, *_fewer_combinations(evidence, answers)]


def _fewer_combinations(evidence: Evidence, answers: Answers) -> Iterator[Phrase]:
    """Yield a sentence on the contrasts that are over fewer combinations than others of a factor.

    A contrast is over the combinations of the other factors that have both of its levels.
    """
    numbers = [
        answer
        for answer in answers.items
        if isinstance(answer.result, NUMBER) and answer.result.kind != "main effects"
    ]
    treatments = {
        response: _treatments(evidence, response)
        for response in dict.fromkeys(answer.response for answer in numbers)
    }
    for factor in dict.fromkeys(answer.factor for answer in numbers):
        contrasts: dict[frozenset[str], list[Phrase]] = {}
        for answer in numbers:
            if answer.factor == factor:
                contrast = PHRASES(
                    "contrast",
                    level=evidence.title(factor, answer.level),
                    baseline=evidence.title(factor, answer.baseline),
                    response=answer.response.title,
                )
                own = _combinations(evidence, answer, treatments[answer.response])
                contrasts.setdefault(own, []).append(contrast)
        every = frozenset[str]().union(*contrasts)
        for own, names in contrasts.items():
            if own and own != every:
                yield PHRASES(
                    "fewer_combinations",
                    contrasts=list(dict.fromkeys(names)),
                    own=len(own),
                    all=len(every),
                    missing=sorted(every - own),
                )


def _treatments(evidence: Evidence, response: Response) -> list[dict[str, Any]]:
    """Return the varied levels of each treatment to which the response's model is fitted."""
    frame = evidence.usable
    frame = frame.filter(pl.Series(compared(evidence, frame, response)))
    return [
        {name: levels_of(group, name)[0] for name in evidence.varied}
        for group in by_treatment(evidence, frame).values()
    ]


def _combinations(
    evidence: Evidence, answer: Answer, treatments: Sequence[dict[str, Any]]
) -> frozenset[str]:
    """Return the combinations of the other factors that have both levels of the answer."""
    sides = [
        {
            evidence.treatment_title(levels, without=(answer.factor,))
            for levels in treatments
            if same_level(levels[answer.factor], level)
        }
        for level in (answer.level, answer.baseline)
    ]
    return frozenset(sides[0] & sides[1])
