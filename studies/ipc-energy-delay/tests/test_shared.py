"""The authors' own data, where they lie beside the repository: what must come out, comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire.imports import Match

SHARED = Path(__file__).resolve().parents[4] / "shared" / "replication"
EXPECTED = SHARED / "expected_georgiou.json"
SOURCES = {"tree": SHARED / "raw_georgiou", "table": SHARED / "georgiou_runs.csv", "both": SHARED}
pytestmark = pytest.mark.skipif(
    not (EXPECTED.is_file() and all(path.exists() for path in SOURCES.values())),
    reason="needs ../shared/replication beside the repository: the data are not part of it",
)
MATCHES = {
    "exact": Match.EXACT,
    "exact without idle subtraction": Match.BY_SEARCH,
    "within_1pct": Match.WITHIN_1_PERCENT,
    "no": Match.DIFFERS,
    "exact (rounded or cut)": Match.EXACT,
    "no data": Match.NOT_COMPUTABLE,
}
SHORT = {"mrss": "MRSS", "mpf": "MPF", "vcs": "VCS"}


@pytest.fixture(scope="module", params=list(SOURCES))
def imported(request, study):
    return study.read(SOURCES[request.param], "right")


@pytest.fixture(scope="module")
def expected():
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def checks(imported, study):
    titles = {title: name for name, title in study.naming.LANGUAGE_TITLES.items()}
    technologies = {title: name for name, title in study.naming.IPC_TITLES.items()}
    return {
        (
            c.group.removeprefix("Table "),
            technologies[c.place["technology"]],
            titles[c.place["language"]],
            c.place["column"],
        ): c
        for c in imported.checks
    }


def test_energies_of_table_4_have_the_verdicts_known_and_their_medians(checks, expected):
    for row in expected["energy"]:
        for node, data in row["data"].items():
            found = checks["4", row["ipc"], row["language"], f"energy {node} (J)"]
            assert found.match is MATCHES[data["match"]], found
            assert float(found.published) == row[f"energy_{node}_j"]
            assert f"median {data['median_raw_j']:.10g} J" in found.explanation
            if data["match"] == "exact":
                assert found.searched == 0 and not found.weak
                assert found.value == pytest.approx(data["raw_minus_idle_x_published_time"])


def test_times_of_table_4_are_exact_where_the_first_run_has_them(checks, expected):
    for row in expected["energy"]:
        found = checks["4", row["ipc"], row["language"], "time (s)"]
        exact = row["time"]["match_first_run"]
        assert (found.match is Match.EXACT) == exact, found
        assert found.value == row["time"]["first_run_s"]
        assert float(found.published) == row["time_s"]
        total = checks["4", row["ipc"], row["language"], "total (J)"]
        assert (total.match is Match.EXACT) == row["total_consistent"], total


def test_resources_of_table_7_have_the_verdicts_known_and_their_medians(checks, expected):
    for row in expected["resources"]:
        column = f"{SHORT[row['metric']]} {row['role']}"
        found = checks["7", row["ipc"], row["language"], column]
        assert found.match is MATCHES[row["raw_match"]], found
        assert float(found.published) == row["value_thousands"]
        if row["raw_median"] is None:
            assert found.value is None
        else:
            assert found.value == pytest.approx(row["raw_median"] / 1000)
        if found.match is Match.EXACT and row["value_thousands"] < 100:
            assert found.weak, found


def test_explanations_known_are_found_in_the_data(checks):
    php = checks["4", "grpc", "php", "energy server (J)"]
    assert "12834.4" in php.explanation and "the client's net energy" in php.explanation
    lost = checks["7", "grpc", "php", "MPF client"]
    assert "41921 with a digit lost" in lost.explanation
    go = checks["4", "grpc", "go", "time (s)"]
    assert go.value == 28.0 and "median of the client 14" in go.explanation


def test_what_is_found_stands_as_remarks(imported):
    titles = " · ".join(remark.title for remark in imported.remarks)
    for words in (
        "medians behind the energies of Table 4", "medians behind Table 7",
        "time is that of the first run", "Totals that are not", "Ratios that", "Runs that are not",
        "meter could not tell", "idle power that is subtracted",
    ):  # fmt: skip
        assert words in titles, words


def test_the_raw_sample_gives_each_run_with_its_oddities(study):
    imported = study.read(SOURCES["tree"], "right")
    assert imported.runs.height == 124
    failed = imported.runs.filter(imported.runs["verdict"] == "failed")["run"].to_list()
    assert "arm-client-01-rpc-csharp" in failed  # its time is the one that Table 5 prints
    order = next(f for f in imported.remarks if f.title.startswith("The order of the runs"))
    assert order.rows[0]["passes"] == 6
    digits = next(f for f in imported.remarks if f.title.startswith("The ARM sheets"))
    assert digits.rows[0]["same last 2 digits"] > 10 * digits.rows[0]["expected by chance"]
    assert next(f for f in imported.remarks if f.title.startswith("Sheets with more")).rows


def test_the_padded_sheet_is_named_where_a_printed_number_comes_near_it(study):
    imported = study.read(SOURCES["tree"], "right")
    place = {"technology": "RPC", "language": "Java", "column": "energy client (J)"}
    (found,) = (c for c in imported.checks if c.group == "Table 5" and c.place == place)
    assert found.match is Match.DIFFERS and found.published == "73.3"
    assert "gives 67.7: median 454.7 J of the padded sheet" in found.explanation


def test_the_sample_and_the_table_give_the_same_values_of_the_same_runs(study):
    sample = study.read(SOURCES["tree"], "right").runs
    table = study.read(SOURCES["table"], "right").runs
    both = study.read(SOURCES["both"], "right").runs
    passes = {"intel-client-01", "intel-resources-01"}
    mine = {row["run"]: row for row in sample.to_dicts()}
    compared = 0
    for row in table.to_dicts():
        if "-".join(row["run"].split("-")[:3]) not in passes:
            continue
        for name in {*sample.columns} & {*table.columns}:
            given = mine[row["run"]][name], row[name]
            if name.endswith(".0") and None not in given:
                assert given[0] == pytest.approx(given[1]), (row["run"], name)
                compared += 1
    assert compared > 300
    assert both.height == table.height + 40  # the ARM passes, which the table has not
