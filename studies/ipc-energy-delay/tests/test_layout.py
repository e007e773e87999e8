"""The authors' folders and files, each oddity in a tree of its own."""

from __future__ import annotations

import datetime

import pytest

from wattwire.model.errors import UsageError

FIRST = "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"


def row(imported, run):
    return imported.runs.filter(imported.runs["run"] == run).to_dicts()[0]


@pytest.mark.parametrize(
    ("name", "month", "day", "hour"),
    [
        ("experiment_data_Fri_Mar__1_18:39:10_UTC_2019", 3, 1, 18),
        ("experiment_data_Wed_Feb_27_07:02:30_UTC_2019", 2, 27, 7),
        ("experiment_data_Mon_18_Feb_16:28:25_UTC_2019", 2, 18, 16),
        ("experiment_data_Mon_18_Feb_16_28_25_UTC_2019", 2, 18, 16),
        ("experiment_data_Fri_Mar__1_18%3A39%3A10_UTC_2019", 3, 1, 18),
    ],
)
def test_both_forms_of_dates_are_read_and_copies_without_colons(study, name, month, day, hour):
    found = study.observed.stamp(name)
    assert (found.year, found.month, found.day, found.hour) == (2019, month, day, hour)


@pytest.mark.parametrize(
    "name", ["experiment_data", "experiment_data_Fri_Mar_32_18:39:10_UTC_2019", "old_1_Mar", ""]
)
def test_a_folder_without_a_date_has_none(study, name):
    assert study.observed.stamp(name) is None


def test_the_samples_of_the_client_lie_in_energy_server_and_are_the_clients(study, tree):
    tree.energy([30.5, 31.25, 40.0, 30.0])
    tree.time(4.2)
    tree.energy([26.0, 27.0, 29.0], node="intel/server")
    tree.time(3.1, node="intel/server_with_performance_client")
    imported = study.read(tree.root, "right")
    client, server = (
        row(imported, "intel-client-01-grpc-go"),
        row(imported, "intel-server-01-grpc-go"),
    )
    assert client["energy_raw_j.client.0"] == pytest.approx(131.75)
    assert client["energy_raw_j.server.0"] is None and client["energy_samples.client.0"] == 4
    assert client["elapsed_s.client.0"] == pytest.approx(4.2)
    assert client["cpu_s.client.0"] == pytest.approx(1.75)
    assert server["energy_raw_j.server.0"] == pytest.approx(82.0)
    assert (client["metered_node"], server["metered_node"]) == ("client", "server")


def test_times_stand_behind_captured_output_of_any_length(study, tree):
    tree.time(75.5, "server", before="answered a call\n" * 200_000)
    imported = study.read(tree.root, "right")
    assert row(imported, "intel-client-01-grpc-go")["elapsed_s.server.0"] == pytest.approx(75.5)


def test_an_empty_energy_file_is_missing_and_never_zero(study, tree, aside):
    tree.energy([])
    tree.time(4.0)
    imported = study.read(tree.root, "authors")
    assert "energy_raw_j.client.0" not in imported.runs.columns
    assert aside(imported)[f"intel/client/{FIRST}/energy_server/go/grpc/go.txt"] == (
        "energy file without a sample (the authors' 0, missing)"
    )


def test_a_line_that_is_no_number_leaves_the_whole_sum_unknown(study, tree, aside):
    path = tree.energy([30.0, 30.0, 30.0])
    path.write_text("30.0\n3O.0\n30.0\n30.0\n")
    tree.time(3.0)
    imported = study.read(tree.root, "right")
    assert "energy_raw_j.client.0" not in imported.runs.columns
    assert any("no number" in why for why in aside(imported).values())


def test_javas_rpc_has_a_name_of_its_own(study, tree):
    tree.energy([30.0] * 5, run="java/jax_ws_rpc")
    tree.time(5.0, run="java/jax_ws_rpc")
    imported = study.read(tree.root, "right")
    assert row(imported, "intel-client-01-rpc-java")["factor.middleware"] == "rpc"


def test_servers_without_a_time_leave_it_missing(study, tree, aside):
    tree.energy([30.0] * 5, run="php/rpc")
    tree.time(5.0, run="php/rpc")
    tree.put(f"intel/client/{FIRST}/performance_server/php/rpc/php.txt", "")
    tree.put(f"intel/client/{FIRST}/performance_server/ruby/rpc/ruby.txt", "warning: Fixnum\n")
    tree.time(6.0, run="ruby/rpc")
    imported = study.read(tree.root, "right")
    assert "elapsed_s.server.0" not in imported.runs.columns
    whys = aside(imported)
    assert whys[f"intel/client/{FIRST}/performance_server/php/rpc/php.txt"] == "empty file"
    assert "no lines of time" in whys[f"intel/client/{FIRST}/performance_server/ruby/rpc/ruby.txt"]


