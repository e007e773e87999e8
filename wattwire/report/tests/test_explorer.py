"""Tests of the data and the chart templates of the interactive section, and of their packing."""

from __future__ import annotations

import json
import re
from importlib import resources

from hypothesis import given
from hypothesis import strategies as st

from wattwire.analysis.responses import CPU, LATENCY_P50
from wattwire.analysis.topics.explore.run_table import Layout, RunTable, TableFactor, TableLevel
from wattwire.report.figures.style import finish
from wattwire.report.html.columnar_json import packed, packed_charts, script_json
from wattwire.report.html.explorer import PATTERNS, Explorer, Kind, explorer
from wattwire.report.parts import Column, Table
from wattwire.report.tests.synthetic import unpacked

SCRIPT = (resources.files("wattwire.report.html") / "templates" / "explore.js").read_text("utf-8")
KINDS = [Kind(name, f"chart {name}", f"Caption of {name}.") for name in PATTERNS]
TABLE = RunTable(
    (
        TableFactor("language", "language", (TableLevel("a", "A"), TableLevel("b", "</script>"))),
        TableFactor(
            "rate_hz", "constructor", (TableLevel("1", "1 Hz"), TableLevel("2", "toString"))
        ),
    ),
    (CPU, LATENCY_P50),
    Layout("language", None, "rate_hz"),
    1,
    ("r1", "r2"),
    (1, None),
    (1, 2),
    ("valid", "excluded"),
    ("A, 1 Hz", "toString"),
    (("a", "b"), ("1", "2")),
    ((1.5, None), (2.0, 3.0)),
)


def made(table: RunTable = TABLE) -> Explorer:
    return explorer(table, KINDS)


def test_rows_have_their_levels_by_factor_and_their_values_by_response() -> None:
    chart = made()
    first, second = unpacked(json.loads(chart.json)["runs"])
    assert first == {
        "run": "r1", "block": 1, "order": 1, "used": "valid", "treatment": "A, 1 Hz",
        "f0": "a", "f1": "1", "r0": 1.5, "r1": 2.0,
    }  # fmt: skip
    assert (second["block"], second["r0"]) == (None, None)
    assert chart.excluded == 1 and [kind.title for kind in chart.kinds][0] == "chart box"
    assert chart.data["begin"] == {"tone": 0, "across": 0, "panel": 1}
    assert chart.data["responses"][0] == {"title": "CPU time per message (µs)", "log": True}
    assert chart.data["kinds"]["heat"]["says"] == "Caption of heat."


def test_names_that_charts_cannot_draw_have_another_text_there() -> None:
    chart = made()
    language, rate = chart.data["factors"]
    assert "drawn" not in language["levels"][0]
    assert rate["title"] == "constructor\u00a0"
    assert rate["levels"][1] == {"level": "2", "title": "toString", "drawn": "toString\u00a0"}
    assert unpacked(json.loads(chart.json)["runs"])[1]["treatment"] == "toString\u00a0"


def test_every_word_of_a_pattern_is_one_that_the_page_fills_in() -> None:
    known = set(re.findall(r'"(@[a-z]+)":', SCRIPT))
    patterns = json.dumps(made().data["kinds"])
    used = set(re.findall(r"@[a-z]+", patterns))
    assert used and used <= known
    assert "datasets" not in patterns and '"config"' not in patterns


def test_a_name_of_a_level_cannot_end_its_script() -> None:
    chart = made()
    assert "</script" not in chart.json and "\\u003c/script" in chart.json


def test_rows_of_tables_say_their_levels() -> None:
    column = Column("interval_s", "interval", factor="interval_s")
    made = Table("t", "T", [column, Column("n", "n", "measured")], [])
    assert json.loads(made.levels({"interval_s": "0.05", "n": 3})) == {"interval_s": "0.05"}
    assert made.levels({"interval_s": None, "n": 3}) == ""


def test_a_chart_without_points_stays_a_pattern() -> None:
    assert "datasets" not in finish({"mark": {"type": "point"}}, None)
    assert finish({"mark": {"type": "point"}}, [])["datasets"] == {"points": []}


@given(
    st.lists(
        st.fixed_dictionaries(
            {"a": st.sampled_from(["x", "y", "</script>"]), "b": st.none() | st.floats(0, 9)},
            optional={"c": st.integers(0, 3), "d": st.text(max_size=2) | st.booleans()},
        ),
        max_size=12,
    )
)
def test_rows_come_back_from_their_packing(rows) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    whole = [{name: row.get(name) for name in names} for row in rows]
    assert unpacked(json.loads(script_json(packed(rows)))) == whole


def test_points_that_charts_share_stand_on_the_page_once() -> None:
    shared, other = [{"a": 1}], [{"a": 2}]
    specs = {"p": {"datasets": {"points": shared}}, "q": {"datasets": {"points": shared}},
             "r": {"datasets": {"points": other}}}  # fmt: skip
    held = packed_charts(specs)
    assert [held["charts"][name]["datasets"]["points"] for name in "pqr"] == [0, 0, 1]
    assert [unpacked(points) for points in held["points"]] == [shared, other]
