"""How printed numbers are judged, on data of a known kind."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from wattwire.imports import Match

SERVICE, TOPIC = "cpp_py_ros2_service", "cpp_py_ros2_pub_sub"


def checked(study, package, table: str, column: str, clients: str = "1"):
    """The check of a cell of the C++ rows at 0.05 s."""
    imported = study.read(package.root, "default")
    (found,) = [
        check
        for check in imported.checks
        if check.group == f"Table {table}"
        and check.place["column"] == column
        and (check.place["language"], check.place["interval (s)"]) == ("C++", "0.05")
        and check.place["clients"] == clients
    ]
    return found


def rows(study, table: str) -> dict[str, str]:
    """The printed row of C++, one client, 0.05 s."""
    with (study.reader.folder / "published.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["table"], row["language"], row["clients"], row["interval_s"])
            if key == (table, "cpp", "1", "0.05"):
                return row
    raise AssertionError


def service(package, repetitions: int = 2, planned: int = 0) -> list[str]:
    every = range(planned or repetitions)
    package.table(SERVICE, [(0, r, "cpp", 0.05, 1) for r in every])
    return [f"{SERVICE}/run_0_repetition_{r}" for r in range(repetitions)]


def test_a_mean_that_gives_the_printed_digits_is_exact(package, study) -> None:
    printed = float(rows(study, "8")["energy_j"])
    for run in service(package):
        package.energy(run, watts=printed / 180)
    check = checked(study, package, "8", "energy (J)")
    assert check.match is Match.EXACT and not check.weak
    assert check.value == pytest.approx(printed) and check.recipe
    assert check.default_value == pytest.approx(printed)


def test_two_decimals_near_one_are_a_weak_match(package, study) -> None:
    printed = float(rows(study, "8")["power_w"])
    for run in service(package):
        package.energy(run, watts=printed)
    check = checked(study, package, "8", "power (W)")
    assert check.match is Match.EXACT and check.weak


@pytest.mark.parametrize(
    ("factor", "match"), [(1.009, Match.WITHIN_1_PERCENT), (1.011, Match.DIFFERS)]
)
def test_near_and_far(package, study, factor: float, match: Match) -> None:
    printed = float(rows(study, "8")["energy_j"])
    for run in service(package):
        package.energy(run, watts=factor * printed / 180)
    assert checked(study, package, "8", "energy (J)").match is match


def test_a_part_of_a_treatments_runs_computes_nothing(package, study) -> None:
    printed = float(rows(study, "8")["energy_j"])
    for run in service(package, repetitions=2, planned=3):
        package.energy(run, watts=printed / 180)
    check = checked(study, package, "8", "energy (J)")
    assert check.match is Match.NOT_COMPUTABLE and check.value is None
    assert check.explanation == "only 2 of 3 runs of this treatment are here"


def test_missing_memory_that_counts_as_zero_is_told(package, study) -> None:
    printed = float(rows(study, "8")["memory_kib"])
    runs = service(package, repetitions=20)
    for run in runs:
        package.energy(run, rows=170)
    for run in runs[1:]:
        package.memory(run, kib=(printed * 20 / 19,))
    check = checked(study, package, "8", "memory (KB)")
    assert check.match is Match.EXACT
    assert check.explanation.endswith(f"those that have hold {printed * 20 / 19:,.0f}")
    assert check.default_value == pytest.approx(printed * 20 / 19, rel=1e-4)


def test_memory_that_is_mostly_gone_is_not_judged(package, study) -> None:
    runs = service(package, repetitions=10)
    for run in runs:
        package.energy(run, rows=170)
    package.memory(runs[0])
    check = checked(study, package, "8", "memory (KB)")
    assert check.match is Match.NOT_COMPUTABLE and "1 of 10" in check.explanation


def test_another_file_of_doubled_runs_is_a_search_and_says_how_many(package, study) -> None:
    printed = float(rows(study, "9")["energy_j"])
    for at, run in enumerate(service(package)):
        right = printed / 180
        package.energy(run, "client", pid=1, watts=right if at else 0.9 * right, at=0)
        package.energy(run, "client", pid=2, watts=right, at=5_000)
    check = checked(study, package, "9", "energy (J)")
    assert check.match is Match.BY_SEARCH and check.searched == 4
    assert check.value == pytest.approx(printed)


def test_an_energy_that_is_power_times_180_is_not_claimed(package, study) -> None:
    """Sums over 45 s where 180 times the printed power is printed."""
    row = rows(study, "5")
    package.table(TOPIC, [(0, r, "cpp", 0.05, 1) for r in range(2)])
    for r in range(2):
        run = f"{TOPIC}/run_0_repetition_{r}"
        package.energy(run, pid=1, watts=0.9, rows=180)
        package.energy(run, pid=2, watts=0.3, rows=45, at=9_000)
    check = checked(study, package, "5", "energy (J)")
    assert check.match is Match.DIFFERS
    assert f"printed power × 180 s ({float(row['energy_j']) / 180:.3f} W)" in check.explanation


def test_the_paper_s_fifth_of_a_second_is_a_quarter_in_the_data(package, study) -> None:
    package.table(SERVICE, [(0, r, "cpp", 0.25, 1) for r in range(2)])
    for r in range(2):
        package.energy(f"{SERVICE}/run_0_repetition_{r}")
    imported = study.read(package.root, "default")
    (check,) = [
        c for c in imported.checks
        if c.group == "Table 8" and c.place["interval (s)"] == "0.2"
        and c.place["language"] == "C++" and c.place["clients"] == "1"
        and c.place["column"] == "energy (J)"
    ]  # fmt: skip
    assert check.value == pytest.approx(90.0)
    assert any(f.title == "An interval printed as another" for f in imported.remarks)


def test_no_test_is_made_of_a_part_of_the_runs(package, study) -> None:
    for run in service(package, repetitions=1, planned=2):
        package.energy(run)
    imported = study.read(package.root, "default")
    tests = [c for c in imported.checks if c.group in ("Tests", "Table 6")]
    assert len(tests) == 42
    assert {c.match for c in tests} == {Match.NOT_COMPUTABLE}


def test_runs_in_one_order_are_found_and_shuffled_ones_are_not(package, study) -> None:
    def order(step) -> list[str]:
        rows = [(k, r, "cpp", 0.05, k + 1) for r in range(12) for k in range(3)]
        package.table(SERVICE, rows)
        for r in range(12):
            for k in range(3):
                package.energy(f"{SERVICE}/run_{k}_repetition_{r}", at=10_000 * r + step(k, r))
        imported = study.read(package.root, "default")
        return [f.text for f in imported.remarks if f.title == "One fixed order of runs"]

    (told,) = order(lambda k, r: 400 * k)
    assert told.startswith("In 12 of 12 repetitions")
    (told,) = order(lambda k, r: 400 * ((k + r) % 3))
    assert told.startswith("In 4 of 12 repetitions")


def test_neighbours_that_drift_together_are_told(package, study) -> None:
    package.table(SERVICE, [(0, r, "cpp", 0.05, 1) for r in range(40)])
    for r in range(40):
        watts = 0.5 + 0.2 * (r >= 20)
        package.energy(f"{SERVICE}/run_0_repetition_{r}", at=1_000 * r, watts=watts)
    imported = study.read(package.root, "default")
    (row,) = [f for f in imported.remarks if f.title.startswith("How runs depend")][0].rows
    assert row["correlation of neighbours"] > 0.8 and row["runs"] == 40


def test_provenance_covers_every_number_of_the_runs(package, study) -> None:
    for run in service(package):
        package.energy(run)
        package.energy(run, "client")
        package.memory(run)
    imported = study.read(package.root, "default")
    told = set(imported.provenance.select("run", "column").rows())
    known = imported.runs.unpivot(
        index="run", on=[c for c in imported.runs.columns if c.split(".")[0] in study.values.STEMS]
    ).filter(pl.col("value").is_not_null())
    assert set(known.select("run", "variable").rows()) <= told


def test_the_authors_count_missing_memory_as_zero_and_the_default_does_not(package, study) -> None:
    runs = service(package, repetitions=5)
    for run in runs:
        package.energy(run)
    for run in runs[1:]:
        package.memory(run, kib=(100.0,))
    column = "memory_kib.server.0"
    right, authors = (study.read(package.root, recipe) for recipe in ("default", "authors"))
    assert right.runs[column].sort(nulls_last=True).to_list() == [100.0] * 4 + [None]
    assert authors.runs[column].sort().to_list() == [0.0] + [100.0] * 4
    told = authors.provenance.filter(pl.col("column") == column).sort("rows_used")
    assert told["how"][0] == "no readable file: counts as 0" and told["files"].to_list()[0] == []
    assert told["files"].to_list()[1] != []


def test_rows_recorded_after_those_that_come_out_are_told(package, study) -> None:
    with (study.reader.folder / "published.csv").open(encoding="utf-8") as file:
        of_table = [row for row in csv.DictReader(file) if row["table"] == "8"]
    printed = {row["clients"]: float(row["energy_j"]) for row in of_table
               if (row["language"], row["interval_s"]) == ("cpp", "0.05")}  # fmt: skip
    package.table(SERVICE, [(k, 0, "cpp", 0.05, k + 1) for k in range(3)])
    for k, at, share in ((0, 0, 1.0), (1, 1_000, 1.0), (2, 900_000, 0.5)):
        watts = share * printed[str(k + 1)] / 180
        package.energy(f"{SERVICE}/run_{k}_repetition_0", watts=watts, at=at)
    imported = study.read(package.root, "default")
    (found,) = [f for f in imported.remarks if f.title == "Rows recorded again after the rest"]
    assert [(row["energy"], row["rows"]) for row in found.rows] == [("exact", 2), ("differs", 1)]