def test_resources_of_both_sides_are_one_run_also_from_a_file_with_a_wrong_name(study, tree):
    tree.resources(4321, "remote", "javascript/rest", name="go.txt")
    tree.resources(1234, "local", "javascript/rest")
    found = row(study.read(tree.root, "right"), "intel-resources-01-rest-javascript")
    assert (found["memory_max_kib.client.0"], found["memory_max_kib.server.0"]) == (4321, 1234)
    assert found["faults_minor.server.0"] == 777 and found["switches_voluntary.client.0"] == 55
    assert found["elapsed_s.client.0"] == 3723.0 and found["cpu_s.client.0"] == 1.5
    assert found["metered_node"] == "none"


def test_of_several_files_only_the_one_of_the_language_counts(study, tree, aside):
    tree.energy([30.0] * 4)
    stray = tree.put(f"intel/client/{FIRST}/energy_server/go/grpc/java.txt", "99.0\n" * 4)
    tree.time(4.0)
    imported = study.read(tree.root, "right")
    assert row(imported, "intel-client-01-grpc-go")["energy_raw_j.client.0"] == 120.0
    assert aside(imported)[stray.relative_to(tree.root).as_posix()].startswith("not the file")


def test_summaries_and_their_swapped_labels_are_set_aside(study, tree, aside):
    tree.time(4.0)
    tree.put(f"intel/client/{FIRST}/graph_data/energy_server.txt", "Language:grpc,Protocol:go\n")
    tree.put(f"intel/client/{FIRST}/graph_data/kernel_server.txt", "Language:go\n")
    whys = aside(study.read(tree.root, "right"))
    assert "wrong way round" in whys[f"intel/client/{FIRST}/graph_data/energy_server.txt"]
    assert "wrong way" not in whys[f"intel/client/{FIRST}/graph_data/kernel_server.txt"]


def test_unknown_languages_and_undated_folders_are_named(study, tree, aside):
    tree.time(4.0)
    tree.time(4.0, run="cobol/grpc")
    tree.put("intel/client/experiment_data_old/energy_server/go/grpc/go.txt", "1.0\n")
    whys = aside(study.read(tree.root, "right"))
    assert (
        "neither a language"
        in whys[f"intel/client/{FIRST}/performance_client/cobol/grpc/cobol.txt"]
    )
    assert "no date" in whys["intel/client/experiment_data_old"]


def test_a_client_that_failed_gives_no_energy_and_its_run_is_not_used(study, tree):
    tree.energy([30.0] * 5)
    tree.time(5.0, before="Unhandled Exception: HttpRequestException: Connection refused\n")
    imported = study.read(tree.root, "right")
    found = row(imported, "intel-client-01-grpc-go")
    assert (found["verdict"], found["outcome"], found["used"]) == ("failed", "died", False)
    assert "energy_j.client.0" not in imported.runs.columns
    assert "Connection refused" in imported.reasons["intel-client-01-grpc-go"]


def test_a_package_may_lie_some_levels_deeper(study, tree):
    tree.time(4.0)
    deeper = tree.root / "a" / "b"
    deeper.mkdir(parents=True)
    (tree.root / "intel").rename(deeper / "intel")
    assert study.read(tree.root, "right").runs.height == 1


def test_a_folder_with_nothing_of_it_is_refused_in_words(study, tree):
    tree.put("intel/readme.txt", "nothing")
    with pytest.raises(UsageError, match="found no folder intel or arm with passes"):
        study.read(tree.root, "right")
    (tree.root / "intel" / "client").mkdir()
    with pytest.raises(UsageError, match="no file of a run"):
        study.read(tree.root, "right")


def test_clock_times_of_servers_are_read_in_their_three_forms(study):
    told = {
        "2019/03/01 20:42:03 Serving": (20, 42),
        "1.2.3.4 - - [01/Mar/2019 21:20:19] GET": (21, 20),
        "Mar 01, 2019 8:42:31 PM io.grpc": (20, 42),
    }
    for text, (hour, minute) in told.items():
        assert study.files.clock(text) == datetime.datetime(
            2019, 3, 1, hour, minute, study.files.clock(text).second
        )
    assert study.files.clock("Feb 31, 2019 8:42:31 PM") is None
