"""Find treatments with failed runs, and responses without a reliable value in any run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.not_compared import LEFT_OUT_BELOW
from wattwire.analysis.responses import Response
from wattwire.model.verdict import Outcome


@dataclass(frozen=True)
class Failed:
    """The runs of a treatment that did not complete: each outcome and its number of runs."""

    levels: Mapping[str, Any]
    outcomes: Sequence[tuple[str, int]]
    runs: int

    @property
    def saturated_minority(self) -> int:
        """The number of saturated runs if the others completed and are the majority, else 0."""
        ((outcome, runs), *others) = self.outcomes
        is_minority = outcome == Outcome.SATURATED and runs < LEFT_OUT_BELOW * self.runs
        return runs if is_minority and not others else 0


def failed_treatments(evidence: Evidence) -> list[Failed]:
    """Return each treatment with incomplete valid runs, most frequent outcomes first."""
    treatments = []
    for group in by_treatment(evidence, evidence.usable).values():
        counted = Counter(str(outcome) for outcome in group["outcome"].to_list())
        outcomes = [entry for entry in counted.most_common() if entry[0] != "completed"]
        if outcomes:
            levels = {name: levels_of(group, name)[0] for name in evidence.varied}
            treatments.append(Failed(levels, outcomes, group.height))
    return treatments


def too_few_in_all(evidence: Evidence, response: Response) -> stats.TooFew | None:
    """Return the reason if no run has a reliable value of the response, else None."""
    is_too_few = carried.too_few(evidence.usable, response.column)
    if not (is_too_few.any() and is_too_few.all()):
        return None
    return carried.why_not(evidence.usable, response.column)
