"""Count valid runs that failed or lack a response, and find contrasts that lack combinations.

Ratios of the remaining runs make the affected treatments appear better than they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_of, same_level
from wattwire.analysis.not_compared import compared
from wattwire.analysis.responses import Response
from wattwire.model.derived import column
from wattwire.model.flows import has_flow_of


@dataclass(frozen=True)
class EndedRuns:
    """The number of valid runs with an outcome other than completed."""

    outcome: str
    runs: int


@dataclass(frozen=True)
class RunsWithout:
    """The number of valid runs without a value of a response."""

    response_title: str
    runs: int


@dataclass(frozen=True)
class Contrasted:
    """Two levels that are compared in a response."""

    level_title: str
    baseline_title: str
    response_title: str


@dataclass(frozen=True)
class FewerCombinations:
    """Contrasts of a factor over `own` combinations of the other factors, others over `all`."""

    contrasts: tuple[Contrasted, ...]
    own: int
    all: int
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Gaps:
    """The valid runs that failed or lack a response, and the contrasts that lack combinations."""

    ended: tuple[EndedRuns, ...] = ()
    without: tuple[RunsWithout, ...] = ()
    fewer: tuple[FewerCombinations, ...] = ()

    @property
    def count(self) -> int:
        """The number of gaps."""
        return len(self.ended) + len(self.without) + len(self.fewer)


def gaps_of(evidence: Evidence, answers: Answers) -> Gaps:
    """Return the gaps in the runs and combinations behind the answers."""
    return Gaps(
        tuple(_ended(evidence.usable)),
        tuple(_without(evidence, answers)),
        tuple(_fewer_combinations(evidence, answers)),
    )


def _ended(frame: pl.DataFrame) -> Iterator[EndedRuns]:
    for outcome in sorted(set(frame["outcome"].to_list()) - {"completed"}):
        runs = frame.filter(pl.col("outcome") == outcome).height
        yield EndedRuns(outcome.replace("_", " "), runs)


def _without(evidence: Evidence, answers: Answers) -> Iterator[RunsWithout]:
    frame = evidence.usable
    for response in dict.fromkeys(answer.response for answer in answers.items):
        # A run without a flow has no values of this flow, and lacks none.
        sends = [
            has_flow_of(response.column, all_levels(evidence.runs[run]))
            if run in evidence.runs
            else True
            for run in frame["run"].to_list()
        ]
        is_missing = np.isnan(column(frame, response.column)) & np.array(sends, dtype=bool)
        missing = int(is_missing.sum())
        if 0 < missing < frame.height:
            yield RunsWithout(response.title, missing)


def _fewer_combinations(evidence: Evidence, answers: Answers) -> Iterator[FewerCombinations]:
    """Yield the contrasts that are over fewer combinations than others of a factor.

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
        contrasts: dict[frozenset[str], list[Contrasted]] = {}
        for answer in numbers:
            if answer.factor == factor:
                titles = (answer.level_title, answer.baseline_title, answer.response.title)
                own = _combinations(evidence, answer, treatments[answer.response])
                contrasts.setdefault(own, []).append(Contrasted(*titles))
        every = frozenset[str]().union(*contrasts)
        for own, items in contrasts.items():
            if own and own != every:
                distinct = tuple(dict.fromkeys(items))
                missing = tuple(sorted(every - own))
                yield FewerCombinations(distinct, len(own), len(every), missing)


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
