"""Render the templates of topics: parts of the page, and sentences as plain text.

A topic's folder has `words.j2`, whose macros are its sentences, and `page.html.j2`, which prints
them on the page. The page is written in a few elements of HTML:

    <header data-place="10" class="terminal">
                               a line at the top of the page; larger places are further down. With
                               the class, the terminal prints it, too
    <header class="title">     a sentence of the page's title; `report/headline.py` joins them by
                               `data-place`. A title without room omits the one with data-minor
    <h2 id="ID" class="empty"> the section's title; class="empty" if the section has no data. With
                               data-alone, no part of another topic joins the section
    <p class="TONE" data-key="…" data-value="…">    a paragraph, with what tests assert
    <table id="ID" data-rows="FIELD">               a table with a row per member of a field
      <caption>, <th …>, <tfoot>                    its title, its columns and its note
    <table id="ID">            a table whose rows of text, <tr> with <td>, are in the template
    <figure id="ID" data-chart="NAME" data-points="FIELD" data-x="TITLE" data-y="TITLE">
      <caption>, <figcaption>                       its title and its caption
    <form data-runs="FIELD">   the interactive chart of a `RunTable`
      <figure data-chart="NAME">                    a kind of chart (`html/explorer.py`) to select
    <details>                  a fold; <summary> is its title
    <section data-folder="FOLDER" data-field="FIELD">
                               the parts that the page.html.j2 in this folder prints about a field

Without <h2>, the parts join the section that the topic names. A part with data-section="ID" joins
that section instead, or that text of a bundle. All parts of a section are sorted by `data-place`,
numbers with dots such as 30.2.10, which is between 30.2 and 30.3. The place of a part without it is
0, or that of the topic if the part joins another section. Neighbouring paragraphs with the same
data-paragraph="NAME" become one on the page. The first of them is its title, and is not printed
alone.

    <th data-key="KEY" data-field="FIELD" class="KIND" data-unit="UNIT" …>   a column
    <th data-key="KEY" data-sentence="MACRO" data-field="FIELD">             a column of sentences
    <th data-key="KEY" data-reason="MACRO">                  a column of numbers or reasons for none
    <th data-key="KEY" data-sentence="MACRO" data-mark="MACRO" data-hint="MACRO">   marked numbers
    <th data-factors>                                                a column per varied factor
    <th data-factors="NAME" data-field="FIELD">                      the column of one varied factor

A cell is the row's FIELD, which is KEY without `data-field`, or the sentence MACRO about the row.
With both, the sentence replaces a FIELD that is None; with `data-reason`, it is the reason for a
missing number. With `data-of="FIELD"`, the sentence is about this field of the row, and a cell
without it is empty. With `data-mark`, the FIELD is an object with a `value` and a `verdict`, and
the sentences are about it: its number, its mark and its tooltip; without a verdict, the cell is the
value. The cells of varied factors are the row's `treatment`. With `data-factor`, the page can
filter the rows by the levels in the column; with `data-whole`, the page truncates no cell; with
`data-labels="FIELD"`, it prints the texts to which this field of the result maps the cells; with
`data-count`, the numbers are counts or means of counts.
<table data-columns="with-values"> omits columns without a value. A chart is one of
`figures/charts_by_name.py`, and its FIELD is a `Chart`.

White space is as in HTML, where any amount is one space, except that a line break before , ; . : or
) is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import groupby
from operator import itemgetter
from typing import Any

import jinja2
from jinja2.nodes import EvalContext
from markupsafe import Markup

from wattwire.model import words
from wattwire.report.figures.charts_by_name import CHARTS
from wattwire.report.html.explorer import Explorer, Kind, explorer
from wattwire.report.parts import Column, Figure, Fold, Marked, Section, Table, Text, with_values
from wattwire.stats import Interval, NotComputable

PARTS = frozenset({"p", "table", "figure", "form", "details"})
CELLS = frozenset({"th", "tr", "td"})
ELEMENTS = PARTS | CELLS | {"section", "header", "h2", "caption", "tfoot", "figcaption", "summary"}
TERMINAL, TITLE = "terminal", "title"
"""Classes of lines at the top of the page: those that the terminal prints, too, and the title's."""
_SPACE = re.compile(r"[ \t\r\n]+")
_BREAK_BEFORE_MARK = re.compile(r"[ \t]*[\r\n][ \t\r\n]*(?=[,;.:)])")
Part = Text | Table | Figure | Explorer | Fold
Place = tuple[int, ...]
"""The place 30.2 is (30, 2)."""
Placed = tuple[Place, Part]
"""A part of a section, after its place among the parts."""


