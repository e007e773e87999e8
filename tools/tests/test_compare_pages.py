"""Test that every changed number is reported, and that moved or renamed numbers are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.compare_pages import main
from tools.report_numbers import numbers

PAGE = """<html><body><header><h1>{headline}</h1></header><nav>17 pages</nav>
<section id="{section}"><p>{text}</p><div id="table-costs"><table>
<thead><tr><th>cell</th><th>cost</th></tr></thead><tbody>{rows}</tbody></table></div></section>
<script type="application/json" id="charts">{charts}</script><script>let x = 99;</script>
</body></html>"""
ANSWER = {
    "question": "Q1", "response": "median latency", "level": "Python", "baseline": "C++",
    "ratio": "2.5", "ratio_low": "2.25", "ratio_high": "2.75",
}  # fmt: skip


def write_report(folder: Path, **changes: str) -> None:
    """Write the report of one campaign, with `changes` to its text."""
    said = {
        "headline": "Python is 2.5 times slower (95 % interval 2.25 to 2.75).",
        "text": "The campaign has 40 runs of 1\u202f024 B; p = 3 × 10⁻⁵, and b01-p001 is p99.",
        "section": "design", "cost": "7.5", "point": "3.25", "ratio": "2.5", "estimate": "2.5",
    } | changes  # fmt: skip
    report = folder / "campaign" / "report"
    (report / "tables").mkdir(parents=True)
    cells = [f"<tr><td>a</td><td>{said['cost']}</td></tr>", "<tr><td>b</td><td>8</td></tr>"]
    charts = {
        "charts": {"bars": {"datasets": {"points": 0}}},
        "points": [{"rows": 1, "columns": {"y": [float(said["point"])]}}],
    }
    shown = {key: said[key] for key in ("headline", "text", "section")}
    page = PAGE.format(rows="".join(cells), charts=json.dumps(charts), **shown)
    (report / "index.html").write_text(page, "utf-8")
    answer = ANSWER | {"ratio": said["ratio"]}
    lines = [",".join(answer), ",".join(answer.values())]
    (report / "tables" / "answers.csv").write_text("\n".join(lines) + "\n", "utf-8")
    contrast = {
        "question": "Q1", "kind": "ratio", "response": "latency_p50_us",
        "response_title": "median latency", "level_title": "Python", "baseline_title": "C++",
        "estimate": float(said["estimate"]), "low": 2.25, "high": 2.75,
    }  # fmt: skip
    (report / "analysis.json").write_text(json.dumps({"contrasts": [contrast]}), "utf-8")


def compared(tmp_path: Path, causes: str = "", **changes: str) -> int:
    write_report(tmp_path / "old", section="asked")
    write_report(tmp_path / "new", **changes)
    arguments = [str(tmp_path / "old"), str(tmp_path / "new")]
    if causes:
        (tmp_path / "causes.toml").write_text(causes, "utf-8")
        arguments.append(str(tmp_path / "causes.toml"))
    return main(arguments)


def test_equal_reports_with_a_renamed_section_have_no_difference(tmp_path, capsys) -> None:
    assert compared(tmp_path) == 0
    printed = capsys.readouterr().out
    # The ratio and interval of the CSV, 2 costs of the table, the point of the chart, 4 numbers of
    # the headline, 3 of the text, and 3 of analysis.json.
    assert "16 numbers compared: 16 equal" in printed
    assert "csv 3, page 2, chart 1, text 7, analysis 3" in printed


def test_words_may_change_where_numbers_do_not(tmp_path) -> None:
    assert compared(tmp_path, text="40 valid runs, 1\u202f024 bytes each, p = 3 × 10⁻⁵.") == 0


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"ratio": "2.6"}, "csv answers"),
        ({"cost": "7.6"}, "page table costs | a | cost: 7.5 → 7.6"),
        ({"point": "3.26"}, "chart bars"),
        ({"estimate": "2.6"}, "analysis contrasts | Q1, median latency, Python, C++ | estimate"),
        ({"headline": "Python is 2.6 times slower (95 % interval 2.25 to 2.75)."}, "2.5 → 2.6"),
        ({"text": "The campaign has 40 runs of 1\u202f024 B."}, "only old: text design"),
        ({"text": "The campaign has 41 runs of 1\u202f024 B; p = 3 × 10⁻⁵."}, "40.0 → 41.0"),
    ],
)
def test_a_changed_number_is_found(tmp_path, capsys, changes, where) -> None:
    assert compared(tmp_path, **changes) == 1
    assert where in capsys.readouterr().out


def test_a_known_cause_explains_its_difference_and_no_larger_one(tmp_path, capsys) -> None:
    cause = '[[cause]]\nname = "new rule"\nwhere = "csv answers"\nchange_max = {}\n'
    assert compared(tmp_path / "a", cause.format(0.1), ratio="2.6") == 0
    assert "1 differs: new rule" in capsys.readouterr().out
    assert compared(tmp_path / "b", cause.format(0.001), ratio="2.6") == 1


def test_a_difference_of_rounding_is_counted_apart(tmp_path, capsys) -> None:
    assert compared(tmp_path, ratio="2.5000000000000004") == 0
    assert "15 equal, 1 equal" in capsys.readouterr().out.replace("\n", " ")


def test_a_folder_without_a_report_is_no_success(tmp_path) -> None:
    (tmp_path / "old").mkdir()
    assert main([str(tmp_path / "old"), str(tmp_path / "old")]) == 2


def test_numbers_are_read_as_a_page_prints_them() -> None:
    assert numbers("1\u202f189 runs, −4.5 %, 0.05 s, 2.0e-05, p = 1.2 × 10⁻³²") == [
        1189, -4.5, 0.05, 2e-5, 1.2e-32,
    ]  # fmt: skip
    assert numbers("p99 of b01-p001, latency_p50_us") == []
