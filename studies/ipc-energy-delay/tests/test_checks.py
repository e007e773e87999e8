"""Matches on printed numbers, from small trees whose numbers are chosen here."""

from __future__ import annotations

import pytest

from wattwire.imports import Match

LANGUAGES = ["csharp", "go", "java", "javascript", "php", "python", "ruby"]
SHORT = ["C#", "Go", "Java", "JS", "PHP", "PY", "Ruby"]
RESOURCES = [f"{name}_{metric}" for metric in ("MPF", "MRSS", "VCS") for name in SHORT]


def check(imported, table, technology, language, column):
    place = {"technology": technology, "language": language, "column": column}
    found = [c for c in imported.checks if c.group == f"Table {table}" and c.place == place]
    assert len(found) == 1
    return found[0]


def remark(imported, title):
    return next((f for f in imported.remarks if f.title.startswith(title)), None)


@pytest.mark.parametrize(
    ("value", "text", "places", "slack", "match"),
    [
        (92.058, "92", 0, 0, Match.EXACT),
        (0.608, "0.6", 1, 0, Match.EXACT),
        (2.9835, "2", 0, 0, Match.EXACT),  # cut, not rounded
        (101.004, "100", 0, 0, Match.DIFFERS),
        (265.178, "266", 0, 0, Match.WITHIN_1_PERCENT),
        (319.65, "319.5", 1, 1, Match.EXACT),
        (319.65, "319.5", 1, 0, Match.WITHIN_1_PERCENT),
        (364.45, "364", 1, 1, Match.WITHIN_1_PERCENT),
        (-40.8, "28.2", 1, 1, Match.DIFFERS),
        (float("nan"), "28.2", 1, 1, Match.NOT_COMPUTABLE),
    ],
)
def test_a_value_prints_as_a_number_rounded_or_cut(study, value, text, places, slack, match):
    assert study.printed.match(value, text, places, slack) is match


@pytest.mark.parametrize(
    ("text", "places", "slack", "weak"),
    [("92", 0, 0, True), ("467", 0, 0, False), ("0.05", 2, 0, True), ("10.8", 1, 1, True),
     ("606.7", 1, 1, False)],
)  # fmt: skip
def test_few_digits_make_a_match_weak(study, text, places, slack, weak):
    assert study.printed.weak(text, places, slack) is weak


def test_every_number_of_the_four_tables_has_one_check(study, tree):
    tree.time(4.0)
    checks = study.read(tree.root, "right").checks
    rows = study.printed.load().rows.values()
    columns = [
        "energy_j", "energy_ratio", "time_s", "time_ratio", "energy_total_j",
        "memory_max_thousand_kib", "faults_minor_thousand", "switches_voluntary_thousand",
    ]  # fmt: skip
    assert len(checks) == sum(bool(row[name]) for row in rows for name in columns) == 521
    assert len({(c.group, *c.place.values()) for c in checks}) == len(checks)


def test_an_energy_is_exact_by_the_recipe_and_weak_only_where_digits_are_few(study, tree):
    # The tables print 451.5 J and 35 s; 23 W × 35 s are 805 J.
    for at, total in (("Fri_Mar__1_18:39:10", 1250.0), ("Sat_Mar__2_00:40:59", 1263.0)):
        folder = f"experiment_data_{at}_UTC_2019"
        tree.energy([total / 40] * 40, run="java/grpc", at=folder)
        tree.time(35.5, "server", run="java/grpc", at=folder)
    found = check(study.read(tree.root, "right"), 4, "gRPC", "Java", "energy client (J)")
    assert (found.match, found.weak, found.searched) == (Match.EXACT, False, 0)
    assert found.value == pytest.approx(1256.5 - 805)
    assert found.explanation == "median 1256.5 J − 23 W × 35 s (2 of 2 runs)"


def test_an_energy_one_unit_of_its_last_digit_off_agrees_and_says_so(study, tree):
    tree.energy([319.65 / 73 + 23] * 73, run="python/rpc")  # printed: 319.5 J and 73 s
    imported = study.read(tree.root, "right")
    found = check(imported, 4, "RPC", "Python", "energy client (J)")
    assert found.match is Match.EXACT and "one unit of the last digit" in found.explanation
    told = remark(imported, "The medians behind the energies of Table 4").text
    assert "1 of the printed energies agree, 1 of them to one unit" in told


def test_a_number_found_by_another_way_is_by_search_and_says_how_many_were_tried(study, tree):
    tree.energy([28.2], run="javascript/grpc")  # printed as it is: 28.2 J
    found = check(study.read(tree.root, "right"), 4, "gRPC", "JavaScript", "energy client (J)")
    assert found.match is Match.BY_SEARCH and found.searched >= 2
    assert found.recipe == "median without idle power subtracted"


def test_a_miss_says_which_idle_power_the_printed_number_takes(study, tree):
    tree.energy([27.0] * 20)  # 540 J; printed 99 J and 28 s
    found = check(study.read(tree.root, "right"), 4, "gRPC", "Go", "energy client (J)")
    assert found.match is Match.DIFFERS
    assert "takes an idle power of 15.75 W" in found.explanation


def test_a_number_near_one_with_the_other_nodes_energy_subtracted_says_so(study, tree):
    tree.energy([22560.9 / 476] * 476, run="php/grpc")  # less 23 W × 479 s: 11,543.9 J
    tree.energy([12834.0 / 476] * 476, run="php/grpc", node="intel/server")
    found = check(study.read(tree.root, "right"), 4, "gRPC", "PHP", "energy server (J)")
    assert found.match is Match.DIFFERS
    assert "the client's net energy" in found.explanation


