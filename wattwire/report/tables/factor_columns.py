"""Build the columns with the levels of each row."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.header import Header, header
from wattwire.model import words
from wattwire.report.parts import Column


def factor_columns(campaign: Evidence | Header) -> list[Column]:
    """Return one column per varied factor, with the study's titles for its levels.

    The sections in `report/sections/` have only the evidence of the campaign.
    """
    stated = campaign if isinstance(campaign, Header) else header(campaign)
    return [
        Column(
            factor.name,
            words.factor_title(factor.name),
            unit=words.FACTOR_UNITS.get(factor.name, ""),
            labels=factor.titles,
            factor=factor.name,
        )
        for factor in stated.varied
    ]
