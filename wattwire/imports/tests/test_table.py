"""Test the import of arbitrary tables as campaigns, and the error messages for invalid tables."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.answering import dependent_rows
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.answers.winner import Winner
from wattwire.imports import csv_text, table, writing
from wattwire.model import words as model_words
from wattwire.model.errors import UsageError
from wattwire.model.metrics import direction_of
from wattwire.report.tests.answered import answered_study, headline
from wattwire.report.topic_page import Sentences

PLAIN = """lang,size,day,power
c,1,mon,1.5
c,1,tue,1.7
py,1,mon,2.5
py,1,tue,
"""


def request(
    *factors: str, responses: str = "power:W", block: str = "", run: str = ""
) -> table.TableRequest:
    units = tuple(table.response(text) for text in responses.split())
    return table.TableRequest(units, factors or ("lang",), block or None, run or None)


def read(tmp_path, text: str | bytes, wanted: table.TableRequest | None = None):
    path = tmp_path / "mine.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return table.read(path, wanted or request())


def test_a_row_is_a_run(tmp_path) -> None:
    imported = read(tmp_path, PLAIN, request("lang", block="day"))
    assert imported.runs["power"].to_list() == [1.5, 1.7, 2.5, None]
    assert imported.runs["block"].to_list() == [1, 2, 1, 2]
    assert imported.runs["position"].to_list() == [1, 1, 2, 2]
    assert imported.runs["verdict"].to_list() == ["valid", "valid", "valid", "invalid"]
    assert imported.study["factors"] == {"lang": ["c", "py"]}
    assert imported.columns["power"]["unit"] == "W"
    assert imported.provenance["how"][0] == "power, line 2"
    assert [(one.path, one.why) for one in imported.set_aside] == [
        ("mine.csv, line 5", "no response in this row")
    ]


def test_rows_of_one_run_are_averaged(tmp_path) -> None:
    text = "id,lang,power\na,c,1\na,c,3\nb,c,5\nc,py,7\n"
    imported = read(tmp_path, text, request("lang", run="id"))
    assert imported.runs["run"].to_list() == ["a", "b", "c"]
    assert imported.runs["power"].to_list() == [2.0, 5.0, 7.0]
    assert imported.provenance["how"][0] == "power, lines 2 to 3, mean"
    assert imported.provenance["rows_used"].to_list() == [2, 1, 1]


def test_levels_that_are_numbers_sort_as_numbers(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n10,1\n9,1\n10,2\n", request("size", responses="p"))
    assert imported.study["factors"] == {"size": [9, 10]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_quotes_and_a_byte_order_mark_are_read(tmp_path, delimiter: str) -> None:
    lines = ['"lang"', "power"], ['"a b"', "1"], ['"a b"', "2"]
    text = "\ufeff" + "\r\n".join(delimiter.join(line) for line in lines)
    assert read(tmp_path, text).study["factors"] == {"lang": ["a b"]}


def test_a_line_break_inside_quotes_is_part_of_a_level(tmp_path) -> None:
    imported = read(tmp_path, 'lang,power\n"a\nb",1\n"a\nb",2\n')
    assert imported.study["factors"] == {"lang": ["a\nb"]}
    assert imported.runs["run"].to_list() == ["row-3", "row-5"], "where each row ends"


def test_a_response_with_a_dot_is_no_node_s(tmp_path) -> None:
    imported = read(tmp_path, "lang,p.q\nc,1\nc,2\n", request("lang", responses="p.q"))
    assert imported.runs["p_q"].to_list() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "wanted", "words"),
    [
        ("", request(), "the file is empty"),
        ("lang,power\n", request(), "a header but no rows"),
        (PLAIN, request("langg"), 'unknown column "langg"; known: day, lang, power, size.*"lang"'),
        (PLAIN, request("lang", responses="pow"), "--response: unknown column"),
        (PLAIN, request("lang", block="week"), "--block: unknown column"),
        (PLAIN.replace("1.7", "fast"), request(), 'line 3: power: found "fast"; allowed: a number'),
        (PLAIN.replace("1.7", "inf"), request(), "line 3: power: found .inf.*a finite number"),
        (PLAIN.replace(",", ";").replace(".", ","), request(), 'found "1,5".*with decimal points'),
        (PLAIN.replace("c,1,tue", ",1,tue"), request(), "line 3: lang: found nothing"),
        (PLAIN.replace("mon,1.5", "mon"), request(), "line 2: found 3 cells; the header has 4"),
        ("lang,lang\n1,2\n", request(), 'two columns "lang"'),
        (PLAIN, request("lang", "size", "day"), "no repeated runs, because each combination"),
        (PLAIN, request("lang", "lang"), "column lang: named twice, in --factor and in --factor"),
        (
            "run,lang,power\na,c,1\na,py,2\nb,c,3\n",
            request("lang", run="run"),
            "line 3: found lang py for run a; line 2 has c",
        ),
        (b"lang,power\n\xff\xfe,1\n", request(), "not UTF-8 text"),
        (
            f"lang,power\nc,{'1' * 200_000}\n",
            request(),
            "line 2: cannot be read as CSV .field larger",
        ),
        (
            PLAIN,
            table.TableRequest((), ("lang",)),
            "--response is missing; name one of the file.s columns: lang, size",
        ),
        (
            PLAIN,
            table.TableRequest((("power", ""),), ()),
            "--factor is missing; .*, power; probably levels: lang, day$",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, wanted, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, text, wanted)


CAUSES = {
    "JSON": ('[\n {"lang": "c", "power": 1.5},\n {"lang": "py", "power": 2}\n]\n', "is JSON"),
    "NDJSON": ('{"lang": "c", "power": 1.5}\n{"lang": "py", "power": 2}\n', "is NDJSON"),
    "preamble": ("Rate: 30\nHost: x\n\nlang,power\nc,1\nc,2\n", "line 4.*Line 4 looks like the h"),
    "comment": ("# host x\nlang,power\nc,1\nc,2\n", "line 1: found .# host x.*Delete comments"),
    "late comment": ("lang,power\nc,1\n# warm-up, b, c\nc,2\n", "line 3.*like a comment"),
    "aligned": ("lang   power\nc      1\nc      2\n", "separated by spaces"),
    "no header": (
        "c,1,1.5\nc,2,1.7\n",
        r"line 1: found numbers instead of names of columns \(c, 1, 1.5\)",
    ),
    "decimal commas": ("lang,power\nc,1,5\nc,1,6\n", "line 2: found 3 cells.*A comma may be part"),
    "thousands": ('lang,power\nc,"1,234"\n', "the comma separates thousands"),
    "unit": ("lang,power\nc,480us\n", "without it, and name the unit .*power:us"),
    "infinity": ("lang,power\nc,+Inf\n", "finite number. A message that was lost"),
    "summary": ("lang,power,stddev,n\nc,1,2,10\n", "stddev, n look like summaries"),
    "wide": ("lang,power,other\nc,1,2\n", "a wide table"),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_a_file_that_is_no_table_of_runs_is_refused_with_the_cause(tmp_path, kind: str) -> None:
    text, words = CAUSES[kind]
    with pytest.raises(UsageError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nlang;power\nc;1\nc;2\n",
        "sep=,\r\nlang,power\r\nc,1\r\nc,2\r\n",
        "lang;power\nc;1\nc;2\n",
    ],
)
def test_a_declared_delimiter_is_used(tmp_path, text: str) -> None:
    assert read(tmp_path, text).runs["power"].to_list() == [1.0, 2.0]


def test_the_delimiter_is_the_one_with_which_all_lines_have_the_same_cells(tmp_path) -> None:
    text = "lang;latency, mean, ms\nc;1\nc;2\n"
    units = (("latency, mean, ms", ""),)
    imported = read(tmp_path, text, table.TableRequest(units, ("lang",)))
    assert imported.runs["latency_mean_ms"].to_list() == [1.0, 2.0]
    assert imported.columns["latency_mean_ms"]["title"] == "latency, mean, ms"


@pytest.mark.parametrize(
    ("option", "name", "unit"),
    [("cycles:u", "cycles:u", ""), ("cycles:u:1", "cycles:u", "1"), ("ms:s", "ms", "s")],
)
def test_the_longest_column_before_a_colon_is_the_response(tmp_path, option, name, unit) -> None:
    imported = read(tmp_path, "lang,cycles:u,ms\nc,1,1\nc,2,2\n", request(responses=option))
    assert imported.runs[table.column(name)].to_list() == [1.0, 2.0]
    assert imported.columns[table.column(name)]["unit"] == unit


def samples(correlation: float, rows: int) -> str:
    """Return a table of three levels with `rows` rows each, an autoregressive series."""
    draw = np.random.default_rng(1)
    lines = ["lang,power,id"]
    for level, mean in (("a", 10.0), ("b", 15.0), ("c", 20.0)):
        error = 0.0
        for row in range(rows):
            error = correlation * error + draw.normal()
            lines.append(f"{level},{mean + error},{level}{row // (rows // 2)}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("rows", [40, 2_000])
def test_samples_as_rows_are_no_runs(tmp_path, rows: int) -> None:
    text = samples(0.95, rows)
    with pytest.raises(UsageError, match="power: consecutive rows are correlated.*--run COL"):
        read(tmp_path, text)
    assert read(tmp_path, text, request(run="id")).runs.height == 6
    accepted = replace(request(), rows_are_runs=True)
    assert read(tmp_path, text, accepted).runs.height == 3 * rows


def test_independent_rows_are_runs_and_many_of_them_are_named(tmp_path) -> None:
    titles = [remark.title for remark in read(tmp_path, samples(0.0, 300)).remarks]
    assert titles == ["Each row counts as a run"]
    assert not read(tmp_path, samples(0.2, 60)).remarks


FAILING = "lang,status,power\nc,OK,1\nc,OK,2\npy,OK,4\npy,OK,4\npy,Failed,0.1\npy,Timeout,0.1\n"


def test_a_column_that_marks_failed_rows_is_named_and_selects_rows(tmp_path) -> None:
    (remark,) = read(tmp_path, FAILING).remarks
    assert remark.title == "Column status may mark failed rows"
    assert "--where status=OK." in remark.text
    imported = read(tmp_path, FAILING, replace(request(), where=(("status", "OK"),)))
    assert imported.runs["power"].to_list() == [1.0, 2.0, 4.0, 4.0]
    assert [item.path for item in imported.set_aside] == ["mine.csv, line 6", "mine.csv, line 7"]
    assert not imported.remarks
    either = replace(request(), where=(("status", "OK"), ("status", "Failed")))
    assert read(tmp_path, FAILING, either).runs.height == 5


def test_many_excluded_rows_are_counted_and_the_first_are_listed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(table, "ROWS_LISTED", 2)
    text = FAILING + "py,Timeout,9\npy,OK,\npy,OK,\npy,OK,\npy,OK,\n"
    imported = read(tmp_path, text, replace(request(), where=(("status", "OK"),)))
    assert [(item.path, item.rows, item.why) for item in imported.set_aside] == [
        ("mine.csv, line 6", 1, "status is not OK (--where)"),
        ("mine.csv, line 7", 1, "status is not OK (--where)"),
        ("mine.csv, line 8", 1, "status is not OK (--where)"),
        ("mine.csv, line 9", 1, "no response in this row"),
        ("mine.csv, line 10", 1, "no response in this row"),
        ("mine.csv, lines 11 to 12", 2, "no response in this row"),
    ]


@pytest.mark.parametrize("rows_in_memory", [1, 2, 3])
def test_a_table_is_read_in_parts(tmp_path, monkeypatch, rows_in_memory: int) -> None:
    monkeypatch.setattr(csv_text, "CHUNK_ROWS", rows_in_memory)
    imported = read(tmp_path, PLAIN, request("lang", block="day"))
    assert imported.runs["power"].to_list() == [1.5, 1.7, 2.5, None]
    assert imported.runs["run"].to_list() == ["row-2", "row-3", "row-4", "row-5"]
    with pytest.raises(UsageError, match="line 6: found 1 cells"):
        read(tmp_path, PLAIN + "x\n")


@pytest.mark.parametrize("sorted_runs", [1, 9])
def test_responses_have_each_their_provenance(tmp_path, monkeypatch, sorted_runs: int) -> None:
    monkeypatch.setattr(table, "SORTED_RUNS", sorted_runs)
    text = "id,lang,power,t\na,c,1,\na,c,3,4\nb,c,,2\n"
    imported = read(tmp_path, text, request("lang", responses="power t", run="id"))
    columns = ("run", "column", "rows_used", "rows_left_out", "how")
    assert list(imported.provenance.select(columns).iter_rows()) == [
        ("a", "power", 2, 0, "power, lines 2 to 3, mean"),
        ("a", "t", 1, 1, "t, lines 2 to 3, mean"),
        ("b", "power", 0, 1, "power, line 4"), ("b", "t", 1, 0, "t, line 4"),
    ]  # fmt: skip


def test_the_most_frequent_status_is_not_taken_for_success(tmp_path) -> None:
    mostly_failed = FAILING.replace("py,OK", "py,Failed").replace("c,OK,1", "c,Timeout,1")
    (remark,) = read(tmp_path, mostly_failed).remarks
    assert "--where status=OK." in remark.text
    (remark,) = read(tmp_path, mostly_failed.replace("OK", "200")).remarks
    assert "--where status=VALUE." in remark.text


def test_a_condition_on_a_column_of_numbers_lists_few_values(tmp_path) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, samples(0.0, 300), replace(request(), where=(("power", "x"),)))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("where", "words"),
    [((("state", "OK"),), '--where: unknown column "state"'), ((("status", "ok"),), 'value "ok"')],
)
def test_a_condition_that_no_row_meets_is_refused(tmp_path, where, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, FAILING, replace(request(), where=where))
    with pytest.raises(UsageError, match="allowed: COL=VALUE"):
        table.condition("status")


def test_names_of_the_store_are_kept_apart_with_their_words(tmp_path) -> None:
    text = "pattern,verdict,lost\npubsub,1,1\npubsub,2,2\nreqrep,3,3\n"
    imported = read(tmp_path, text, request("pattern", responses="verdict lost:B"))
    assert imported.study["factors"] == {"column.pattern": ["pubsub", "reqrep"]}
    assert imported.runs["verdict"].to_list() == ["valid"] * 3
    assert imported.runs["column_lost"].to_list() == [1.0, 2.0, 3.0]
    assert imported.columns["column_lost"]["title"] == "lost"
    assert model_words.level_title("column.payload_bytes", 64, {}) == "64 B"
    assert model_words.factor_title("column.pattern") == "pattern"


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(UsageError, match="this file does not exist"):
        table.read(tmp_path / "no.csv", request())
    with pytest.raises(UsageError, match="a folder; name a CSV file"):
        table.read(tmp_path, request())


def test_an_empty_response_name_is_refused() -> None:
    with pytest.raises(UsageError, match="COL or COL:UNIT"):
        table.response(":W")


@pytest.mark.parametrize("number", ["1_000", "\u0661", "\uff11", "0x10", "1e", ".", "1 000"])
def test_what_only_python_takes_for_a_number_is_refused(tmp_path, number: str) -> None:
    with pytest.raises(UsageError, match="line 3: power: found .*allowed: a number"):
        read(tmp_path, PLAIN.replace("1.7", number))


@pytest.mark.parametrize("number", ["1e3", "+1.5", "-.5", "5.", "1E-3"])
def test_numbers_in_their_usual_forms_are_read(tmp_path, number: str) -> None:
    imported = read(tmp_path, PLAIN.replace("1.7", number))
    assert imported.runs["power"][1] == float(number)


def test_levels_that_become_one_are_told(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n1,1\n1.0,1\n1,2\n2,2\n", request("size", responses="p:s"))
    assert imported.study["factors"] == {"size": [1.0, 2.0]}
    (remark,) = imported.remarks
    assert "one level: 1, 1.0." in remark.text
    assert not read(tmp_path, PLAIN, request("lang", responses="size:B", block="day")).remarks


@pytest.mark.parametrize("texts", [("1.1", "1.10", "1.2"), ("7", "007", "8")])
def test_versions_and_names_of_digits_are_not_merged_as_numbers(tmp_path, texts) -> None:
    rows = [f"{text},{at}" for at, text in enumerate(texts * 2)]
    imported = read(tmp_path, "\n".join(["version,p", *rows]), request("version", responses="p:s"))
    assert imported.study["factors"] == {"version": list(texts)}
    (remark,) = imported.remarks
    assert f"different levels: {texts[0]}, {texts[1]}." in remark.text and remark.at_top


def factorial_rows(columns: str, correlation: float) -> str:
    """Return a full factorial sorted by treatment, with interactions and ten runs each."""
    rng, error, lines = np.random.default_rng(3), 0.0, [columns]
    for lib, size, host in itertools.product("abc", (1, 2, 3), ("x", "y")):
        mean = size * (1.5 if (lib, size) in (("a", 3), ("b", 1)) else 1) * (1 + (host == "y"))
        for _ in range(10):
            error = correlation * error + rng.normal() * (1 - correlation**2) ** 0.5
            lines.append(f"{lib},{size},{host},{mean * np.exp(0.03 * error):.5f}")
    return "\n".join(lines)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_interactions_of_a_sorted_table_are_no_correlation_of_its_rows(tmp_path, correlation):
    text = factorial_rows("lib,size,host,t", correlation)
    evidence = campaign_of(tmp_path, text, request("lib", "size", "host", responses="t:us"))
    refused = [
        isinstance(item.result, dependent_rows.Dependent) for item in answer_all(evidence).items
    ]
    assert all(refused) if correlation else not any(refused)


def test_columns_without_a_role_in_which_runs_differ_are_named(tmp_path) -> None:
    text = factorial_rows("lib,size,host,t", 0.0)
    with pytest.raises(UsageError, match=r"differ in size and host, .*--factor size --factor host"):
        read(tmp_path, text, request("lib", responses="t:us"))
    few = "lib,host,p95\na,x,1.25\na,y,1.5\nb,x,1.75\nb,y,2.25\n"
    (remark,) = read(tmp_path, few, request("lib", responses="p95:us")).remarks
    assert "differ in host (x and y)" in remark.text and "--factor host" in remark.text
    assert remark.at_top
    confounded = "lib,host,p95\na,x,1.25\na,x,1.5\nb,y,1.75\nb,y,2.25\n"
    (remark,) = read(tmp_path, confounded, request("lib", responses="p95:us")).remarks
    assert "have the same host (x and y), so a difference can come from either" in remark.text


def titles(tmp_path, header: str, rows, wanted: table.TableRequest) -> dict[str, str]:
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
    return {remark.title: remark.text for remark in read(tmp_path, text, wanted).remarks}


def test_a_remark_on_a_column_advises_only_what_works(tmp_path) -> None:
    nested = [(lib, f"{lib}{host}", 1 + host) for lib in "ab" for host in (0, 1, 0, 1)]
    text = titles(tmp_path, "lib,host,p95", nested, request("lib", responses="p95:us"))
    advice = text["Runs differ in columns without a role"]
    assert "--run host" in advice and "--block" not in advice and "--factor" not in advice
    square = [(d, f"car{c}", "abc"[(c + d) % 3], 1 + d + c) for d in range(3) for c in range(3)]
    wanted = request("oil", responses="g:us", block="day")
    text = titles(tmp_path, "day,car,oil,g", square, wanted)
    assert list(text) == ["Columns that change between blocks"]


def test_two_blocks_and_measured_numbers_as_levels_are_named(tmp_path) -> None:
    rows = [(lib, host, 1 + at) for lib in "ab" for host in "xy" for at in (0, 2, 1)]
    wanted = request("lib", responses="p95:us", block="host")
    assert (
        "--factor instead" in titles(tmp_path, "lib,host,p95", rows, wanted)["Two blocks in host"]
    )
    unnamed = titles(tmp_path, "lib,host,p95", rows, request("lib", responses="p95:us"))
    assert "--block" not in unnamed["Runs differ in columns without a role"]
    measured = [(20 + at / 4, 1 + at % 4) for at in (0, *range(40))]
    wanted = request("temp", responses="p95:us")
    text = titles(tmp_path, "temp,p95", measured, wanted)["Levels of temp without repetition"]
    assert "40 levels in 41 rows" in text


def test_combinations_without_runs_are_named(tmp_path) -> None:
    cells = [("v8", "off"), ("v8", "on"), ("jsc", "off")]
    rows = [(*cell, day, 1 + day) for cell in cells for day in range(3)]
    wanted = request("engine", "jit", responses="t:us", block="day")
    text = titles(tmp_path, "engine,jit,day,t", rows, wanted)["Combinations without runs"]
    assert "3 of the 4 combinations of engine and jit; it lacks jsc with on." in text


def test_rows_that_share_a_trial_are_named_as_samples(tmp_path) -> None:
    rows = [(lib, trial, t, 1 + t % 3) for lib in "ab" for trial in (1, 2) for t in (3, 1, 2, 9)]
    text = titles(tmp_path, "lib,trial,sample,p95", rows, request("lib", responses="p95:us"))
    assert "4 rows have the same trial" in text["Each row counts as a run"]
    assert "--run trial" in text["Each row counts as a run"]


@pytest.mark.parametrize("block", ["", "day"])
def test_a_fractional_factorial_has_main_effects_and_a_remark_on_aliases(tmp_path, block) -> None:
    rng, lines = np.random.default_rng(2), ["a,b,c,day,t"]
    for day, a, b in itertools.product((1, 2, 3, 4), (-1, 1), (-1, 1)):
        lines.append(f"{a},{b},{a * b},{day},{10 + 2 * a + b + rng.normal() / 9:.4f}")
    wanted = request("a", "b", "c", responses="t:us", block=block)
    text = "\n".join(lines)
    evidence = campaign_of(tmp_path, text, wanted)
    ratios = {item.factor: item.result for item in answer_all(evidence).items}
    assert all(isinstance(ratio, stats.Ratio) for ratio in ratios.values())
    assert ratios["a"].interval.low < 12 / 8 < ratios["a"].interval.high
    (remark,) = (one for one in read(tmp_path, text, wanted).remarks if "aliased" in one.title)
    assert "4 of the 8 combinations of a, b and c" in remark.text
    assert "The effects of a, b and c are each the main effect plus" in remark.text


def test_measured_numbers_are_no_levels(tmp_path) -> None:
    rows = [f"a,{lost},{at}.5,{'xy'[at % 2]}" for at, lost in enumerate((0, 0, 0, 1, 1, 2, 0, 0))]
    imported = read(
        tmp_path, "\n".join(["lib,lost,p,host", *rows]), request("lib", responses="p:s")
    )
    assert imported.study["comparable"] == ["host"]


def test_levels_that_are_no_finite_numbers_stay_words(tmp_path) -> None:
    imported = read(tmp_path, "size,p\n1,1\ninf,1\n1,2\ninf,3\n", request("size", responses="p"))
    assert imported.study["factors"] == {"size": ["1", "inf"]}


def test_missing_and_negative_values_are_named_with_their_lines(tmp_path) -> None:
    text = "lang,power,t\nc,1.5,1\nc,nan,2\npy,-2,3\npy,-0.0,\n"
    imported = read(tmp_path, text, request("lang", responses="power:W t:s"))
    found = {one.title: one.text for one in imported.remarks}
    unequal = {"Unequal missing values of power", "Unequal missing values of t"}
    assert set(found) - unequal == {
        "Rows without power", "Negative values of power", "Rows without t"
    }  # fmt: skip
    assert unequal <= set(found)
    expected = "mine.csv has no number for power in 1 of 4 rows (line 3)."
    assert expected in found["Rows without power"]
    assert "(line 4). Ratios are undefined" in found["Negative values of power"]
    assert "(line 5)" in found["Rows without t"]


SERIES = (
    "time,lang,power\n2026-11-20 10:00:00,c,1.2\n2026-11-20 10:00:01,c,1.3\n"
    "2026-11-20 10:00:02,c,1.2\n2026-11-20 11:00:00,py,2\n2026-11-20 11:00:01,py,3\n"
)


def test_a_few_rows_at_a_constant_step_are_samples_and_no_runs(tmp_path) -> None:
    with pytest.raises(
        UsageError, match="3 steps between neighbouring rows of a treatment are 1 s long, .*--run"
    ):
        read(tmp_path, SERIES)
    accepted = replace(request(), rows_are_runs=True)
    assert read(tmp_path, SERIES, accepted).runs.height == 5
    elapsed = "elapsed_ms,lang,power\n" + "".join(f"{100 * i},c,{i}\n" for i in range(5))
    with pytest.raises(UsageError, match="are 100 long"):
        read(tmp_path, elapsed)
    # Runs that alternate, and runs of different lengths, are runs whatever column has their times.
    alternating = "time,lang,power\n" + "".join(
        f"{60 * i},{'c' if i % 2 else 'py'},{i}\n" for i in range(9)
    )
    assert read(tmp_path, alternating).runs.height == 9
    uneven = "time,lang,power\n" + "".join(f"{60 * i + i * i},c,{i}\n" for i in range(9))
    assert read(tmp_path, uneven).runs.height == 9


def test_equal_rows_and_levels_that_differ_only_in_case_are_named_at_the_top(tmp_path) -> None:
    text = "lang,rep,power\nrest,1,1\nrest,2,1.1\nREST,1,1\ngrpc,3,2\ngrpc,3,2\n"
    remarks = {remark.title: remark for remark in read(tmp_path, text).remarks}
    assert "1 row equal to an earlier row in every column (line 6)" in remarks["Repeated rows"].text
    assert "rest, REST" in remarks["Levels of lang with similar names"].text
    assert all(remark.at_top for remark in remarks.values())
    assert "Repeated rows" not in {
        remark.title for remark in read(tmp_path, "lang,power\nc,1\nc,1\n").remarks
    }, "equal rows without a column that tells runs apart"


def test_values_that_often_mean_missing_are_named_at_the_top(tmp_path) -> None:
    text = "lang,p50\nrest,-1\nrest,1.3\nrest,1.4\ngrpc,0.8\n"
    (negative,) = read(tmp_path, text, request(responses="p50:ms")).remarks
    assert negative.at_top and "-1 or 0 for a missing value" in negative.text
    (zero,) = read(tmp_path, text.replace("-1", "0"), request(responses="p50:ms")).remarks
    assert zero.at_top and "a p50 of 0 in 1 of 4 rows (line 2)" in zero.text
    counted = read(
        tmp_path, text.replace("-1", "0").replace("p50", "lost"), request(responses="lost")
    )
    assert counted.remarks == (), "0 is a count like any other"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            '{"results":[{"command":"rest","times":[0.5]},\n{"command":"grpc","times":[1]}]}',
            "hyperfine",
        ),
        ('{\n "metrics": {\n  "http_req_duration": {"med": 1.0}\n }\n}', "k6"),
        ('{"count":200,\n"latencyDistribution":[{"percentage":50}]}', "ghz"),
        ("Running 10s test @ http://127.0.0.1/\n  2 threads and 8 connections\n", "wrk"),
        ('\tCommand being timed: "./server"\n\tUser time (seconds): 0.5\n', "GNU time"),
    ],
)
def test_output_of_a_tool_is_named_with_the_way_to_a_table(tmp_path, text: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"this is .*{name}.*, not a table. .*run"):
        read(tmp_path, text)


def test_json_over_several_lines_is_no_ndjson_and_compression_is_named(tmp_path) -> None:
    with pytest.raises(UsageError, match="this is JSON, not CSV"):
        read(tmp_path, '{"rows":[{"a":1},\n{"a":2}]}\n')
    with pytest.raises(UsageError, match=r"compressed \(gzip\); decompress it"):
        read(tmp_path, b"\x1f\x8b\x08\x00")


def test_rows_of_units_and_of_means_are_named(tmp_path) -> None:
    with pytest.raises(UsageError, match="row of units: .*--response power:W"):
        read(tmp_path, "lang,power\n,(W)\nc,1\nc,2\n")
    with pytest.raises(UsageError, match="line 4: lang: .* summary of others"):
        read(tmp_path, "lang,rep,power\nc,1,1\nc,2,2\n,Average,1.5\n")


@pytest.mark.parametrize(
    ("header", "rows", "factor", "words"),
    [
        ("lang,p", "a,1 a,2 b,1 b,2 Mean,1.5", "lang", 'line 6: lang: "Mean" looks like a summary'),
        ("name,p", "x,1 x,2 x_stddev,0.7", "name", 'line 4: name: "x_stddev" looks like'),
        ("lang,p,time_unit", "a,1,us a,2,us b,1,ms b,2,ms", "lang", "time_unit has us and ms, so"),
        (
            "lang,sample_measured_value,iteration_count",
            "a,1,1 a,2,2 b,1,1 b,2,2",
            "lang",
            "total of iteration_count",
        ),
        ("lang,p", "a,true a,false", "lang", "Write 1 for true and 0 for false"),
        ("lang,p", "1,a,1 2,a,2 3,b,1", "lang", "numbers of rows, as in tables of R"),
        ("lang,,p,", "a,1,1,1 a,1,1,1", "lang", "2 columns have no name"),
        ('"lang" "p"', '"1""a"1', "lang", "separated by spaces"),
    ],
)
def test_rows_that_are_no_comparable_runs_are_refused(tmp_path, header, rows, factor, words):
    text = "\n".join([header, *rows.split()])
    response = next((name for name in header.split(",") if name.startswith("sample")), "p")
    with pytest.raises(UsageError, match=re.escape(words)):
        read(tmp_path, text, request(factor, responses=response))


@pytest.mark.parametrize(
    ("name", "texts", "levels"),
    [
        ("kernel", ("6.6", "6.12"), ["6.6", "6.12"]),
        ("setup", ("6.6", "6.10"), ["6.6", "6.10"]),
        ("commit", ("1e5", "100000"), ["1e5", "100000"]),
        ("share", ("0.50", "0.25"), [0.25, 0.5]),
        ("rate", ("1.0", "0.25"), [0.25, 1.0]),
        ("kernel", ("5", "3"), [3, 5]),
    ],
)
def test_versions_and_commits_stay_texts(tmp_path, name, texts, levels) -> None:
    rows = "\n".join(f"{text},{at}" for at, text in enumerate(texts * 2))
    imported = read(tmp_path, f"{name},p\n{rows}", request(name, responses="p:s"))
    assert imported.study["factors"] == {name: levels}


@pytest.mark.parametrize(
    ("response", "first", "has_ratios"),
    [("t:°C", 40, False), ("snr_db", 20, False), ("snr_db", -20, True), ("power:W", 20, True)],
)
def test_ratios_without_a_meaning_are_named(tmp_path, response, first, has_ratios) -> None:
    name = response.partition(":")[0]
    rows = [("a", first), ("a", 41), ("b", 60), ("b", 61)]
    remarks = titles(tmp_path, f"lang,{name}", rows, request("lang", responses=response))
    assert (f"Ratios of {name}" not in remarks) == has_ratios


def campaign_of(folder, text: str, wanted: table.TableRequest):
    """Import a table that is known to have runs as rows, and return its evidence."""
    folder.mkdir(exist_ok=True)
    path = folder / "mine.csv"
    path.write_text(text)
    imported = table.read(path, replace(wanted, rows_are_runs=True))
    return gather(writing.write(imported, folder / "c", {"study": "csv"}, {}))


@pytest.mark.parametrize("keep", [0.0, 0.97])
def test_correlated_rows_of_one_block_give_no_interval_and_decide_nothing(tmp_path, keep) -> None:
    rng = np.random.default_rng(5)
    lines = ["lang,t"]
    for lang in ("c", "py"):
        error = 0.0
        for _ in range(300):
            error = keep * error + rng.normal()
            lines.append(f"{lang},{100 + error + 5 * (lang == 'py'):.4f}")
    evidence = campaign_of(tmp_path, "\n".join(lines), request(responses="t:us"))
    (answer,) = answer_all(evidence).items
    if keep:
        assert isinstance(answer.result, dependent_rows.Dependent)
        assert isinstance(answer.by_ranks, dependent_rows.Dependent)
        assert "correlated (0.9" in str(answer.result) and "--run COL" in str(answer.result)
    else:
        assert isinstance(answer.result, stats.Ratio)


def test_a_difference_that_is_only_a_rounding_error_is_none(tmp_path) -> None:
    text = "lang,rep,t\nc,1,-1\nc,2,1.3\nc,3,1.4\npy,1,0.8\npy,2,0\npy,3,0.9\n"
    evidence = campaign_of(tmp_path, text, request(responses="t:ms", block="rep"))
    answers = answer_all(evidence)
    (answer,) = answers.differences()
    assert 0 < abs(answer.interval.estimate) < 1e-15, "the sums differ in their last digit"
    first = answered_study(evidence, answers).headline.first
    assert first is not None
    assert (first.outcome, first.level_title) == ("undecided", "py")
    assert first.statement.is_rounding and first.statement.level_title == "py"
    assert " the same for py and c (" in Sentences("answers").claim(first.statement)


@pytest.mark.parametrize(
    ("name", "unit", "direction"),
    [
        *((name, "", "higher") for name in ("req_per_s", "rate_hz", "qps", "throughput", "Req/s")),
        *((name, "", "higher") for name in ("msgs_per_ms", "requests/sec", "tput_mbps", "avgRps")),
        *(("rate", unit, "higher") for unit in ("1/s", "Hz", "Mbit/s", "msg/s", "kHz", "B/s")),
        *((name, "", "lower") for name in ("p50_ms", "p99", "latency", "ms", "rss_kib")),
        *((name, "", "lower") for name in ("errors", "lost_pct", "errors_per_s", "respTimeMs")),
        *(("x", unit, "lower") for unit in ("ms", "µs", "J", "W", "MiB", "J/s", "Wh")),
        *((name, "", "") for name in ("score", "rate", "metric_value", "accuracy", "hits")),
        ("uptime", "s", ""),
        ("received", "MB", ""),
    ],
)
def test_the_name_and_the_unit_of_a_column_give_its_better_direction(name, unit, direction) -> None:
    assert direction_of(name, unit) == direction


SERVERS = "server,day,p99_ms,rps,score\n" + "".join(
    f"{server},{day},{1000 / speed + day / 50},{speed + day % 3},{speed / 10 + day % 2}\n"
    for day in range(8)
    for server, speed in (("go", 100), ("rust", 200))
)


def test_a_rate_counts_for_the_higher_level_and_an_unknown_direction_for_none(tmp_path) -> None:
    wanted = request("server", responses="p99_ms:ms rps", block="day")
    evidence = campaign_of(tmp_path / "known", SERVERS, wanted)
    winner = winner_of(evidence)
    assert (winner.winner, winner.loser, winner.better, winner.responses) == ("rust", "go", 2, 2)
    wanted = request("server", responses="p99_ms:ms score", block="day")
    imported = read(tmp_path, SERVERS, wanted)
    assert any("Unknown: score;" in remark.text for remark in imported.remarks)
    assert imported.columns["p99_ms"]["title"] == "p99_ms", "as in the table"
    evidence = campaign_of(tmp_path / "unknown", SERVERS, wanted)
    winner = winner_of(evidence)
    assert not winner.has_direction and (winner.winner, winner.responses) == ("", 2)
    (higher,) = (group for group in winner.groups if group.group.startswith("higher "))
    assert (higher.responses, higher.side) == (("score",), "rust")
    assert "higher score: rust" in headline(evidence, answer_all(evidence))
    stated = replace(wanted, higher_is_better=("score",))
    winner = winner_of(campaign_of(tmp_path / "stated", SERVERS, stated))
    assert winner.winner == "rust" and winner.better == winner.responses == 2


def winner_of(evidence: Evidence) -> Winner:
    first = answered_study(evidence, answer_all(evidence)).headline.first
    assert first is not None and first.winner is not None
    return first.winner


@pytest.mark.parametrize(
    ("higher", "lower", "words"),
    [
        (("p95_ms",), (), '--higher-is-better: unknown response "p95_ms"'),
        (("rps",), ("rps",), "named in --higher-is-better and in --lower-is-better"),
    ],
)
def test_a_direction_without_a_response_is_refused(tmp_path, higher, lower, words) -> None:
    wanted = request("server", responses="p99_ms:ms rps", block="day")
    with pytest.raises(UsageError, match=words):
        read(tmp_path, SERVERS, replace(wanted, higher_is_better=higher, lower_is_better=lower))


def test_rows_without_any_response_count_as_rows_without_each(tmp_path) -> None:
    text = "lang,t,power\nc,1,1\nc,,\nc,,2\npy,2,\npy,3,4\n"
    remarks = read(tmp_path, text, request(responses="t:s power:W")).remarks
    found = {remark.title: remark.text for remark in remarks}
    assert "no number for t in 2 of 5 rows (lines 3, 4)" in found["Rows without t"]
    assert "no number for power in 2 of 5 rows (lines 3, 5)" in found["Rows without power"]


@pytest.mark.parametrize("level", ["None", "null", "NA", "nan", "-"])
def test_a_word_for_nothing_is_a_level(tmp_path, level: str) -> None:
    text = f"auth,power\n{level},1\n{level},2\nbasic,3\nbasic,#N/A\n"
    imported = read(tmp_path, text, request("auth"))
    assert imported.study["factors"] == {"auth": [level, "basic"]}
    assert imported.runs["power"].to_list() == [1.0, 2.0, 3.0, None]


def test_names_of_runs_that_restart_in_each_level_are_runs_of_their_level(tmp_path) -> None:
    rows = [f"{lang},{run},{run + sample}" for lang in "ab" for run in (1, 2) for sample in (0, 2)]
    imported = read(tmp_path, "\n".join(["lang,run,power", *rows]), request("lang", run="run"))
    assert imported.runs["run"].to_list() == ["a 1", "a 2", "b 1", "b 2"]
    assert imported.runs["power"].to_list() == [2.0, 3.0, 2.0, 3.0]
    (remark,) = imported.remarks
    assert "2 of 2 names occur in several" in remark.text and "at one level of lang" in remark.text


@pytest.mark.parametrize(
    ("header", "tool"),
    [
        ("metric_name,timestamp,metric_value,url", "k6's CSV"),
        ("duration (ms),status,error", "ghz's CSV"),
        ("timeStamp,elapsed,label,responseCode", "JMeter's log"),
        ("response-time,DNS+dialup,status-code,offset", "hey's CSV"),
        ("request-start,request-duration,status", "oha's CSV"),
    ],
)
def test_a_log_of_requests_is_refused_by_its_columns(tmp_path, header: str, tool: str) -> None:
    columns = header.split(",")
    text = "\n".join([header, *(",".join([str(row)] * len(columns)) for row in (1, 1, 2, 2))])
    wanted = table.TableRequest(((columns[0], ""),), (columns[1],))
    with pytest.raises(UsageError, match=f"columns of {re.escape(tool)}, .* --run COL"):
        read(tmp_path, text, wanted)
    accepted = read(tmp_path, text, replace(wanted, rows_are_runs=True))
    assert accepted.runs.height == 4


@pytest.mark.parametrize("order", ["alternating", "random"])
def test_a_log_that_mixes_treatments_at_a_constant_step_is_no_table_of_runs(tmp_path, order):
    rng = np.random.default_rng(1)
    labels = ["c", "py"] * 60 if order == "alternating" else rng.permutation(["c", "py"] * 60)
    text = "elapsed_ms,lang,power\n" + "".join(
        f"{10 * at},{lang},{rng.normal(9):.5f}\n" for at, lang in enumerate(labels)
    )
    with pytest.raises(UsageError, match="steps between .* long, .*--run COL"):
        read(tmp_path, text)


def test_a_log_at_uneven_times_is_remarked_at_the_top(tmp_path) -> None:
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.exponential(size=100))
    text = "timestamp,lang,power\n" + "".join(
        f"{time:.6f},{lang},{rng.normal(9):.5f}\n"
        for time, lang in zip(times, rng.permutation(["c", "py"] * 50), strict=True)
    )
    (remark,) = read(tmp_path, text).remarks
    assert remark.title == "Each row counts as a run" and remark.at_top
    unordered = read(tmp_path, "timestamp,lang,power\n" + "\n".join(sorted(text.split("\n")[1:])))
    assert unordered.remarks == (), "sorted as texts, so the times are in no order"


def test_a_count_of_errors_does_not_mark_failed_rows(tmp_path) -> None:
    rows = [f"{'cpy'[at % 2]},{at % 3},{at}" for at in range(12)]
    assert read(tmp_path, "\n".join(["lang,errors,power", *rows])).remarks == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lang|block|power\nc|1|2\nc|2|3\n", 'separated by "\\|". Separate them with commas'),
        ('lang,power\nc,"1.500,0"\nc,"1.600,0"\n', "with decimal points"),
        ("cpp,0,0.8\ncpp,1,0.9\n", "found numbers instead of names of columns .cpp, 0, 0.8."),
    ],
)
def test_the_cause_of_an_unreadable_table_is_named(tmp_path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, text)


def test_a_condition_on_empty_cells_is_named(tmp_path) -> None:
    text = "lang,error,power\nc,,1\nc,,2\nc,timeout,3\n"
    imported = read(tmp_path, text, replace(request(), where=(("error", ""),)))
    assert [one.why for one in imported.set_aside] == ["error is not empty (--where)"]


def test_a_factor_named_like_one_of_measured_studies_keeps_its_name() -> None:
    assert model_words.factor_title("rate_hz") == "rate per sender"
    assert model_words.factor_title(table.factor("rate_hz")) == "rate_hz"
    assert model_words.level_title(table.factor("rate_hz"), 50, {}) == "50 Hz"
