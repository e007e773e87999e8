"""Net energies by the two recipes, rows and provenance as the store wants them."""

from __future__ import annotations

import pytest

from wattwire import imports
from wattwire.run.results.schema import describe

SECOND = "experiment_data_Sat_Mar__2_00:40:59_UTC_2019"
ARM_FIRST = "experiment_data_Mon_18_Feb_16:28:25_UTC_2019"
HEADER = (
    "source,platform,measured_node,ipc,language,repetition,run,samples,energy_raw_j,min_w,max_w,"
    "time_client_s,user_client_s,sys_client_s,time_server_s,user_server_s,sys_server_s,"
    "mrss_kb,mpf,vcs,elapsed_s,exit_status\n"
)


def energies(imported, column="energy_j.client.0"):
    if column not in imported.runs.columns:
        return {}
    pairs = zip(imported.runs["run"], imported.runs[column], strict=True)
    return {run: value for run, value in pairs if value is not None}


def whys(imported):
    return [one.why for one in imported.set_aside]


def test_idle_power_is_subtracted_for_the_runs_own_client_time(study, tree):
    tree.energy([30.0] * 20)
    tree.time(19.5)
    tree.time(28.7, "server")
    assert energies(study.read(tree.root, "right")) == {
        "intel-client-01-grpc-go": pytest.approx(600 - 23 * 19.5)
    }


def test_the_authors_subtract_it_for_the_printed_time(study, tree):
    tree.energy([30.0] * 20)
    tree.time(19.5)
    tree.energy([2.0] * 8, run="go/grpc", at=ARM_FIRST, node="arm/client")
    tree.time(8.0, at=ARM_FIRST, node="arm/client")
    found = energies(study.read(tree.root, "authors"))  # the tables print 28 s and 10 s
    assert found["intel-client-01-grpc-go"] == pytest.approx(600 - 23 * 28)
    assert found["arm-client-01-grpc-go"] == pytest.approx(16 - 1.5 * 10)


@pytest.mark.parametrize(
    ("samples", "seconds", "why"),
    [
        (1, 2.3, "fewer than 3 samples"),
        (2, 2.0, "fewer than 3 samples"),
        (896, 26.0, "read on for longer than the client ran"),
        (3, 860.0, "read for less time than the client ran"),
    ],
)
def test_energies_that_cannot_be_told_stay_missing(study, tree, samples, seconds, why):
    tree.energy([30.0] * samples)
    tree.time(seconds)
    imported = study.read(tree.root, "right")
    assert energies(imported) == {}
    assert any(why in told for told in whys(imported))
    assert imported.runs["verdict"].to_list() == ["valid"]  # its time is still a result
    assert len(energies(study.read(tree.root, "authors"))) == 1


@pytest.mark.parametrize("samples", [59, 60, 62])
def test_a_sample_at_either_end_and_two_per_cent_of_drift_are_allowed(study, tree, samples):
    tree.energy([30.0] * samples)
    tree.time(60.4)
    assert len(energies(study.read(tree.root, "right"))) == 1


def test_without_the_clients_time_a_run_is_unknown_and_has_no_net_energy(study, tree):
    tree.energy([30.0] * 20)
    imported = study.read(tree.root, "right")
    assert imported.runs["verdict"].to_list() == ["invalid"]
    assert "no client time" in imported.reasons["intel-client-01-grpc-go"]
    assert energies(imported) == {} and "energy_raw_j.client.0" in imported.runs.columns


def test_a_pass_is_a_block_and_repetitions_count_by_date(study, tree):
    for at in (SECOND, "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"):
        for run in ("go/grpc", "php/rest"):
            tree.time(4.0 if at == SECOND else 5.0, run=run, at=at)
    tree.resources(5)
    runs = study.read(tree.root, "right").runs
    assert runs["run"].to_list() == [
        "intel-client-01-grpc-go", "intel-client-01-rest-php",
        "intel-client-02-grpc-go", "intel-client-02-rest-php", "intel-resources-01-grpc-go",
    ]  # fmt: skip
    assert runs["block"].to_list() == [1, 1, 2, 2, 3]
    assert runs["elapsed_s.client.0"].to_list()[:4] == [5.0, 5.0, 4.0, 4.0]


@pytest.mark.parametrize("recipe", ["right", "authors"])
def test_the_store_takes_the_rows_and_every_value_has_its_file(study, tree, recipe):
    tree.energy([30.0] * 20)
    tree.time(19.5)
    tree.time(20.0, "server", at=SECOND)
    tree.resources(900)
    imported = study.read(tree.root, recipe)
    known = describe(imported.runs.columns)
    campaign = imports.write(imported, tree.root / "campaign", {"study": "x"}, known)
    assert campaign.summary().height == 3
    assert campaign.columns["energy_j.client.0"]["unit"] == "J"
    told = imported.provenance.filter(imported.provenance["column"] == "energy_raw_j.client.0")
    assert told["rows_used"].to_list() == [20]
    assert told["files"].to_list()[0][0].endswith("energy_server/go/grpc/go.txt")
    for path in {file for files in imported.provenance["files"] for file in files}:
        assert (tree.root / path).is_file(), path


def test_a_table_alone_is_enough(study, tmp_path, tree):
    stamp = "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"
    rows = [
        f"energy,intel,client,grpc,go,1,{stamp},20,600.0,28,33,19.5,1,0.5,28.4,1,1,,,,,",
        f"energy,intel,server,rest,php,1,{stamp},0,,,,4.5,1,0.5,,,,,,,,",
        f"resources,intel,client,grpc,go,1,{stamp},,,,,,,,,,,120,7,9,14.5,0",
        f"resources,intel,server,grpc,go,1,{stamp},,,,,,,,,,,130,8,3,16.5,1",
        f"energy,intel,client,grpc,cobol,1,{stamp},20,600.0,28,33,19.5,1,0.5,28.4,1,1,,,,,",
        "resources,intel,client,rpc,php,1,yesterday,,,,,,,,,,,120,7,9,14.5,0",
        f"resources,intel,client,rest,php,1,{stamp},,,,,,,,,,,,,,,",
    ]
    path = tmp_path / "per_run.csv"
    path.write_text(HEADER + "\n".join(rows) + "\n")
    for source in (path, tmp_path):
        imported = study.read(source, "right")
        assert energies(imported)["intel-client-01-grpc-go"] == pytest.approx(600 - 23 * 19.5)
        runs = {row["run"]: row for row in imported.runs.to_dicts()}
        assert runs["intel-resources-01-grpc-go"]["memory_max_kib.server.0"] == 130
        assert "energy_samples.server.0" not in imported.runs.columns  # 0 samples are none
        assert sorted(one.path for one in imported.set_aside) == [
            f"per_run.csv, line {line}" for line in (6, 7, 8)
        ]


def test_files_go_before_the_table_and_the_table_fills_what_they_lack(study, tree):
    stamp = "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"
    tree.energy([30.0] * 20)
    row = f"energy,intel,client,grpc,go,1,{stamp},20,999.0,28,33,19.5,1,0.5,28.4,1,1,,,,,\n"
    tree.put("per_run.csv", HEADER + row)
    found = study.read(tree.root, "right").runs.to_dicts()
    assert len(found) == 1
    assert found[0]["energy_raw_j.client.0"] == 600.0
    assert found[0]["elapsed_s.server.0"] == 28.4
