"""Tests of the templates of topics, whose elements become sections, lines and tables."""

from __future__ import annotations

from dataclasses import dataclass

import jinja2
import pytest
from markupsafe import Markup

from wattwire.report import topic_page
from wattwire.report.parts import Text


@dataclass(frozen=True)
class Row:
    """A row of the table of the topic below."""

    name: str
    runs: int


@dataclass(frozen=True)
class Result:
    """The result of the topic below."""

    rows: tuple[Row, ...]


def page_of(monkeypatch, page: str, rows: tuple[Row, ...] = ()) -> topic_page.TopicPage:
    """Return what a topic with these templates prints."""
    words = """{% macro named(row) %}
      {{ row.name }}
      , {{ row.runs | plural("run") }}
    {% endmacro %}"""
    loader = jinja2.DictLoader({"a_topic/words.j2": words, "a_topic/page.html.j2": page})
    for environment in (topic_page.HTML, topic_page.PLAIN):
        monkeypatch.setattr(environment, "loader", loader)
        monkeypatch.setattr(environment, "cache", None)
    return topic_page.topic_page("a_topic", Result(rows))


def test_elements_become_the_parts_of_a_section_in_their_order(monkeypatch):
    page = page_of(
        monkeypatch,
        """{% import "a_topic/words.j2" as words %}
        <header data-place="20">{{ words.named(a_topic.rows[0]) }}</header>
        <h2>A title</h2>
        <table id="t" data-rows="rows"><caption>Names</caption>
          <th data-key="name">name</th>
          <th data-key="runs" class="measured" data-unit="s">runs</th>
          <th data-key="both" data-sentence="named">both</th>
          <tfoot>A note.</tfoot>
        </table>
        <p class="note" data-key="t.rows" data-value="1">One
           row.</p>""",
        (Row("a <i>&amp;", 2),),
    )
    assert page.lines == ((20, "a <i>&amp;, 2 runs"),)
    assert page.section is not None and (page.section.id, page.section.title) == (
        "a-topic",
        "A title",
    )
    table, text = page.section.parts
    assert text == Text("One row.", "note", "t.rows", "1")
    assert (table.id, table.title, table.note) == ("t", "Names", "A note.")
    assert table.rows == [{"name": "a <i>&amp;", "runs": 2, "both": "a <i>&amp;, 2 runs"}]
    assert [(column.kind, column.unit) for column in table.columns[:2]] == [
        ("text", ""),
        ("measured", "s"),
    ]


def test_a_page_without_a_title_has_no_section(monkeypatch):
    assert page_of(monkeypatch, "{% if a_topic.rows %}<h2>T</h2>{% endif %}").section is None


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("<h2>T</h2><div></div>", "<div>: allowed in a topic's page: caption, h2"),
        ("<h2>T</h2>more", 'text outside of an element: "more"'),
        ("<h2>T</p>", "</p> ends no <p>"),
        ("</h2>", "</h2> ends no <h2>"),
        ("<h2>T", "<h2> has no end"),
    ],
)
def test_what_is_no_element_of_a_page_is_refused(monkeypatch, page, problem):
    with pytest.raises(ValueError, match=problem):
        page_of(monkeypatch, page)


def test_a_name_that_the_result_does_not_have_is_an_error(monkeypatch):
    with pytest.raises(jinja2.UndefinedError, match="rowz"):
        page_of(monkeypatch, "<h2>{{ a_topic.rowz }}</h2>")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n  a\n  b ", "a b"),
        ("a\n  , b\n ; c\n.", "a, b; c."),
        ("sleep .5", "sleep .5"),
        ("1\u202f000\u00a0s", "1\u202f000\u00a0s"),
    ],
)
def test_white_space_is_one_space_and_a_line_break_before_a_mark_is_none(text, line):
    assert topic_page.one_line(text) == line
    escaped = topic_page.one_line(Markup(text))
    assert isinstance(escaped, Markup) and escaped == line


def test_a_number_has_its_unit_if_it_has_one():
    assert topic_page.quantity(280.0, "µs") == "280 µs"
    assert topic_page.quantity(0.5, "") == "0.500"