def quantity(value: float, unit: str) -> str:
    """Format a number with its unit, if it has one."""
    return f"{words.number(value)} {unit}".rstrip()


def interval(value: Interval) -> str:
    """Format an interval, for example "1.20 [1.05, 1.37]"."""
    estimate, low, high = words.limits(value.estimate, value.low, value.high)
    return f"{estimate} [{low}, {high}]"


def estimate(value: Interval) -> str:
    """Format the estimate of an interval, with as many digits as its limits need."""
    return words.limits(value.estimate, value.low, value.high)[0]


def limits(value: Interval) -> str:
    """Format the limits of an interval, for example "1.05 to 1.37"."""
    return " to ".join(words.limits(value.estimate, value.low, value.high)[1:])


def without_ending(text: str, ending: str) -> str:
    """Return text without these words at its end."""
    return text.removesuffix(f" {one_line(ending)}")


def capital(text: str) -> str:
    """Return text with a capital first letter. Escaped text stays escaped."""
    text = one_line(text)
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """Return text with a small first letter. Escaped text stays escaped."""
    text = one_line(text)
    return text[:1].lower() + text[1:]


def outcome(key: str) -> str:
    """Return the text of a contrast's outcome; an outcome without a text is its own text."""
    return words.OUTCOMES.get(key, key)


def proportionality(key: str) -> str:
    """Return the text of a conclusion from the exponent of a power law."""
    return words.PROPORTIONALITY[key]


def delivered(kind: str) -> str:
    """Return the unit of the rate of what was delivered, for example "calls/s"."""
    return words.DELIVERED[kind]


def margin(share: float) -> str:
    """Format a margin, for example "2.5 %"."""
    return f"{100 * share:.4g} %"


def points(value: float) -> str:
    """Format a difference in percentage points with its sign."""
    return f"{'+' if value > 0 else ''}{words.number(value, 2)}"


def notice(value: Any) -> str:
    """Return the sentence of the topic `validity` on one of its notices."""
    return Sentences("validity").sentence(value)


def nearness(key: str) -> str:
    """Return what nodes did whose CPUs are so near, for example "shared a CPU"."""
    return words.PLACES[key]


@jinja2.pass_eval_context
def listed(
    context: EvalContext,
    members: Iterable[Any],
    sentence: Callable[[Any], str] | None = None,
    most: int | None = None,
) -> str:
    """Join members by commas and "and". With `sentence`, each member is the text of this macro.

    With `most`, further members are only counted.
    """
    texts = [str(one_line(sentence(member) if sentence else member)) for member in members]
    text = words.listed(texts) if most is None else words.listed_first(texts, most)
    return Markup(text) if sentence and context.autoescape else text


