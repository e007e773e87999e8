"""Tests of the templates of topics, whose elements become sections, lines and tables."""

from __future__ import annotations

from dataclasses import dataclass

import jinja2
import pytest
from markupsafe import Markup

from wattwire.analysis.charts import Chart
from wattwire.report import topic_page
from wattwire.report.parts import Column, Figure, Fold, Table, Text


@dataclass(frozen=True)
class Row:
    """A row of the table of the topic below."""

    name: str
    runs: int
    treatment: tuple[str, ...] = ()
    other: Row | None = None
    missing: Row | None = None


@dataclass(frozen=True)
class Result:
    """The result of the topic below."""

    rows: tuple[Row, ...]
    chart: Chart = Chart()


POINTS = [
    {"x": 1.0, "y": 2.0, "run": "r", "treatment": "t", "colour": "b", "panel": ""},
]
CHART = Chart(POINTS, ("a", "b"), "letter")


def page_of(
    monkeypatch, page: str, rows: tuple[Row, ...] = (), factors: tuple[Column, ...] = ()
) -> topic_page.TopicPage:
    """Return what a topic with these templates prints."""
    words = """{% macro named(row) %}
      {{ row.name }}
      , {{ row.runs | plural("run") }}
    {% endmacro %}"""
    loader = jinja2.DictLoader({"a_topic/words.j2": words, "a_topic/page.html.j2": page})
    for environment in (topic_page.HTML, topic_page.PLAIN):
        monkeypatch.setattr(environment, "loader", loader)
        monkeypatch.setattr(environment, "cache", None)
    return topic_page.topic_page("a_topic", Result(rows, CHART), factors)


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
    assert page.lines == (((20,), "a <i>&amp;, 2 runs"),)
    section = page.section()
    assert section is not None
    assert (section.id, section.title, section.has_no_data) == ("a-topic", "A title", False)
    table, text = section.parts
    assert text == Text("One row.", "note", "t.rows", "1")
    assert (table.id, table.title, table.note) == ("t", "Names", "A note.")
    assert table.rows == [{"name": "a <i>&amp;", "runs": 2, "both": "a <i>&amp;, 2 runs"}]
    assert [(column.kind, column.unit) for column in table.columns[:2]] == [
        ("text", ""),
        ("measured", "s"),
    ]


def test_a_page_without_a_title_has_no_section_and_its_parts_join_another(monkeypatch):
    assert page_of(monkeypatch, "{% if a_topic.rows %}<h2>T</h2>{% endif %}").section() is None
    guest = page_of(monkeypatch, "<p>Guest.</p>")
    assert guest.section() is None
    (part,) = (part for _, part in guest.parts)
    host = page_of(
        monkeypatch,
        """<h2 id="host" class="empty">T</h2><p>First.</p><p data-place="20">Last.</p>""",
    )
    section = host.section([((10,), part)])
    assert section is not None
    assert (section.id, section.has_no_data) == ("host", True)
    assert [text.words for text in section.parts] == ["First.", "Guest.", "Last."]
    alone = page_of(monkeypatch, "<h2 data-alone>T</h2><p>First.</p>").section([((10,), part)])
    assert alone is not None and [text.words for text in alone.parts] == ["First."]


def test_a_place_with_more_numbers_is_after_the_same_place_with_fewer(monkeypatch):
    page = """<h2>T</h2><p data-place="30.10">Ten.</p><p data-place="30.2">Two.</p>
        <p data-place="31">End.</p>"""
    guest = page_of(monkeypatch, """<p data-place="30.2.10">Guest of two.</p><p>Guest.</p>""")
    assert [place for place, _ in guest.parts] == [(30, 2, 10), (0,)]
    section = page_of(monkeypatch, page).section(guest.parts)
    assert section is not None
    assert [text.words for text in section.parts] == [
        "Guest.", "Two.", "Guest of two.", "Ten.", "End.",
    ]  # fmt: skip


def test_a_fold_has_a_table_with_a_column_per_varied_factor_and_cells_of_named_fields(monkeypatch):
    page = page_of(
        monkeypatch,
        """<details><summary>More</summary>
          <table id="t" data-rows="rows"><caption>Names</caption>
            <th data-factors></th>
            <th data-key="label" data-field="name" data-digits="4" data-group="both">name</th>
          </table>
        </details>""",
        (Row("a", 2, ("x", "1")),),
        (Column("first", "first", factor="first"), Column("second", "second", factor="second")),
    )
    ((_, fold),) = page.parts
    assert isinstance(fold, Fold) and fold.title == "More"
    (table,) = fold.parts
    assert [column.key for column in table.columns] == ["first", "second", "label"]
    assert (table.columns[2].digits, table.columns[2].group) == (4, "both")
    assert table.rows == [{"first": "x", "second": "1", "label": "a"}]


