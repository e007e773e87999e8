"""Collect what the page states about the campaign as a whole, or needs for every section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattwire.analysis.dataset import Evidence


@dataclass(frozen=True)
class VariedFactor:
    """A factor with several planned levels, and the study's titles of its levels."""

    name: str
    titles: Mapping[str, str]


@dataclass(frozen=True)
class Header:
    """The heading of the page, and the varied factors in the study's order."""

    heading: str = ""
    varied: tuple[VariedFactor, ...] = ()


def header(evidence: Evidence) -> Header:
    """Return the header of a campaign."""
    factors = [VariedFactor(name, dict(evidence.titles.get(name, {}))) for name in evidence.varied]
    return Header(evidence.study.heading, tuple(factors))
