"""Collect what topics print on the page, and their sections in page order.

The page has no list of its sections: each topic of `analysis/topics/` states its place. Adding or
removing a topic changes only its own folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

from wattwire.analysis.document import Document
from wattwire.analysis.header import Header
from wattwire.analysis.topics import topics
from wattwire.model import words
from wattwire.report.parts import Column, Section
from wattwire.report.topic_page import Place, Placed, TopicPage, topic_page

TITLE = 0
"""Position of the title's sentences. Lines with other positions follow below the title."""


@dataclass(frozen=True)
class PageData:
    """The results of a campaign, and what its topics print about them."""

    document: Document

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

    def sections(self) -> Iterator[Section]:
        """Yield the sections in page order, each with the parts that join it."""
        for name in topics_with_section():
            page = self.topics[name]
            section = page.section(self.joining(page.id))
            if section is not None:
                yield section


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


@cache
def topics_with_section() -> tuple[str, ...]:
    """Return the names of the topics that may have a section of their own, in page order.

    Raises ValueError if two of them have the same place.
    """
    by_place: dict[int, str] = {}
    for name, topic in topics().items():
        if topic.place is not None and not topic.section:
            other = by_place.setdefault(topic.place, name)
            if other != name:
                raise ValueError(f"topics {other} and {name}: both have place {topic.place}")
    return tuple(name for _, name in sorted(by_place.items()))


def factor_columns(header: Header) -> list[Column]:
    """Return one column per varied factor, with the study's titles for its levels."""
    return [
        Column(
            factor.name,
            words.factor_title(factor.name),
            unit=words.FACTOR_UNITS.get(factor.name, ""),
            labels=factor.titles,
            factor=factor.name,
        )
        for factor in header.varied
    ]
