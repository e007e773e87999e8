"""Build the table of alternatives, sorted by value for each response."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.best_alternative import Choice, factors_of
from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.parts import Column, Table
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "lowest_table",
    {
        "title": "Best values by {factors}",
        "lowest": "best",
        "equal": "equivalent within the margin",
        "open": "not significantly worse",
        "higher": "worse",
        "saturated": "{outcome}; saturated in {runs} of {all_runs:plural run}",
        "note": (
            "“Factor”: the ratio to the best alternative, at least 1. “At most”: its upper limit, "
            "for the truly best alternative. The best is the lowest, and the highest where more is "
            "better. All limits and outcomes apply simultaneously at {confidence:confidence}. "
            "Each alternative that is “not significantly worse” may be the truly best, not only "
            "the alternative with the best estimate, or differs by no more than the A/A noise."
        ),
    },
)


def table(evidence: Evidence, choices: Sequence[Choice]) -> Table | None:
    """Return the table of alternatives, sorted by value.

    The result is None if no alternative is ranked.
    """
    group_titles = {
        "lowest": PHRASES("lowest"),
        "equal": PHRASES("equal"),
        "open": PHRASES("open"),
        "higher": PHRASES("higher"),
    }
    rows = [
        {
            "response": choice.response.title,
            "alternative": placed.title,
            "typical": placed.typical,
            "unit": choice.response.unit,
            "over": placed.over_lowest,
            "at_most": placed.at_most,
            "group": PHRASES(
                "saturated",
                outcome=group_titles[placed.group],
                runs=choice.saturated[placed.title][0],
                all_runs=choice.saturated[placed.title][1],
            )
            if placed.title in choice.saturated
            else group_titles[placed.group],
        }
        for choice in choices
        for placed in choice.placed
    ]
    if not rows:
        return None
    rows += [
        {"response": choice.response.title, "alternative": name, "group": reason}
        for choice in choices
        for name, reason in choice.without.items()
    ]
    factor_titles = words.listed([words.factor_title(name) for name in factors_of(evidence)])
    return Table(
        "lowest",
        PHRASES("title", factors=factor_titles),
        [
            Column("response", "response"),
            Column("alternative", factor_titles),
            Column("typical", "geometric mean", "measured"),
            Column("unit", "unit"),
            Column("over", "factor", "measured"),
            Column("at_most", "at most", "measured"),
            Column("group", "outcome"),
        ],
        rows,
        PHRASES("note", confidence=CONFIDENCE),
    )