def test_the_printed_time_is_that_of_the_first_pass(study, tree):
    for at, seconds in (("Fri_Mar__1_18:39:10", 28.49), ("Sat_Mar__2_00:40:59", 14.2)):
        tree.time(seconds, "server", at=f"experiment_data_{at}_UTC_2019")
    found = check(study.read(tree.root, "right"), 4, "gRPC", "Go", "time (s)")
    assert (found.match, found.value, found.weak) == (Match.EXACT, 28.0, True)
    assert "median of the server 21.345 s" in found.explanation


def test_a_lost_digit_is_seen(study, tree):
    rows = [[1] * 4 + [41_921_137] + [1] * 16] * 3
    tree.sheet("intel/measurements/grpc_client_resources.txt", RESOURCES, rows)
    tree.time(4.0)
    found = check(study.read(tree.root, "right"), 7, "gRPC", "PHP", "MPF client")
    assert found.match is Match.DIFFERS and "41921 with a digit lost" in found.explanation


def test_sheets_are_used_where_they_hold_more_runs_than_there_are_files(study, tree):
    tree.resources(92_400, "local", "csharp/grpc")
    rows = [[0] * 7 + [91_900] + [0] * 13, [0] * 7 + [92_100] + [0] * 13]
    tree.sheet("intel/measurements/grpc_server_resources.txt", RESOURCES, rows)
    found = check(study.read(tree.root, "right"), 7, "gRPC", "C#", "MRSS server")
    assert (found.value, found.match) == (92.0, Match.EXACT)
    assert "2 runs in the sheet measurements/grpc_server_resources.txt" in found.explanation


def test_arms_sheets_write_0_for_names_and_numbers_of_what_was_not_run(study, tree):
    names = [name if not name.startswith("C#") else "0" for name in RESOURCES]
    tree.sheet("arm/measurements/grpc_client_resources.txt", names, [["0", *[91_000] * 6] * 3])
    tree.time(4.0)
    imported = study.read(tree.root, "right")
    absent = check(imported, 8, "gRPC", "C#", "MRSS client")
    assert absent.match is Match.NOT_COMPUTABLE and "nothing was run" in absent.explanation
    assert check(imported, 8, "gRPC", "Go", "MRSS client").value == 91.0


def test_padded_rows_are_counted_and_never_used(study, tree):
    tree.sheet("intel/statistics_server/rpc.txt", LANGUAGES, [[900.0 + k] * 7 for k in range(3)])
    padded = [[900.0 + k] * 7 for k in range(5)]
    tree.sheet("intel/measurements/server/rpc_energy.txt", LANGUAGES, padded)
    tree.time(4.0)
    imported = study.read(tree.root, "right")
    told = remark(imported, "Sheets with more rows than runs").rows[0]
    assert (told["rows of the sheet"], told["runs"], told["rows without a run"]) == (5, 3, 2)
    assert told["energies that no run has"] == 14
    found = check(imported, 4, "RPC", "C#", "energy server (J)")
    assert "median 901 J − 23 W × 27 s (3 runs in the sheet" in found.explanation


def test_sheets_of_two_machines_that_end_alike_are_told(study, tree):
    intel = [[1000 * k + 37 * at for at in range(1, 22)] for k in range(1, 11)]
    other = [[3001 * k + 53 * at for at in range(1, 22)] for k in range(1, 11)]
    alike = [[5000 + value for value in row] for row in intel]
    tree.time(4.0)
    tree.sheet("intel/measurements/rest_server_resources.txt", RESOURCES, intel)
    arm = "arm/measurements/rest_server_resources.txt"
    tree.sheet(arm, RESOURCES, other)
    title = "The ARM sheets of resources end like the Intel ones"
    assert remark(study.read(tree.root, "right"), title) is None
    tree.sheet(arm, RESOURCES, alike)
    assert remark(study.read(tree.root, "right"), title).rows[0]["same last 2 digits"] == 210


def test_impossible_totals_are_told_from_the_printed_columns_alone(study, tree):
    tree.time(4.0)
    imported = study.read(tree.root, "right")
    found = check(imported, 4, "RPC", "PHP", "total (J)")
    assert found.match is Match.DIFFERS and found.value == pytest.approx(2145.1)
    assert "less than one of its parts" in found.explanation
    assert len(remark(imported, "Totals that are not").rows) == 8


def test_autocorrelation_of_a_drifting_series_is_near_one_and_of_a_constant_unknown(study):
    assert study.order.lag_one([float(k) for k in range(100)]) == pytest.approx(0.97, abs=0.01)
    assert study.order.lag_one([1.0, -1.0] * 50) == pytest.approx(-0.99, abs=0.01)
    assert study.order.lag_one([5.0] * 50) is None and study.order.lag_one([1.0, 2.0]) is None


def test_the_order_inside_passes_is_told_where_servers_print_clock_times(study, tree):
    for day, at in (("01", "Fri_Mar__1_18:39:10"), ("02", "Sat_Mar__2_18:40:59")):
        folder = f"experiment_data_{at}_UTC_2019"
        for minute, run in ((42, "go/rpc"), (55, "php/rest"), (10, "ruby/grpc")):
            stamp = f"2019/03/{day} 20:{minute}:03 up\n"
            tree.time(9.0, "server", run=run, at=folder, before=stamp)
    told = remark(study.read(tree.root, "right"), "The order of the runs is the same")
    assert told.rows == ({"order": "gRPC Ruby → RPC Go → REST PHP", "passes": 2},)
