"""Build the columns with the levels of each row."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.parts import Column


def factor_columns(evidence: Evidence) -> list[Column]:
    """Return one column per varied factor, with the study's titles for its levels."""
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
