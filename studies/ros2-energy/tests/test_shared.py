"""The authors' own data, where they lie beside the repository: what must come out, comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire.imports import Match
from wattwire.imports.agreement import number

SHARED = Path(__file__).resolve().parents[4] / "shared" / "replication"
EXPECTED = SHARED / "expected_albonico.json"
TABLE, RAW = SHARED / "albonico_runs.csv", SHARED / "raw_albonico"
pytestmark = pytest.mark.skipif(
    not (EXPECTED.is_file() and TABLE.is_file() and RAW.is_dir()),
    reason="needs ../shared/replication beside the repository: the data are not part of it",
)
COLUMNS = {"cpu": "CPU (%)", "mem": "memory (KB)", "energy": "energy (J)", "power": "power (W)"}
LANGUAGES = {"cpp": "C++", "py": "Python"}
EXACT = {Match.EXACT, Match.BY_SEARCH}


def place(row, column: str) -> tuple[str, str, str, float, str]:
    """Where a row's number is in our checks; once the paper itself prints 0.25 for its 0.2."""
    interval = 0.2 if row["interval_data"] == 0.25 else row["interval_data"]
    return (f"Table {row['table']}", LANGUAGES[row["language"]], str(row["clients"]), interval,
            column)  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imported(study):
    return study.read(SHARED, "default")


@pytest.fixture(scope="module")
def cells(imported):
    return {
        (c.group, c.place["language"], c.place["clients"], float(c.place["interval (s)"]),
         c.place["column"]): c
        for c in imported.checks
        if "column" in c.place
    }  # fmt: skip


def test_each_cell_has_the_verdict_that_is_known(expected, cells) -> None:
    """Exact where exact, by the authors' files where only those give it, never where it is not."""
    wrong = []
    for row in expected["tables"]:
        theirs = row["authors_file_choice"] or {}
        searched = row["some_file_choice"]
        for key, column in COLUMNS.items():
            at = place(row, column)
            found = cells[at].match
            if row["match"][key] == "exact" or theirs.get(f"{key}_match") == "exact":
                allowed = {Match.EXACT}
            elif searched and key in ("cpu", "energy", "power"):
                allowed = {Match.BY_SEARCH}
            elif row["match"][key].startswith("raw data"):
                allowed = {Match.NOT_COMPUTABLE}
            else:
                allowed = {Match.DIFFERS, Match.WITHIN_1_PERCENT}
            if found not in allowed:
                wrong.append((at, found, allowed))
    assert not wrong
    assert len(expected["tables"]) == 120


def test_values_are_those_of_the_recipe(expected, cells) -> None:
    for row in expected["tables"]:
        if row["match"]["energy"] != "exact":
            continue
        at = place(row, "energy (J)")
        assert cells[at].value == pytest.approx(row["data"]["energy_j"], rel=1e-9)


def test_what_two_decimals_show_is_called_weak(cells) -> None:
    for at, check in cells.items():
        if check.match in EXACT:
            assert check.weak == (at[-1] in ("CPU (%)", "power (W)")), at


def test_tables_without_data_are_not_computed(cells) -> None:
    assert {c.match for at, c in cells.items() if at[0] in ("Table 10", "Table 11")} == {
        Match.NOT_COMPUTABLE
    }


