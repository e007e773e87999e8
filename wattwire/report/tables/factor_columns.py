"""The columns of a table that say which levels a row is of."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.parts import Column


def factor_columns(evidence: Evidence) -> list[Column]:
    """A column for each varied factor, its levels named as the study names them."""
    return [
        Column(
            name,
            words.factor_title(name),
            unit=words.FACTOR_UNITS.get(name, ""),
            labels=dict(evidence.titles.get(name, {})),
            factor=name,
        )
        for name in evidence.varied
    ]