FILTERS: dict[str, Callable[..., str]] = {
    "number": words.number,
    "count": words.count,
    "duration": words.duration,
    "edited": words.edited_words,
    "percent": words.percent,
    "plural": words.plural,
    "confidence": words.confidence,
    "quantity": quantity,
    "interval": interval,
    "estimate": estimate,
    "limits": limits,
    "without_ending": without_ending,
    "capital": capital,
    "factor": words.factor,
    "margin": margin,
    "points": points,
    "notice": notice,
    "lowered": lowered,
    "outcome": outcome,
    "p_equals": words.p_equals,
    "proportionality": proportionality,
    "nearness": nearness,
    "delivered": delivered,
    "listed": listed,
    "formatted": format,
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
    """The sentences of a topic as plain text: each macro of its `words.j2` is a method.

    `topic` is a folder below `topics/`.
    """

    def __init__(self, topic: str) -> None:
        self._macros = PLAIN.get_template(f"{topic}/words.j2").module

    def __getattr__(self, name: str) -> Callable[..., str]:
        macro = getattr(self._macros, name)
        return lambda *values: str(one_line(macro(*values)))


@dataclass(frozen=True)
class TitleSentence:
    """A sentence of the page's title. A title without room omits the sentence that `is_minor`."""

    place: Place
    text: str
    is_minor: bool = False


@dataclass(frozen=True)
class TopicPage:
    """What a topic prints: the parts of a section, and lines (place, text) at the top of the page.

    The terminal prints `terminal_lines` as well. `sentences` are those of the page's title. `id`
    and `title` are those of the topic's own section. The title is "" if the topic has none.
    `elsewhere` has the parts that name a section, with its id.
    """

    id: str
    title: str
    parts: tuple[Placed, ...]
    lines: tuple[tuple[Place, str], ...]
    terminal_lines: tuple[tuple[Place, str], ...] = ()
    sentences: tuple[TitleSentence, ...] = ()
    has_no_data: bool = False
    is_alone: bool = False
    elsewhere: tuple[tuple[str, Placed], ...] = ()

    @property
    def texts(self) -> list[str]:
        """The paragraphs, for a command that prints the topic alone."""
        return [part.words for _, part in self.parts if isinstance(part, Text)]

    def section(self, joining: Iterable[Placed] = ()) -> Section | None:
        """Return the topic's section with the parts that join it, or None without a title."""
        if not self.title:
            return None
        parts = sorted([*self.parts, *(() if self.is_alone else joining)], key=itemgetter(0))
        merged = list(_paragraphs(part for _, part in parts))
        return Section(self.id, self.title, merged, self.has_no_data)


def _paragraphs(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts with neighbouring texts of the same paragraph as one, without lone titles."""
    for name, group in groupby(parts, lambda part: getattr(part, "paragraph", "")):
        if not name:
            yield from group
            continue
        texts = [part for part in group if isinstance(part, Text)]
        if len(texts) > 1:
            yield replace(texts[0], words=" ".join(text.words for text in texts), paragraph="")


def topic_page(
    topic: str, result: Any, factors: Sequence[Column] = (), place: int = 0
) -> TopicPage:
    """Return what a topic prints about its result. `factors` are the columns of varied factors.

    `topic` is a folder below `topics/`. Its template sees the result under the folder's name.
    `place` is that of parts without a place. Raises ValueError for an unknown element.
    """
    elements = _elements(topic, result)
    titles = [element for element in elements if element.tag == "h2"]
    title = titles[0] if titles else _Element("h2", {})
    lines = [element for element in elements if element.tag == "header"]
    build = _Builder(topic, result, factors)
    placed = [
        (element.given.get("data-section", ""), part)
        for element in elements
        for part in build.parts(element, place)
    ]
    return TopicPage(
        title.given.get("id", topic.replace("_", "-")),
        title.text,
        tuple(part for section, part in placed if not section),
        tuple((line.place(), line.text) for line in lines if line.style == ""),
        tuple((line.place(), line.text) for line in lines if line.style == TERMINAL),
        _title_sentences(lines),
        title.given.get("class") == "empty",
        "data-alone" in title.given,
        tuple((section, part) for section, part in placed if section),
    )


def title_sentences(topic: str, result: Any) -> tuple[TitleSentence, ...]:
    """Return what a topic contributes to the page's title."""
    return _title_sentences(_elements(topic, result))


def _title_sentences(elements: Iterable[_Element]) -> tuple[TitleSentence, ...]:
    titles = (element for element in elements if element.tag == "header" and element.style == TITLE)
    return tuple(
        TitleSentence(element.place(), element.text, "data-minor" in element.given)
        for element in titles
        if element.text
    )


def _elements(topic: str, result: Any) -> list[_Element]:
    reader = _Elements()
    name = topic.rpartition("/")[2]
    reader.feed(HTML.get_template(f"{topic}/page.html.j2").render({name: result}))
    reader.close()
    return reader.elements


@dataclass
class _Element:
    tag: str
    given: dict[str, str]
    text: str = ""
    inner: list[_Element] = field(default_factory=list)

    def place(self, default: int = 0) -> Place:
        given = self.given.get("data-place")
        return tuple(map(int, given.split("."))) if given else (default,)

    @property
    def is_part(self) -> bool:
        return self.tag in PARTS

    @property
    def style(self) -> str:
        return self.given.get("class", "")

    def texts(self, tag: str) -> Iterator[str]:
        return (element.text for element in self.inner if element.tag == tag)


class _Elements(HTMLParser):
    """Collect the elements of a rendered page. Elements in a table or a fold are inner elements."""

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


@dataclass(frozen=True)
class _Builder:
    """Builds the parts that a topic's elements declare."""

    topic: str
    result: Any
    factors: Sequence[Column]

    def parts(self, element: _Element, place: int) -> Sequence[Placed]:
        """Return the parts of an element; none if it declares a line or a title."""
        if element.tag == "section":
            given = element.given
            field = _field(self.result, given["data-field"])
            return topic_page(given["data-folder"], field, self.factors, place).parts
        return [(element.place(place), self.part(element))] if element.is_part else ()

    def part(self, element: _Element) -> Part:
        given = element.given
        if element.tag == "p":
            key, value = given.get("data-key", ""), given.get("data-value", "")
            paragraph = given.get("data-paragraph", "")
            return Text(element.text, given.get("class", ""), key, value, paragraph)
        if element.tag == "table":
            return self._table(element)
        if element.tag == "figure":
            return self._figure(element)
        if element.tag == "form":
            return explorer(_field(self.result, given["data-runs"]), _kinds(element))
        inner = [self.part(part) for part in element.inner if part.is_part]
        return Fold(next(element.texts("summary")), inner)

    def _table(self, element: _Element) -> Table:
        headings = [heading for heading in element.inner if heading.tag == "th"]
        columns: list[Column] = []
        for heading in headings:
            columns += self._factors(heading) if _is_factors(heading) else [self._column(heading)]
        rows = self._rows(element, headings)
        if element.given.get("data-columns") == "with-values":
            columns = with_values(columns, rows)
        title, note = next(element.texts("caption")), next(element.texts("tfoot"), "")
        return Table(element.given["id"], title, columns, rows, note)

    def _rows(self, table: _Element, headings: Sequence[_Element]) -> list[dict[str, Any]]:
        if "data-rows" in table.given:
            field_rows = _field(self.result, table.given["data-rows"])
            return [self._row(headings, row) for row in field_rows]
        keys = [heading.given["data-key"] for heading in headings]
        written = (row for row in table.inner if row.tag == "tr")
        return [dict(zip(keys, row.texts("td"), strict=True)) for row in written]

    def _figure(self, element: _Element) -> Figure:
        given = element.given
        draw, chart = CHARTS[given["data-chart"]], _field(self.result, given["data-points"])
        spec = draw(chart, given.get("data-x", ""), given.get("data-y", ""))
        title, caption = next(element.texts("caption")), next(element.texts("figcaption"), "")
        return Figure(given["id"], title, caption, spec)

    def _factors(self, heading: _Element) -> list[Column]:
        """Return the columns of all varied factors, or of the one that the heading names."""
        name = heading.given["data-factors"]
        return [factor for factor in self.factors if name in ("", factor.key)]

    def _column(self, heading: _Element) -> Column:
        given = heading.given
        labels = _field(self.result, given["data-labels"]) if "data-labels" in given else {}
        return Column(
            given["data-key"],
            heading.text,
            given.get("class", "text"),
            given.get("data-unit", ""),
            int(given.get("data-digits", Column.digits)),
            labels=labels,
            group=given.get("data-group", ""),
            factor=given.get("data-factor", ""),
            is_whole="data-whole" in given,
            is_count="data-count" in given,
        )

    def _row(self, headings: Sequence[_Element], row: Any) -> dict[str, Any]:
        cells: dict[str, Any] = {}
        for heading in headings:
            if _is_factors(heading):
                given, names = heading.given, [factor.key for factor in self._factors(heading)]
                is_one = "data-field" in given
                levels = [_field(row, given["data-field"])] if is_one else row.treatment
                cells |= dict(zip(names, levels, strict=True))
            else:
                cells[heading.given["data-key"]] = self._cell(heading.given, row)
        return cells

    def _cell(self, given: dict[str, str], row: Any) -> Any:
        if "data-mark" in given:
            return self._marked(given, _field(row, given.get("data-field", given["data-key"])))
        is_field = "data-field" in given or "data-sentence" not in given
        value = _field(row, given.get("data-field", given["data-key"])) if is_field else None
        if value is None and "data-reason" in given:
            return NotComputable(getattr(Sentences(self.topic), given["data-reason"])(row))
        if value is None and "data-sentence" in given:
            about = _field(row, given["data-of"]) if "data-of" in given else row
            sentence = getattr(Sentences(self.topic), given["data-sentence"])
            return None if about is None else sentence(about)
        return value

    def _marked(self, given: dict[str, str], number: Any) -> Any:
        if number is None or not number.verdict:
            return None if number is None else number.value
        sentences = Sentences(self.topic)
        text, mark, hint = (
            getattr(sentences, given[f"data-{name}"])(number)
            for name in ("sentence", "mark", "hint")
        )
        return Marked(number.value, text, mark, number.verdict, hint)


def _kinds(form: _Element) -> list[Kind]:
    return [
        Kind(kind.given["data-chart"], next(kind.texts("caption")), next(kind.texts("figcaption")))
        for kind in form.inner
    ]


def _is_factors(heading: _Element) -> bool:
    return "data-factors" in heading.given


def _field(value: Any, path: str) -> Any:
    """Return the field that a path such as `requests.0.rows` names."""
    for name in path.split("."):
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value
