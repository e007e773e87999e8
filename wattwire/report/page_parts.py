"""Collect the sections of the page with their places, conditions and functions.

The page has no list of its sections. `page_parts` collects the PART of every module in `sections/`
and the topics of `analysis/topics/`, sorted by place. Adding or removing a section changes only its
own files.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import itemgetter

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.document import Document
from wattwire.analysis.latency import Series
from wattwire.analysis.topics import topics
from wattwire.report import sections
from wattwire.report.parts import Section
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.topic_page import Place, Placed, TopicPage, topic_page

TITLE = 0
"""Position of the title's sentences. Lines with other positions follow below the title."""


@dataclass(frozen=True)
class PageData:
    """Input of all sections."""

    evidence: Evidence
    answers: Answers
    document: Document
    series: Mapping[str, Series]

    @cached_property
    def topics(self) -> dict[str, TopicPage]:
        """What each topic prints on the page."""
        factors = factor_columns(self.evidence)
        return {
            name: topic_page(name, result, factors, topics()[name].place_of_parts)
            for name, result in self.document.results.items()
        }

    def joining(self, section: str) -> list[Placed]:
        """Return the parts of the topics that join a section, by place."""
        joining = (page for name, page in self.topics.items() if topics()[name].section == section)
        parts = [part for page in joining for part in page.parts]
        return sorted(parts, key=itemgetter(0))


@dataclass(frozen=True)
class HeadLine:
    """A line at the top of the page. Lines with the place TITLE form the title.

    Lines with the same place are in the order of `within`.

    The terminal prints the same lines, except if `page_only`: those that it prints by other means.
    """

    place: int
    text: str
    page_only: bool = False
    within: Place = ()


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
    """Return the PART of every module in `sections/` and of every topic, sorted by place.

    Raises ValueError if two parts have the same place.
    """
    parts: dict[str, PagePart] = {
        module.name: importlib.import_module(f"{sections.__name__}.{module.name}").PART
        for module in pkgutil.iter_modules(sections.__path__)
    }
    parts |= {
        name: PagePart(topic.place, partial(_topic_sections, name))
        for name, topic in topics().items()
        if topic.place is not None and not topic.section
    }
    by_place: dict[int, str] = {}
    for name, part in parts.items():
        other = by_place.setdefault(part.place, name)
        if other != name:
            raise ValueError(f"sections {other} and {name}: both have place {part.place}")
    return tuple(parts[name] for _, name in sorted(by_place.items()))


def _topic_sections(name: str, data: PageData) -> list[Section | None]:
    page = data.topics[name]
    return [page.section(data.joining(page.id))]