def test_a_table_of_text_has_its_rows_in_the_template(monkeypatch):
    page = page_of(
        monkeypatch,
        """<table id="t"><caption>Facts</caption><th data-key="what"></th><th data-key="value"></th>
          {% for row in a_topic.rows %}
          <tr><td>runs of {{ row.name }}</td><td>{{ row.runs }}
            , all</td></tr>
          {% endfor %}
        </table>""",
        (Row("a", 2), Row("b & c", 1)),
    )
    ((_, table),) = page.parts
    assert isinstance(table, Table) and not table.headed
    assert table.rows == [
        {"what": "runs of a", "value": "2, all"},
        {"what": "runs of b & c", "value": "1, all"},
    ]


def test_a_row_in_the_template_has_a_cell_per_column(monkeypatch):
    with pytest.raises(ValueError, match="shorter"):
        page_of(
            monkeypatch,
            """<table id="t"><caption>Facts</caption><th data-key="what"></th>
              <th data-key="value"></th><tr><td>one</td></tr></table>""",
        )


def test_a_figure_draws_the_chart_of_a_field_with_its_titles(monkeypatch):
    page = page_of(
        monkeypatch,
        """<figure id="f" data-chart="scatter" data-points="chart" data-x="time (s)" data-y="cost">
          <caption>Cost against time</caption><figcaption>Points
          are runs.</figcaption></figure>""",
    )
    ((_, figure),) = page.parts
    assert isinstance(figure, Figure)
    assert (figure.id, figure.title, figure.caption) == (
        "f",
        "Cost against time",
        "Points are runs.",
    )
    assert figure.spec["datasets"]["points"] == POINTS
    encoding = figure.spec["layer"][0]["encoding"]
    assert [encoding[axis]["title"] for axis in "xy"] == ["time (s)", "cost"]
    assert encoding["color"]["scale"]["domain"] == ["a", "b"]


def test_a_table_shows_one_factor_a_sentence_about_a_field_and_no_empty_column(monkeypatch):
    page = page_of(
        monkeypatch,
        """<table id="t" data-rows="rows" data-columns="with-values"><caption>Names</caption>
          <th data-factors="second" data-field="name"></th>
          <th data-key="treatment" data-factor="first" data-whole>levels</th>
          <th data-key="of" data-sentence="named" data-of="other">other</th>
          <th data-key="none" data-sentence="named" data-of="missing">none</th>
        </table>""",
        (Row("a", 2, ("x",), Row("b", 1)), Row("c", 3)),
        (Column("first", "first"), Column("second", "second", labels={"a": "A"})),
    )
    ((_, table),) = page.parts
    second, levels, other = table.columns
    assert (second.key, second.labels) == ("second", {"a": "A"})
    assert (levels.factor, levels.is_whole, other.key) == ("first", True, "of")
    assert [(row["second"], row["of"], row["none"]) for row in table.rows] == [
        ("a", "b, 1 run", None),
        ("c", None, None),
    ]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ("rows | listed(words.named)", "a & b, 2 runs and c, 1 run"),
        ("rows | listed(words.named, 1)", "a & b, 2 runs and 1 more"),
        ("rows | map(attribute='name') | listed", "a & b and c"),
    ],
)
def test_members_are_listed_as_words_or_by_a_sentence_and_are_escaped_once(
    monkeypatch, members, text
):
    page = page_of(
        monkeypatch,
        f"""{{% import "a_topic/words.j2" as words %}}<p>{{{{ a_topic.{members} }}}}</p>""",
        (Row("a & b", 2), Row("c", 1)),
    )
    ((_, part),) = page.parts
    assert isinstance(part, Text) and part.words == text


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("<h2>T</h2><div></div>", "<div>: allowed in a topic's page: caption, details, figcaption"),
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


def test_a_p_value_and_a_conclusion_from_an_exponent_are_formatted():
    assert topic_page.FILTERS["p_equals"](0.0123) == "p = 0.012"
    assert topic_page.FILTERS["p_equals"](0.0123, 3) == "p = 0.0123"
    assert topic_page.proportionality("not in proportion") == "not proportional"
    assert topic_page.proportionality("") == ""


def test_a_number_has_its_unit_if_it_has_one():
    assert topic_page.quantity(280.0, "µs") == "280 µs"
    assert topic_page.quantity(0.5, "") == "0.500"


def test_a_part_can_join_another_section_than_the_topic(monkeypatch):
    page = page_of(
        monkeypatch,
        """<p>Here.</p>
        <p data-section="other" data-place="20.5" data-paragraph="a" data-key="k">There.</p>""",
    )
    assert page.texts == ["Here."]
    assert page.elsewhere == (("other", ((20, 5), Text("There.", "", "k", "", "a"))),)


def test_neighbouring_texts_of_a_paragraph_become_one_and_a_lone_title_none(monkeypatch):
    page = page_of(
        monkeypatch,
        """<h2>A title</h2>
        <p class="note" data-paragraph="a" data-place="10" data-key="k">First?</p>
        <p data-paragraph="a" data-place="10.20">Second.</p>
        <p data-paragraph="b" data-place="20">Alone?</p>
        <p data-place="30">Last.</p>""",
    )
    section = page.section([((10, 10), Text("Joined.", paragraph="a"))])
    assert section is not None
    assert section.parts == [Text("First? Joined. Second.", "note", "k"), Text("Last.")]
