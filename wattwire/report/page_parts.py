"""Collect the sections of the page with their places, conditions and functions.

The page has no list of its sections. `page_parts` collects the PART of every module in `sections/`,
sorted by place. Adding or removing a section changes only its own files.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.latency import Series
from wattwire.analysis.publication.claims import DecidedClaims, decide_claims
from wattwire.report import sections
from wattwire.report.findings import Findings
from wattwire.report.parts import Section

TITLE = 0
"""Position of the title's sentences. Lines with other positions follow below the title."""


@dataclass(frozen=True)
class PageData:
    """Input of all sections. `document` is the content of analysis.json."""

    evidence: Evidence
    answers: Answers
    document: Mapping[str, Any]
    series: Mapping[str, Series]
    findings: Findings

    @cached_property
    def claims(self) -> DecidedClaims:
        """The decided claims, for their section and for the lines at the top of the page."""
        return decide_claims(self.evidence, self.answers)


@dataclass(frozen=True)
class HeadLine:
    """A line at the top of the page. Lines with the place TITLE form the title.

    The terminal prints the same lines, except if `page_only`: those that it prints by other means.
    """

    place: int
    text: str
    page_only: bool = False


def no_lines(data: PageData) -> Iterable[HeadLine]:
    """Return no lines. This is the default of a section."""
    return ()


@dataclass(frozen=True)
class PagePart:
    """A section with its place, its function and its lines at the top of the page.

    If `measured_only` is true, the page of an imported campaign omits the section, because imports
    have no messages, meters or nodes. If `of_messages` is true, the page of a command omits it.
    """

    place: int
    build: Callable[[PageData], Iterable[Section | None]]
    head: Callable[[PageData], Iterable[HeadLine]] = no_lines
    measured_only: bool = False
    of_messages: bool = False

    def applies(self, evidence: Evidence) -> bool:
        """Return whether the campaign has the data that the section needs."""
        lacks_messages = evidence.study.request is not None
        return not (self.measured_only and evidence.imported or self.of_messages and lacks_messages)


@cache
def page_parts() -> tuple[PagePart, ...]:
    """Return the PART of every module in `sections/`, sorted by place.

    Raises ValueError if two parts have the same place.
    """
    by_place: dict[int, tuple[str, PagePart]] = {}
    for module in pkgutil.iter_modules(sections.__path__):
        if module.ispkg:  # the package of tests
            continue
        part: PagePart = importlib.import_module(f"{sections.__name__}.{module.name}").PART
        if part.place in by_place:
            other = by_place[part.place][0]
            raise ValueError(f"sections {other} and {module.name}: both have place {part.place}")
        by_place[part.place] = (module.name, part)
    return tuple(part for _, (_, part) in sorted(by_place.items()))