# The test's name in the list of what is known -> how ours is found: node, runs, groups.
TESTS = {
    "publisher by language, Kruskal-Wallis": ("publisher", "all", "language"),
    "subscriber by language, Kruskal-Wallis": ("subscriber", "all", "language"),
    "publisher by interval, Python": ("publisher", "Python", "interval"),
    "publisher by interval, C++": ("publisher", "C++", "interval"),
    "publisher by clients, Python": ("publisher", "Python", "clients"),
    "publisher by clients, C++": ("publisher", "C++", "clients"),
    "subscriber by interval, Python": ("subscriber", "Python", "interval"),
    "subscriber by interval, C++": ("subscriber", "C++", "interval"),
    "subscriber by clients, Python, ANOVA": ("subscriber", "Python", "clients"),
    "subscriber by clients, C++, ANOVA": ("subscriber", "C++", "clients"),
    "subscriber by clients, Python at 0.05 s, ANOVA": ("subscriber", "Python, 0.05 s", "clients"),
    "subscriber by clients, Python at 0.1 s, KW": ("subscriber", "Python, 0.1 s", "clients"),
    "subscriber by clients, Python at 1.0 s, KW": ("subscriber", "Python, 1.0 s", "clients"),
    'subscriber by clients, Python at 0.2 s and "1.0 s", ANOVA': (
        "subscriber", "Python, 0.2 s", "clients"),
    "service server by interval, C++": ("server", "C++", "interval"),
    "service server by interval, Python": ("server", "Python", "interval"),
    "service server by clients, Python, ANOVA": ("server", "Python", "clients"),
    "service server by clients, C++, KW": ("server", "C++", "clients"),
    "service client by interval, Python": ("client", "Python", "interval"),
    "service client by interval, C++": ("client", "C++", "interval"),
}  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_each_test_has_the_verdict_that_is_known(expected, imported, name: str) -> None:
    (known,) = [row for row in expected["tests"] if row["test"] == name]
    published = {float(value) for value in known["published"].values()}
    node, runs, groups = TESTS[name]
    found = [
        c for c in imported.checks
        if c.group == "Tests" and c.place["node"] == node and c.place["runs"] == runs
        and c.place["groups"] == groups and number(c.published) in published
    ]  # fmt: skip
    assert len(found) == len(published)
    match = known["verdict"]
    if match.startswith("exact only for"):
        allowed = {Match.DIFFERS}
    elif match.startswith("exact"):
        allowed = {Match.BY_SEARCH} if "IQR" in match else {Match.EXACT}
    elif match.startswith("within 1 %"):
        allowed = {Match.WITHIN_1_PERCENT}
    else:
        allowed = {Match.DIFFERS}
    assert {c.match for c in found} <= allowed


def test_dunn_and_shapiro(expected, imported) -> None:
    dunn = [c for c in imported.checks if c.group == "Table 6"]
    (known,) = [row for row in expected["tests"] if row["test"].startswith("Table 6")]
    assert {c.match for c in dunn} == {Match.EXACT}
    assert sorted(c.value for c in dunn) == pytest.approx(
        sorted(pair["data"] for pair in known["published"]), rel=1e-9
    )
    shapiro = [c for c in imported.checks if c.place.get("test", "").startswith("Shapiro")]
    assert {c.match for c in shapiro} == {Match.BY_SEARCH}
    assert all("publisher, Python, 2 clients, without 0.1" in c.recipe for c in shapiro)
    assert all(c.searched > 100 for c in shapiro)


def test_the_findings_rest_on_rows(imported) -> None:
    found = {remark.title: remark for remark in imported.remarks}
    mixed = found["Means mixed from recordings of different length"]
    assert sum(row["short recordings"] for row in mixed.rows) == 75
    assert len(found["Energy that is power times 180 s"].rows) >= 6
    assert len(found["Missing runs counted as zero"].rows) == 18
    assert [row["printed"] for row in found["A p-value that cannot be"].rows] == ["2.32"]
    (row,) = [
        r for r in found["Statistics that are close to the other node's"].rows
        if r["printed"] == "205.24"
    ]  # fmt: skip
    assert "205.419" in row["other node"]
    assert len(found["Recordings that run on past their run"].rows) == 10
    assert all(r["all in one order"] == r["repetitions"] for r in
               found["One fixed order of runs"].rows)  # fmt: skip
    assert all(f.rows for f in imported.remarks)


def test_the_authors_recipe_gives_the_authors_powers(study) -> None:
    imported = study.read(TABLE, "authors")
    powers = imported.runs.filter(imported.runs["factor.language"] == "python")
    at_first = powers.filter(
        (powers["factor.interval_s"] == 0.05) & (powers["factor.clients"] == 1)
        & (powers["factor.pattern"] == "topic")
    )["power_w.publisher.0"]  # fmt: skip
    assert round(float(at_first.mean()), 2) == 0.71


def test_the_raw_sample_imports_and_computes_no_table_from_a_part(study) -> None:
    imported = study.read(RAW, "default")
    assert imported.runs.height == 1800
    usable = imported.runs.filter(imported.runs["verdict"] == "valid")
    assert usable.height == 15
    assert {c.match for c in imported.checks} == {Match.NOT_COMPUTABLE}
    why = {one.why for one in imported.set_aside}
    assert {"recording shorter than the run", "after the run's 180 s", "copy of a node's recording",
            "power of the whole machine, not of a node"} <= why  # fmt: skip
    older = imported.provenance.explode("files")["files"].str.starts_with("at_commit_")
    assert older.sum() > 0
