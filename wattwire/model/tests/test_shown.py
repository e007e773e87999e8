"""Tests of `[[table]]`, `[[figure]]` and `[[ranking]]`, and of the correlates of questions."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.output_requests import ShownValue
from wattwire.model.study import parse_study

STUDY = {
    "published": "published.csv",
    "factors": {"language": ["python", "cpp"], "clients": [1, 2]},
    "fixed": {"middleware": "loopback", "pattern": "service"},
}
TABLE = {
    "title": "As table 4",
    "rows": "language",
    "values": [{"response": "energy", "roles": ["client"], "published": "energy_j"}],
    "published": ["4"],
}


def shown(**document):
    return parse_study("example", {**STUDY, **document}, "study.toml").shown


def refused(**document) -> str:
    with pytest.raises(UsageError) as caught:
        shown(**document)
    return str(caught.value)


def test_a_table_names_rows_columns_values_and_what_stands_beside():
    (table,) = shown(
        table=[{**TABLE, "columns": "middleware", "best": True, "note": "Of 20,000 calls."}]
    ).tables
    assert (table.rows, table.columns, table.best) == (("language",), "middleware", True)
    assert table.values == (ShownValue("energy", ("client",), "energy_j"),)
    assert shown(table=[TABLE]).published == {"4"}
    (plain,) = shown(
        table=[{"title": "t", "rows": "clients", "values": [{"response": "lost"}]}]
    ).tables
    assert plain.values[0].roles == ("both",) and plain.values[0].divide_by == 1.0


def test_figures_and_rankings_name_their_responses():
    found = shown(
        figure=[{"title": "f", "kind": "scatter", "response": "energy", "against": "time",
                 "instead": "cpu", "roles": ["client", "server"]}],
        ranking=[{"title": "r", "product": ["energy", "time"], "published": "4",
                  "published_product": ["energy_j", "time_s"]}],
    )  # fmt: skip
    assert found.figures[0].instead == "cpu"
    assert found.rankings[0].published_product == ("energy_j", "time_s")
    assert shown() == shown(table=[], figure=[], ranking=[])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": "langage"}, 'table 1: rows: unknown factor "langage"'),
        ({"rows": ""}, "table 1: rows: found nothing; allowed: a factor, or a list of factors"),
        ({"columns": "language"}, "rows and columns are both language"),
        ({"rows": ["clients", "language"], "columns": "language"}, "are both language"),
        ({"rows": ["clients", "clients"]}, "rows: found a factor twice"),
        ({"rows": []}, "rows: found []; allowed: a factor, or a list of factors"),
        ({"values": []}, "table 1: values: found []; allowed: a list of tables"),
        ({"values": [{"response": "lost", "role": "client"}]}, 'values 1: unknown key "role"'),
        ({"values": [{"response": "lost", "roles": ["clint"]}]}, 'Did you mean "client"?'),
        ({"values": [{"response": "lost", "divide_by": 0}]}, "divide_by: found 0; allowed: a"),
        ({"values": [{"roles": ["client"]}]}, "values 1: response: found nothing"),
        ({"values": [{"response": "lost"}]}, "published: no value names its column"),
        ({"published": []}, "published: no table is named"),
        ({"published": "4"}, "published: found '4'; allowed: a list of"),
        ({"best": "yes"}, "best: found 'yes'; allowed: true or false"),
        ({"title": ""}, "title: found nothing; allowed: a heading"),
        ({"titel": "x"}, 'table 1: unknown key "titel"'),
    ],
)
def test_what_is_wrong_with_a_table_is_told(change, message):
    assert message in refused(table=[{**TABLE, **change}])


def test_what_is_wrong_with_others_is_told():
    figure = {"title": "f", "kind": "box", "response": "lost"}
    assert 'unknown kind "bax"' in refused(figure=[{**figure, "kind": "bax"}])
    assert "against: found nothing" in refused(figure=[{**figure, "kind": "scatter"}])
    assert 'against: the kind "box" does not use this key' in refused(
        figure=[{**figure, "against": "y"}]
    )
    ranking = {"title": "r", "product": ["a", "b"]}
    assert "allowed: two responses" in refused(ranking=[{**ranking, "product": ["a"]}])
    half = {**ranking, "published": "4", "published_product": ["energy_j"]}
    assert "allowed: two columns" in refused(ranking=[half])
    assert "allowed: tables [[table]]" in refused(table={"title": "x"})
    missing = refused(published="", table=[TABLE])
    assert "the study has no published numbers" in missing


def test_a_figure_selects_known_levels_of_known_factors():
    figure = {"title": "f", "kind": "box", "response": "lost"}
    where = {"language": "cpp", "pattern": "service"}
    assert shown(figure=[{**figure, "where": where}]).figures[0].where == where
    nested = {"fixed": {**STUDY["fixed"], "cell": "x/y", "settings.no_delay": True}}
    (kept,) = shown(
        **nested, figure=[{**figure, "where": {"settings": {"no_delay": True}}}]
    ).figures
    assert kept.where == {"settings.no_delay": True}
    unknown = refused(figure=[{**figure, "where": {"langage": "cpp"}}])
    assert 'figure 1: where: unknown factor "langage"' in unknown and '"language"' in unknown
    other = refused(figure=[{**figure, "where": {"language": "rust"}}])
    assert "figure 1: where.language: found 'rust'; allowed: 'python', 'cpp'" in other
    assert "figure 1: where: found 'cpp'" in refused(figure=[{**figure, "where": "cpp"}])


LINE = {"title": "f", "kind": "line", "response": "lost", "x": "clients"}
STACKED = {"title": "f", "kind": "stacked", "responses": ["lost", "late"]}


def test_lines_have_a_numeric_factor_and_stacks_a_list_of_responses():
    line, stacked = shown(figure=[{**LINE, "scale": "plain"}, STACKED]).figures
    assert (line.x, line.by, line.scale) == ("clients", "", "plain")
    assert stacked.responses == ("lost", "late") and stacked.response == ""


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({**LINE, "x": ""}, "figure 1: x: found nothing; allowed: a factor whose levels are numb"),
        ({**LINE, "x": "client"}, 'Did you mean "clients"?'),
        ({**LINE, "x": "language"}, 'x: found "language"; allowed: a factor whose levels are'),
        ({**LINE, "x": "language"}, "clients"),
        ({**LINE, "by": "clients"}, "x and by are both clients. Set by to another factor"),
        ({**LINE, "scale": "ln"}, 'figure 1: scale: unknown scale "ln"'),
        ({**LINE, "response": ""}, "figure 1: response: found nothing; allowed: a response"),
        ({**LINE, "against": "late"}, 'against: the kind "line" does not use this key; delete it'),
        (
            {**LINE, "kind": "box"},
            'x: the kind "box" does not use this key; delete it. It uses: re',
        ),
        ({**STACKED, "responses": []}, "responses: found nothing; allowed: a list of two or more"),
        ({**STACKED, "responses": ["lost"]}, "responses: found ['lost']; allowed: a list of two"),
        ({**STACKED, "responses": ["lost"] * 2}, "found a name twice"),
        ({**STACKED, "response": "lost"}, 'response: the kind "stacked" does not use this key'),
    ],
)
def test_what_is_wrong_with_a_line_or_a_stack_is_an_error(figure, message):
    assert message in refused(figure=[figure])


def test_a_question_may_ask_what_goes_along_with_what():
    asked = {"id": "Q", "responses": ["energy"], "beside": ["time"]}
    (question,) = parse_study("example", {**STUDY, "question": [asked]}, "study.toml").questions
    assert question.beside == ("time",)
    assert "beside: found 'time'; allowed: a list" in refused(question=[{"beside": "time"}])
