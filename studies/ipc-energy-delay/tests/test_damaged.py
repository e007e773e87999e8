"""Files of that layout with anything in them: the reader sets them aside and never fails."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattwire import imports
from wattwire.run.results.schema import describe

PASS = "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"
PLACES = (
    f"intel/client/{PASS}/energy_server/go/grpc/go.txt",
    f"intel/client/{PASS}/performance_server/java/jax_ws_rpc/java.txt",
    f"intel/client_with_performance_client/{PASS}/performance_client/go/grpc/go.txt",
    f"intel/resource_usage/{PASS}/resource_usage_local/php/rest/php.txt",
    "intel/statistics_client/grpc.txt",
    "intel/measurements/client/grpc_energy.txt",
    "arm/measurements/grpc_client_resources.txt",
    "arm/measurements/time/rest.txt",
    "per_run.csv",
)
TIME = b"\nreal\t0m14.774s\nuser\t0m1.000s\nsys\t0m0.100s\n"
RESOURCES = (
    b"\tUser time (seconds): 1.00\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:16.63\n"
    b"\tMaximum resident set size (kbytes): 157292\n\tVoluntary context switches: 136621\n"
)
SHEET = b"csharp go java javascript php python ruby\n1 2 3 4 5 6 7\n\t1.5\tNaN\t0\t2\t3\t4\t5\n"
ENERGY = b"30.1\n31.2\n30.0\n"
TABLE = (
    "source,platform,measured_node,ipc,language,repetition,run,samples,energy_raw_j,min_w,max_w,"
    "time_client_s,user_client_s,sys_client_s,time_server_s,user_server_s,sys_server_s,mrss_kb,"
    f"mpf,vcs,elapsed_s,exit_status\nenergy,intel,client,grpc,go,1,{PASS},20,600,28,33,19.5,1,0.5,"
    "28.4,1,1,,,,,\n"
).encode()
GOOD = (ENERGY, TIME, RESOURCES, SHEET, TABLE)


def damaged() -> st.SearchStrategy[bytes]:
    """Good content that was cut, spliced, encoded otherwise or overwritten; or any bytes."""
    good = st.sampled_from(GOOD)
    cut = st.builds(lambda text, at: text[: at % (len(text) + 1)], good, st.integers(0, 400))
    spliced = st.builds(
        lambda text, at, junk: text[: at % len(text)] + junk + text[at % len(text) :],
        good, st.integers(0, 400), st.binary(max_size=20),
    )  # fmt: skip
    wide = st.builds(lambda text, code: text.decode().encode(code), good,
                     st.sampled_from(["utf-16", "utf-32", "utf-8-sig"]))  # fmt: skip
    numbers = st.lists(st.floats() | st.integers(), max_size=6).map(
        lambda values: "".join(f"{value}\n" for value in values).encode()
    )
    return st.one_of(good, cut, spliced, wide, numbers, st.binary(max_size=200), st.just(b""))


@settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(contents=st.lists(damaged(), min_size=len(PLACES), max_size=len(PLACES)))
def test_whatever_the_files_hold_each_gives_a_value_or_is_set_aside(study, tmp_path, contents):
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    for place, content in zip(PLACES, contents, strict=True):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(content)
    # One sound run more, so that there is always something to tell.
    sound = root / f"intel/client/{PASS}/performance_client/ruby/rest/ruby.txt"
    sound.parent.mkdir(parents=True)
    sound.write_bytes(TIME)
    for recipe in study.reader.recipes:
        imported = study.read(root, recipe)
        used = {file for files in imported.provenance["files"] for file in files}
        left = {one.path.partition(", line")[0] for one in imported.set_aside}
        for place in PLACES[:-1]:
            assert place in used | left, place
        assert all(one.why for one in imported.set_aside)
        told = [asdict(one) for one in (*imported.checks, *imported.remarks, *imported.set_aside)]
        json.dumps(told, allow_nan=False, default=str).encode("utf-8")


@pytest.mark.parametrize("content", [b"", b"\x00" * 500, b"\xff\xfe\x00", b"real\t0m1"])
def test_a_run_of_damaged_files_only_is_unknown_with_a_reason(study, tree, content):
    tree.put(PLACES[0], content)
    imported = study.read(tree.root, "right")
    assert imported.runs["verdict"].to_list() == ["invalid"]
    assert imported.reasons == {"intel-client-01-grpc-go": "none of its files holds a value"}


@pytest.mark.parametrize("content", [b"30.0\n\xff\n", b"\x0030.0\n", ENERGY])
def test_what_is_read_beside_damage_can_be_stored(study, tree, content):
    tree.put(PLACES[0], content)
    odd = tree.root / f"intel/client/{PASS}/energy_server/go/rest/\udcff.md"  # no text at all
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"1.0\n")
    tree.time(3.2)
    imported = study.read(tree.root, "right")
    known = describe(imported.runs.columns)
    assert imports.write(imported, tree.root / "c", {"study": "x"}, known).summary().height == 1


def test_what_is_no_plain_file_is_named_and_not_opened(study, tree, aside):
    tree.time(4.0)
    pipe = tree.root / PLACES[0]
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    lost = tree.root / PLACES[1]
    lost.parent.mkdir(parents=True)
    lost.symlink_to(Path("nowhere"))
    whys = aside(study.read(tree.root, "right"))
    assert whys[PLACES[0]] == whys[PLACES[1]] == "not a plain file"
