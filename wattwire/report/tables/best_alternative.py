"""The table of alternatives, from the lowest up, in every response."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.best_alternative import Choice, factors_of
from wattwire.analysis.contrasts import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.parts import Column, Table


def table(evidence: Evidence, found: Sequence[Choice]) -> Table | None:
    """Every alternative in every response, from the lowest up."""
    words_of = {
        "lowest": "lowest", "equal": "equal within the margin",
        "open": "not told apart", "higher": "higher",
    }  # fmt: skip
    rows = [
        {
            "response": choice.response.title,
            "alternative": one.title,
            "typical": one.typical,
            "unit": choice.response.unit,
            "over": one.over_lowest,
            "at_most": one.at_most,
            "group": words_of[one.group],
        }
        for choice in found
        for one in choice.placed
    ]
    if not rows:
        return None
    rows += [
        {"response": choice.response.title, "alternative": name, "group": reason}
        for choice in found
        for name, reason in choice.without.items()
    ]
    named = words.listed([words.factor_title(name) for name in factors_of(evidence)])
    return Table(
        "lowest",
        f"Which {named} is lowest",
        [
            Column("response", "response"),
            Column("alternative", named),
            Column("typical", "geometric mean", "measured"),
            Column("unit", "unit"),
            Column("over", "over the lowest", "measured"),
            Column("at_most", "at most", "measured"),
            Column("group", "outcome"),
        ],
        rows,
        "“At most”: upper limit of the ratio to the truly lowest one; all limits and outcomes hold "
        f"together at {words.confidence(CONFIDENCE)}. The smallest estimate need not be the truly "
        "lowest one: “not told apart” may be it as well.",
    )
