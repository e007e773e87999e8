"""Render the templates of topics: the page's section, and sentences as plain text.

A topic's folder has `words.j2`, whose macros are its sentences, and `page.html.j2`, which prints
them as a section. The page is written in a few elements of HTML:

    <header data-place="10">   a line at the top of the page; larger places are further down
    <h2>                       the section's title; without it, the topic has no section
    <p class="TONE" data-key="…" data-value="…">    a paragraph, with what tests assert
    <table id="ID" data-rows="FIELD">               a table with a row per member of a field
      <caption>, <th data-key="KEY" class="KIND" data-unit="UNIT" data-sentence="MACRO">, <tfoot>

A cell of a table is the row's field KEY, or the sentence MACRO about the row. White space is as in
HTML, where any amount is one space, except that a line break before , ; . : or ) is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import jinja2

from wattwire.model import words
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.stats import Interval

ELEMENTS = frozenset({"header", "h2", "p", "table", "caption", "th", "tfoot"})
_SPACE = re.compile(r"[ \t\r\n]+")
_BREAK_BEFORE_MARK = re.compile(r"[ \t]*[\r\n][ \t\r\n]*(?=[,;.:)])")


def quantity(value: float, unit: str) -> str:
    """Format a number with its unit, if it has one."""
    return f"{words.number(value)} {unit}".rstrip()


FILTERS: dict[str, Callable[..., str]] = {
    "number": words.number,
    "percent": words.percent,
    "plural": words.plural,
    "confidence": words.confidence,
    "quantity": quantity,
}


def one_line(text: Any) -> Any:
    """Return text with single spaces, and any other value as it is. Escaped text stays escaped."""
    if not isinstance(text, str):
        return text
    return type(text)(_SPACE.sub(" ", _BREAK_BEFORE_MARK.sub("", text)).strip())


def _environment(is_html: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=is_html,
        undefined=jinja2.StrictUndefined,
        finalize=one_line,
        loader=jinja2.PackageLoader("wattwire.analysis", "topics"),
    )
    environment.filters.update(FILTERS)
    environment.tests["interval"] = lambda value: isinstance(value, Interval)
    return environment


HTML, PLAIN = _environment(True), _environment(False)


class Sentences:
    """The sentences of a topic as plain text: each macro of its `words.j2` is a method."""

    def __init__(self, topic: str) -> None:
        self._macros = PLAIN.get_template(f"{topic}/words.j2").module

    def __getattr__(self, name: str) -> Callable[..., str]:
        macro = getattr(self._macros, name)
        return lambda *values: str(one_line(macro(*values)))


@dataclass(frozen=True)
class TopicPage:
    """A topic's section, and its lines (place, text) at the top of the page."""

    section: Section | None
    lines: tuple[tuple[int, str], ...]


def topic_page(topic: str, result: Any) -> TopicPage:
    """Return what a topic prints about its result. Raises ValueError for an unknown element."""
    reader = _Elements()
    reader.feed(HTML.get_template(f"{topic}/page.html.j2").render({topic: result}))
    reader.close()
    elements = reader.elements
    lines = tuple((int(at.given["data-place"]), at.text) for at in elements if at.tag == "header")
    titles = [element.text for element in elements if element.tag == "h2"]
    if not titles:
        return TopicPage(None, lines)
    section = Section(topic.replace("_", "-"), titles[0])
    for element in elements:
        if element.tag == "p":
            given = element.given
            section.parts.append(
                Text(element.text, given.get("class", ""), given["data-key"], given["data-value"])
            )
        elif element.tag == "table":
            section.parts.append(_table(element, result, Sentences(topic)))
    return TopicPage(section, lines)


@dataclass
class _Element:
    tag: str
    given: dict[str, str]
    text: str = ""
    inner: list[_Element] = field(default_factory=list)

    def texts(self, tag: str) -> Iterator[str]:
        return (element.text for element in self.inner if element.tag == tag)


class _Elements(HTMLParser):
    """Collect the elements of a rendered page; those of a table are its inner elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[_Element] = []
        self._open: list[_Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            raise ValueError(f"<{tag}>: allowed in a topic's page: {', '.join(sorted(ELEMENTS))}")
        element = _Element(tag, {name: value or "" for name, value in attrs})
        (self._open[-1].inner if self._open else self.elements).append(element)
        self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            raise ValueError(f"</{tag}> ends no <{tag}>")
        element = self._open.pop()
        element.text = one_line(element.text)

    def close(self) -> None:
        super().close()
        if self._open:
            raise ValueError(f"<{self._open[-1].tag}> has no end")

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data
        elif data.strip():
            raise ValueError(f'text outside of an element: "{data.strip()}"')


def _table(element: _Element, result: Any, sentences: Sentences) -> Table:
    headings = [heading for heading in element.inner if heading.tag == "th"]
    columns = [
        Column(
            heading.given["data-key"],
            heading.text,
            heading.given.get("class", "text"),
            heading.given.get("data-unit", ""),
        )
        for heading in headings
    ]
    rows = [
        {heading.given["data-key"]: _cell(heading, row, sentences) for heading in headings}
        for row in getattr(result, element.given["data-rows"])
    ]
    title, note = next(element.texts("caption")), next(element.texts("tfoot"), "")
    return Table(element.given["id"], title, columns, rows, note)


def _cell(heading: _Element, row: Any, sentences: Sentences) -> Any:
    sentence = heading.given.get("data-sentence")
    return (
        getattr(sentences, sentence)(row) if sentence else getattr(row, heading.given["data-key"])
    )
