"""The package's layout with its oddities, each in a small tree of its own."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.imports import Imported
from wattwire.model.errors import UsageError

TOPIC, TENTH = "cpp_py_ros2_pub_sub", "cpp_py_ros2_pub_sub_0_1"
SERVICE, ACTION = "cpp_py_ros2_service", "cpp_py_ros2_action"
RUN = f"{SERVICE}/run_0_repetition_0"
NAME = "service-run_0_repetition_0"


def one_run(package) -> None:
    package.table(SERVICE, [(0, 0, "py", 0.25, 1)])


def why(imported: Imported) -> dict[str, list[tuple[int, str]]]:
    """What was set aside: file name -> (rows, reason)."""
    found: dict[str, list[tuple[int, str]]] = {}
    for one in imported.set_aside:
        found.setdefault(one.path.rpartition("/")[2], []).append((one.rows, one.why))
    return found


def value(imported: Imported, column: str, run: str = NAME):
    row = imported.runs.filter(pl.col("run") == run).row(0, named=True)
    return row.get(column)


def test_a_plain_run_gives_energy_over_its_time(package, study) -> None:
    one_run(package)
    package.energy(RUN, watts=0.5, use=0.01)
    package.energy(RUN, "client", watts=0.25, use=0.02)
    package.memory(RUN, kib=(100.0, 300.0))
    imported = study.read(package.root, "default")
    assert value(imported, "energy_j.server.0") == pytest.approx(90.0)
    assert value(imported, "power_w.server.0") == pytest.approx(0.5)
    assert value(imported, "cpu_share.client.0") == pytest.approx(0.02 * 8)
    assert value(imported, "memory_kib.server.0") == pytest.approx(200.0)
    assert value(imported, "memory_kib.client.0") is None
    assert value(imported, "power_w") == pytest.approx(0.75)
    assert value(imported, "memory_kib_total") is None, "one of the two is missing"
    assert value(imported, "factor.interval_s") == 0.25 and value(imported, "verdict") == "valid"


def test_every_value_has_its_file_and_rows(package, study) -> None:
    one_run(package)
    package.energy(RUN, rows=190)
    package.memory(RUN)
    imported = study.read(package.root, "default")
    told = {row["column"]: row for row in imported.provenance.iter_rows(named=True)}
    energy = told["energy_j.server.0"]
    assert energy["files"] == [f"exp_runners/experiments/{RUN}/energy-server-100.csv"]
    assert (energy["rows_used"], energy["rows_left_out"]) == (180, 10)
    assert told["memory_kib.server.0"]["rows_used"] == 2
    assert "energy_j" not in told, "one node alone is not both"


def test_a_second_shorter_recording_is_not_the_run(package, study) -> None:
    one_run(package)
    package.energy(RUN, pid=900, watts=0.5, at=0)
    package.energy(RUN, pid=100, watts=0.9, rows=45, at=90_000)
    imported = study.read(package.root, "default")
    assert value(imported, "power_w.server.0") == pytest.approx(0.5)
    assert why(imported)["energy-server-100.csv"] == [(45, "recording shorter than the run")]


def test_a_short_recording_first_gives_way_to_the_full_one(package, study) -> None:
    one_run(package)
    package.energy(RUN, pid=1, watts=0.9, rows=1, at=0)
    package.energy(RUN, pid=2, watts=0.5, at=14)
    right = study.read(package.root, "default")
    authors = study.read(package.root, "authors")
    assert value(right, "power_w.server.0") == pytest.approx(0.5)
    assert value(authors, "power_w.server.0") == pytest.approx(0.9), "their first file"


def test_only_a_short_recording_leaves_the_value_missing(package, study) -> None:
    one_run(package)
    package.energy(RUN, rows=50)
    imported = study.read(package.root, "default")
    assert value(imported, "energy_j.server.0") is None
    assert value(imported, "verdict") == "invalid" and imported.reasons[NAME]


def test_of_two_full_recordings_the_earliest_counts(package, study) -> None:
    one_run(package)
    package.energy(RUN, pid=1, watts=0.7, at=5_000)
    package.energy(RUN, pid=2, watts=0.5, at=0)
    imported = study.read(package.root, "default")
    assert value(imported, "power_w.server.0") == pytest.approx(0.5)
    assert why(imported)["energy-server-1.csv"][0][1].startswith("another recording of the run")


def test_rows_after_the_run_are_left_out(package, study) -> None:
    one_run(package)
    package.energy(RUN, watts=[0.5] * 180 + [9.0] * 3000)
    package.energy(RUN, "client", at=1)
    right = study.read(package.root, "default")
    authors = study.read(package.root, "authors")
    assert value(right, "energy_j.server.0") == pytest.approx(90.0)
    assert (3000, "after the run's 180 s") in why(right)["energy-server-100.csv"]
    assert value(authors, "energy_j.server.0") == pytest.approx(90.0 + 27_000.0)
    assert value(authors, "power_w.server.0") == pytest.approx(0.5), "9 W is not below 3 W"
    assert any(f.title.startswith("Recordings that run on") for f in right.remarks)


def test_a_client_that_waited_for_its_server_is_not_the_run(package, study) -> None:
    """It was recorded for an hour before the server began, and once more with it."""
    one_run(package)
    package.energy(RUN, "client", pid=1, watts=0.01, rows=3600, at=0)
    package.energy(RUN, "client", pid=2, watts=0.5, at=4_000)
    package.energy(RUN, "server", pid=3, watts=0.25, at=4_003)
    right, authors = (study.read(package.root, recipe) for recipe in ("default", "authors"))
    assert value(right, "power_w.client.0") == pytest.approx(0.5)
    assert value(authors, "power_w.client.0") == pytest.approx(0.01)
    assert why(right)["energy-client-1.csv"][-1][1].startswith("began without the other node")


def test_a_recording_that_runs_on_alone_is_nobodys_run(package, study) -> None:
    one_run(package)
    package.energy(RUN, "client", watts=0.01, rows=2700)
    imported = study.read(package.root, "default")
    assert value(imported, "power_w.client.0") is None
    assert why(imported)["energy-client-100.csv"][-1][1].startswith("runs on past its run")


def test_a_header_inside_a_file_is_no_sample(package, study) -> None:
    one_run(package)
    path = package.energy(RUN, watts=0.5)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:50], lines[0], "", *lines[50:]]) + "\n")
    imported = study.read(package.root, "default")
    assert value(imported, "energy_j.server.0") == pytest.approx(90.0)
    assert why(imported)["energy-server-100.csv"] == [
        (1, "no number: a header line inside the file")
    ]


def test_a_gap_between_samples_is_counted_by_its_time(package, study) -> None:
    one_run(package)
    path = package.energy(RUN, watts=1.0)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:60] + lines[61:]) + "\n")
    right = study.read(package.root, "default")
    authors = study.read(package.root, "authors")
    assert value(right, "energy_j.server.0") == pytest.approx(180.0)
    assert value(authors, "energy_j.server.0") == pytest.approx(179.0), "they sum without a step"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("energy-server-7.csv", "", "empty file"),
        ("energy-server-7.csv", "Date,CPU Utilization,CPU Power\n", "a header and no row"),
        ("energy-server-7.csv", "a,b,c\n1,2,3\n", "a header that is not known"),
        ("energy-server-7.csv", "Date,CPU Utilization,CPU Power\nx,y,z\n", "no row with a time"),
        ("energy-server", "Date,Total Power\n1,2\n", "power of the whole machine"),
        ("energy-server-powerjoular.csv", "Date\n", "power of the whole machine"),
        ("energy-server-powerjoular.csv-7.csv", "Date\n", "copy of a node's recording"),
        ("energy-client.csv", "Execution Time\n1\n", "energy of the whole processor"),
        ("server-cpu-mem.csv", "exec\n", "memory is one line of the launcher's map"),
        ("server-cpu.csv", "exec,label,timestamp,cpu\n0,x,1, 2.0\n", "CPU by ps"),
        ("client-py-0.05-1.log", "hello\n", "what a node printed"),
        ("notes.txt", "?\n", "not known to this reader"),
        ("cpu-mem-server.csv", "exec,label,timestamp,cpu,mem\n0,x,1,0.0,2756.0\n", "memory is one"),
        ("cpu-mem-server.csv", "", "empty file"),
    ],
)
def test_what_is_no_recording_is_set_aside_with_its_reason(
    package, study, name: str, text: str, reason: str
) -> None:
    one_run(package)
    package.energy(RUN, watts=0.5)
    package.put(f"{RUN}/{name}", text)
    imported = study.read(package.root, "default")
    assert value(imported, "energy_j.server.0") == pytest.approx(90.0)
    assert value(imported, "memory_kib.server.0") is None
    assert why(imported)[name][0][1].startswith(reason)


def test_memory_of_three_fields_under_eight_names_is_set_aside(package, study) -> None:
    one_run(package)
    package.energy(RUN)
    header = "run,package,interval,language,exec_time,num_clients,cpu_percentage,memory_usage"
    package.memory(RUN, text=f"{header}\n2024-11-26 17:39:04.610,0.0,89374720\n")
    imported = study.read(package.root, "default")
    assert value(imported, "memory_kib.server.0") is None
    assert why(imported)["cpu-mem-server.csv"][0][1].startswith("3 fields under eight names")


def test_samples_without_memory_are_left_out_of_its_mean(package, study) -> None:
    one_run(package)
    package.memory(RUN, kib=(100.0, 0.0, 200.0))
    right, authors = (study.read(package.root, recipe) for recipe in ("default", "authors"))
    assert value(right, "memory_kib.server.0") == pytest.approx(150.0)
    assert value(authors, "memory_kib.server.0") == pytest.approx(100.0)
    assert why(right)["cpu-mem-server.csv"] == [(1, "no memory in this row")]


def test_memory_that_was_overwritten_comes_from_an_older_version(package, study) -> None:
    one_run(package)
    package.energy(RUN)
    package.put(f"{RUN}/cpu-mem-server.csv", "exec,label,timestamp,cpu,mem\n0,x,1,0.0,2756.0\n")
    older = type(package)(package.root / "at_commit_1")
    older.memory(RUN, kib=(400.0,))
    imported = study.read(package.root, "default")
    assert value(imported, "memory_kib.server.0") == pytest.approx(400.0)
    rows = imported.provenance.filter(pl.col("column") == "memory_kib.server.0")
    assert rows["files"][0][0].startswith("at_commit_1/")


def test_a_run_without_a_folder_is_unknown_and_said_so(package, study) -> None:
    package.table(SERVICE, [(0, 0, "py", 0.25, 1), (0, 1, "py", 0.25, 1)])
    package.energy(RUN)
    imported = study.read(package.root, "default")
    assert "not in this copy" in imported.reasons["service-run_0_repetition_1"]
    assert not imported.runs.filter(pl.col("run").str.ends_with("repetition_1"))["used"][0]


def test_a_folder_of_no_run_is_set_aside(package, study) -> None:
    one_run(package)
    package.energy(RUN)
    package.energy(f"{SERVICE}/run_77_repetition_0")
    imported = study.read(package.root, "default")
    assert why(imported)["run_77_repetition_0"] == [(0, "folder of no run in run_table.csv")]


def test_the_two_topic_experiments_are_one_pattern_and_keep_their_runs_apart(
    package, study
) -> None:
    package.table(TOPIC, [(0, 0, "py", 0.05, 1)])
    package.table(TENTH, [(0, 0, "py", 0.1, 1)])
    package.energy(f"{TOPIC}/run_0_repetition_0", watts=0.5)
    package.energy(f"{TENTH}/run_0_repetition_0", watts=0.25)
    imported = study.read(package.root, "default")
    assert value(imported, "power_w.publisher.0", "pub_sub-run_0_repetition_0") == 0.5
    assert value(imported, "power_w.publisher.0", "pub_sub_0_1-run_0_repetition_0") == 0.25
    assert set(imported.runs["factor.pattern"]) == {"topic"}


def test_the_authors_log_tells_which_file_they_took(package, study) -> None:
    package.table(TOPIC, [(0, 0, "py", 0.05, 1)])
    run = f"{TOPIC}/run_0_repetition_0"
    package.energy(run, pid=1, watts=0.51234567, at=0)
    package.energy(run, pid=2, watts=0.71234567, rows=45, at=9_000)
    log = package.root / "data-analysis/stats.log"
    log.parent.mkdir()
    log.write_text("Group: py\n[0.71234567 0.33333333]\n", encoding="utf-8")
    name = "pub_sub-run_0_repetition_0"
    authors, right = (study.read(package.root, r) for r in ("authors", "default"))
    assert value(authors, "power_w.publisher.0", name) == pytest.approx(0.71234567)
    assert value(right, "power_w.publisher.0", name) == pytest.approx(0.51234567)


def test_positions_follow_the_clock_and_blocks_are_repetitions(package, study) -> None:
    package.table(SERVICE, [(k, r, "py", 0.25, k + 1) for r in (0, 1) for k in (0, 1)])
    for k, r, at in ((0, 0, 900), (1, 0, 0), (0, 1, 2000), (1, 1, 3000)):
        package.energy(f"{SERVICE}/run_{k}_repetition_{r}", at=at)
    runs = study.read(package.root, "default").runs
    assert runs["run"].to_list()[0] == "service-run_1_repetition_0"
    assert runs.select("block", "position").rows() == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize("inside", ["", "exp_runners", "exp_runners/experiments"])
def test_the_package_is_found_from_its_folders(package, study, inside: str) -> None:
    one_run(package)
    package.energy(RUN)
    assert value(study.read(package.root / inside, "default"), "energy_j.server.0") == 90.0


def test_a_folder_with_nothing_known_is_refused_in_words(tmp_path, study) -> None:
    with pytest.raises(UsageError, match=r"nothing here that this study can read.*albonico_runs"):
        study.read(tmp_path, "default")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "says which run is which treatment"),
        ("a,b\n1,2\n", "no column __run_id"),
        ("__run_id,msg_interval,language,num_clients\nrun_0_repetition_0,x,py,1\n", "unreadable"),
        ("", "not a table"),
    ],
)
def test_a_bad_run_table_is_refused_in_words(package, study, text, words: str) -> None:
    package.energy(RUN)
    if text is not None:
        package.put(f"{SERVICE}/run_table.csv", text)
    with pytest.raises(UsageError, match=words):
        study.read(package.root, "default")


def test_an_unknown_recipe_is_refused_with_the_known_ones(package, study) -> None:
    with pytest.raises(UsageError, match='unknown recipe "autors"; known: authors, default'):
        study.reader.read(package.root, "autors")
