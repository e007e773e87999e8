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
from wattwire.analysis.header import Header
from wattwire.analysis.topics import topics
from wattwire.report import sections
from wattwire.report.parts import Section
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.topic_page import Place, Placed, TopicPage, topic_page

TITLE = 0
"""Position of the title's sentences. Lines with other positions follow below the title."""


@dataclass(frozen=True)
class OpenCampaign:
    """What sections that are no topic yet read of a campaign. A stored document lacks it."""

    evidence: Evidence
    answers: Answers


@dataclass(frozen=True)
class PageData:
    """Input of all sections: the document, and the campaign for sections that need it."""

    document: Document
    campaign: OpenCampaign | None = None

    @property
    def evidence(self) -> Evidence:
        """The evidence of the campaign, for sections that need it."""
        return self._open.evidence

    @property
    def answers(self) -> Answers:
        """The contrasts, for sections that need the campaign."""
        return self._open.answers

    @property
    def _open(self) -> OpenCampaign:
        if self.campaign is None:
            raise ValueError("a section that does not state needs_campaign reads the campaign")
        return self.campaign

    @cached_property
    def topics(self) -> dict[str, TopicPage]:
        """What each topic prints on the page."""
        factors = factor_columns(self.document.header)
        return {
            name: topic_page(name, result, factors, topics()[name].place_of_parts)
            for name, result in self.document.results.items()
        }

    def joining(self, section: str) -> list[Placed]:
        """Return the parts of the topics that join a section or a text of a bundle, by place."""
        parts: list[Placed] = []
        for name, page in self.topics.items():
            parts += page.parts if topics()[name].section == section else ()
            parts += [part for at, part in page.elsewhere if at == section]
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
    A section that `needs_campaign` reads more than the document, so a stored document cannot
    replace its campaign (`report --from`). No topic does.
    """

    place: int
    build: Callable[[PageData], Iterable[Section | None]]
    head: Callable[[PageData], Iterable[HeadLine]] = no_lines
    measured_only: bool = False
    of_messages: bool = False
    needs_campaign: bool = True

    def applies(self, header: Header) -> bool:
        """Return whether the campaign has the data that the section needs."""
        is_left_out = self.measured_only and header.is_imported
        return not (is_left_out or self.of_messages and header.is_command)


def parts_of(header: Header) -> list[PagePart]:
    """Return the parts of a campaign's page, sorted by place."""
    return [part for part in page_parts().values() if part.applies(header)]


def parts_needing_campaign(header: Header) -> list[str]:
    """Return the names of those parts of a campaign's page that a document cannot print."""
    return [
        name for name, part in page_parts().items() if part.needs_campaign and part.applies(header)
    ]


@cache
def page_parts() -> Mapping[str, PagePart]:
    """Return the PART of every module in `sections/` and of every topic by name, in page order.

    Raises ValueError if two parts have the same place.
    """
    parts: dict[str, PagePart] = {
        module.name: importlib.import_module(f"{sections.__name__}.{module.name}").PART
        for module in pkgutil.iter_modules(sections.__path__)
    }
    parts |= {
        name: PagePart(topic.place, partial(_topic_sections, name), needs_campaign=False)
        for name, topic in topics().items()
        if topic.place is not None and not topic.section
    }
    by_place: dict[int, str] = {}
    for name, part in parts.items():
        other = by_place.setdefault(part.place, name)
        if other != name:
            raise ValueError(f"sections {other} and {name}: both have place {part.place}")
    return {name: parts[name] for _, name in sorted(by_place.items())}


def _topic_sections(name: str, data: PageData) -> list[Section | None]:
    page = data.topics[name]
    return [page.section(data.joining(page.id))]
