"""Test that `exec` recovers known CPU time of any command or running system, without leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import wattwire
from tests.end_to_end.conftest import NOBODY, environment_at, interpreter_of
from wattwire.model.layers import LOST_EVENTS
from wattwire.run.layers.recordings import HEADER, HEADER_BYTES, MAGIC, NOTES_BYTES
from wattwire.store import Campaign

pytestmark = pytest.mark.slow

BUSY = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass\n"
TREE = f"""
busy='{BUSY.strip()}'
"$PYTHON" -c "$busy" 0.6 &
for _ in 1 2 3 4 5 6; do "$PYTHON" -S -c 'sum(range(1500000))'; done
wait
"""
COUNTER = """
import sys, time
for i in range(40):
    print(f"sent {10 * (i + 1)} messages", flush=True)
    time.sleep(0.005)
"""
STEADY = """
import time
open('ready', 'w').close()
while True:
    used = time.process_time() + 0.03
    while time.process_time() < used: pass
    time.sleep(0.03)
"""
RUNGS = ("v2", "none")
CPU_PARTS = ("cpu_s", "cpu_user_s", "cpu_system_s")
BASELINE = "0.4s"


@pytest.fixture
def measured(cli, tmp_path):
    """Return a function that runs `exec --json` and returns the result, table and folder."""

    def run(*arguments: str, **environment: str):
        folder = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        options = ("--json", "--campaign", folder, "--baseline", BASELINE, "--no-report")
        result = cli("exec", *options, *arguments, **environment)
        table = json.loads(result.out) if result.out.startswith("{") else None
        return result, table, folder

    return run


def tokens(folder: Path) -> list[str]:
    return [json.loads(p.read_text())["token"] for p in folder.glob("runs/*/run.json")]


def left_of(folder: Path) -> list[str]:
    """Return the live processes with the token of a run in `folder`."""
    return processes_of(*tokens(folder))


def processes_of(*tokens: str) -> list[str]:
    """Return the live processes with one of the tokens."""
    marks = [f"WATTWIRE_RUN={token}".encode() for token in tokens]
    assert marks
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environ.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(mark in variables for mark in marks):
            found.append(environ.parent.name)
    return found


def by_name(table: dict, name: str) -> dict:
    return next(row for row in table["processes"] if row["process"] == name)


def started(code: str, folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-S", "-c", code], cwd=folder)
    while not (folder / "ready").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("rung", RUNGS)
def test_a_load_of_known_cpu_time_comes_out(measured, rung):
    result, table, folder = measured(
        "--repeat", "3", "--", sys.executable, "-c", BUSY, "0.5", WATTWIRE_CGROUP=rung
    )
    assert result.code == 0, result.err
    cpu = table["whole"]["cpu_s"]
    # The interpreter itself needs a few hundredths of a second.
    assert 0.5 <= cpu["mean"] < 0.7
    assert cpu["low"] < cpu["mean"] < cpu["high"] and cpu["n"] == 3
    processes = pl.read_parquet(folder / "processes.parquet", glob=False)
    row = processes.filter(pl.col("pid").is_not_null())
    assert len(row) == 3 and row["cpu_s"].min() > 0.35
    assert (row["cpu_user_s"] + row["cpu_system_s"]).to_list() == pytest.approx(
        row["cpu_s"].to_list()
    )
    columns = json.loads((folder / "columns.json").read_text())
    assert columns["cpu_s"]["unit"] == "s"
    assert set(processes.columns) <= set(columns)
    assert left_of(folder) == []


@pytest.mark.parametrize("rung", RUNGS)
def test_children_that_come_and_go_count_in_the_whole(measured, rung):
    result, table, folder = measured(
        "--", "bash", "-c", TREE, PYTHON=sys.executable, WATTWIRE_CGROUP=rung
    )
    assert result.code == 0, result.err
    row = json.loads(next(folder.glob("runs/*/run.json")).read_text())
    usage = row["exit"]["rusage"]
    truth = (usage["user_ns"] + usage["system_ns"]) / 1e9
    assert table["whole"]["cpu_s"]["mean"] == pytest.approx(truth, rel=0.02)
    parts = sum(r["cpu_s"]["mean"] for r in table["processes"])
    assert parts == pytest.approx(table["whole"]["cpu_s"]["mean"], rel=0.02)
    assert left_of(folder) == []


def test_what_is_attached_is_measured_and_goes_on_undisturbed(measured, tmp_path):
    process = started(STEADY, tmp_path)
    try:
        result, table, folder = measured("--for", "2s", "--attach", f"pid:{process.pid}")
        assert result.code == 0, result.err
        assert process.poll() is None
        share = table["whole"]["cpu_share"]["mean"]
        # The load uses 30 ms of CPU time and then sleeps for 30 ms, so its share is at most one
        # half.
        assert 0.1 < share < 0.6
        assert table["whole"]["energy_j"] is None
        row = by_name(table, f"{Path(sys.executable).name} -c")
        assert row["cpu_s"]["mean"] == pytest.approx(table["whole"]["cpu_s"]["mean"], rel=0.05)
        assert 1 < row["pss_mean_kib"]["mean"] <= row["memory_mean_kib"]["mean"] * 1.05
    finally:
        process.kill()
        process.wait()


def test_a_process_that_ends_before_the_window_is_said_first_and_fails(cli, tmp_path):
    code = STEADY.replace(
        "while True:", "end = time.monotonic() + 8\nwhile time.monotonic() < end:"
    )
    with started(code, tmp_path) as system:
        target = ("--attach", f"pid:{system.pid}")
        result = cli("exec", "--for", "60s", *target, "--no-report", "--out", tmp_path / "out")
    assert result.code == 1
    assert re.match(
        rf"pid:{system.pid} ended .* after the window began \(--for 1 min\)", result.out
    )
    (row,) = pl.read_parquet(tmp_path / "out" / "summary.parquet").to_dicts()
    assert row["window_s"] == pytest.approx(row["ended_s.attached0"], abs=0.001)


def test_at_the_end_of_the_time_the_tree_is_interrupted_and_its_last_words_count(measured):
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('received 777 messages', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGINT, end)\nprint('up', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    result, table, folder = measured(
        "--for", "1s", "--count-from", r"received (?P<n>\d+)", "--", sys.executable, "-c", code
    )
    assert result.code == 0, result.err
    assert table["repeats"][0]["ended_by"] == "time"
    assert table["repeats"][0]["exit_code"] == 0
    assert table["whole"]["messages"]["mean"] == 777
    assert "received 777 messages" in result.err
    assert left_of(folder) == []


def test_a_stubborn_tree_is_ended_all_the_same(measured):
    code = "trap '' INT; (trap '' INT; sleep 300) & sleep 300"
    result, table, folder = measured("--for", "0.3s", "--", "bash", "-c", code)
    assert table["repeats"][0]["exit_signal"] == signal.SIGTERM
    assert "SIGTERM ended it" in result.err
    assert left_of(folder) == []


def test_messages_are_counted_as_running_total_as_sums_and_as_matches(measured):
    command = ["--", sys.executable, "-c", COUNTER]
    expected = {r"sent (?P<n>\d+)": 400, r"sent (?P<add>\d+)": 8200, r"sent \d+": 40}
    for expression, count in expected.items():
        _, table, _ = measured("--count-from", expression, *command)
        assert table["whole"]["messages"]["mean"] == count, expression
        whole = table["whole"]
        per_message_us = whole["cpu_s"]["mean"] * 1e6 / count
        assert whole["cpu_us_per_message"]["mean"] == pytest.approx(per_message_us)
    result, table, _ = measured("--count-from", "nothing like it", *command)
    assert table["whole"]["messages"] is None
    assert "no output matched" in result.err


TOTALS = """
import time
began = time.monotonic()
for at in range(1, 5):
    time.sleep(max(0.0, began + 0.5 * at - time.monotonic()))
    print("sent", int(400 * (time.monotonic() - began)), flush=True)
time.sleep(0.45)
"""


def test_a_rate_is_that_between_running_totals_and_says_how_exact_it_is(cli):
    result = cli(
        "exec", "--out", "out", "--baseline", BASELINE, "--count-from", r"sent (?P<n>\d+)",
        "--", sys.executable, "-S", "-c", TOTALS,
    )  # fmt: skip
    assert result.code == 0, result.err
    told = " ".join(result.out.split())
    row = pl.read_parquet(cli.folder / "out" / "summary.parquet", glob=False).to_dicts()[0]
    # The program sends 400 per second; the last total divided by the window would be 320.
    within = row["messages_per_s_resolution_share"]
    assert row["messages_per_s"] == pytest.approx(400, rel=2 * within)
    assert row["messages"] / row["window_s"] < 380
    assert "messages per second (±" in told
    assert "between the first and the last running total" in told
    assert "followed the last total at this rate" in told and "probably ended" not in told
    assert "Not measured: latency, loss and throughput" in told and "J (estimate)" not in told
    unmatched = cli("exec", "--out", "b", "--baseline", BASELINE, "--count-from", r"x (?P<n>\d+)",
                    "--energy-estimate", "--", "true")  # fmt: skip
    assert r'no output matched "x (?P<n>\d+)"' in unmatched.err
    assert "J (estimate)" in unmatched.out


def test_processes_that_a_command_leaves_running_are_named_since_their_output_is_cut(measured):
    """Whether a late line is counted depends on the 0.3 s after which they are killed."""
    count = ("--count-from", r"sent (?P<add>\d+)", "--", "sh", "-c")
    result, table, _ = measured(
        *count, "(echo sent 5; sleep 9; echo sent 7) & sleep 0.1; echo sent 3"
    )
    assert result.code == 0 and table["whole"]["messages"]["mean"] == 8
    assert "the command ended and left processes running" in " ".join(result.err.split())
    waits, table, _ = measured(*count, "(sleep 0.1; echo sent 5) & wait; echo sent 3")
    assert table["whole"]["messages"]["mean"] == 8 and "left processes" not in waits.err


def test_rows_stand_in_the_order_of_what_was_attached(cli, tmp_path):
    idle = started("import time\nopen('ready', 'w').close()\ntime.sleep(60)", tmp_path)
    (tmp_path / "ready").unlink()
    busy = started(STEADY, tmp_path)
    try:
        attach = [word for p in (idle, busy) for word in ("--attach", f"pid:{p.pid}")]
        result = cli("exec", "--out", "out", "--for", "0.5s", *attach)
        names = [line.split(":")[0] for line in result.out.splitlines() if "attached" in line[:9]]
        assert names == ["attached0", "attached1"], result.out
    finally:
        for process in (idle, busy):
            process.kill()
            process.wait()


def test_nodes_are_named_as_their_command_line_names_them(measured):
    node = f'"{sys.executable}" -c "{BUSY.strip()}" 0.2 --ros-args -r __node:='
    tree = f"{node}talker & {node}listener -r __ns:=/left & wait"
    _, table, _ = measured("--", "bash", "-c", tree)
    names = {row["process"] for row in table["processes"]}
    assert {"talker", "left/listener"} <= names
    assert by_name(table, "talker")["cpu_s"]["mean"] > 0.1


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(cli, tmp_path):
    folder = tmp_path / "out"
    process = cli.start("exec", "--json", "--out", str(folder), "--baseline", BASELINE,
                        "--no-report", "--",
                        "bash", "-c", "echo up; sleep 300 & sleep 300")  # fmt: skip
    assert process.stderr is not None
    assert any(line == "up\n" for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    table = json.loads(out)
    assert table["repeats"][0]["ended_by"] == "Ctrl-C"
    assert table["repeats"][0]["window_s"] > 0
    assert left_of(folder) == []
    assert "1 of 1 design run is valid" in cli("run", "--resume", folder, "--no-report").out


def test_a_repeat_that_ctrl_c_cuts_is_discarded_and_measured_again(cli, tmp_path):
    folder, script = tmp_path / "out", tmp_path / "repeat.sh"
    # The second start waits, and every other start ends at once.
    script.write_text(
        f"echo x >> {tmp_path}/starts\n"
        f'[ "$(wc -l < {tmp_path}/starts)" = 2 ] && echo cut && sleep 60\ntrue\n'
    )
    process = cli.start("exec", "--repeat", "3", "--out", str(folder), "--baseline", BASELINE,
                        "--no-report", "--", "bash", str(script))  # fmt: skip
    assert process.stderr is not None
    assert any(line == "cut\n" for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert left_of(folder) == []
    resumed = cli("run", "--resume", folder, "--no-report", "--json")
    assert resumed.code == 0, resumed.err
    campaign = Campaign(folder)
    rows = campaign.summary()
    campaign.close()
    assert rows.height == 3
    assert rows["ended_by"].to_list() == ["itself"] * 3
    assert rows["window_s"].max() < 30


def test_what_cannot_be_started_is_said_in_words(cli, tmp_path):
    quick = ("exec", "--baseline", BASELINE, "--out")
    gone = cli(*quick, tmp_path / "a", "--", "no-such-program-here")
    assert gone.code == 2 and "no-such-program-here: cannot be started" in gone.err
    plain = tmp_path / "plain.txt"
    plain.write_text("not a program")
    refused = cli(*quick, tmp_path / "b", "--", plain)
    assert refused.code == 3 and "permission denied" in refused.err
    for arguments, word in (
        (["--attach", "pid:4194304999"], "is not running here"),
        (["--attach", "cgroup:no/such/group"], "this cgroup does not exist"),
        (["--attach", "nonsense"], "allowed: pid:NUMBER"),
        (["--count-from", "(", "--", "true"], "regular expression"),
        ([], "nothing to measure"),
    ):
        wrong = cli("exec", "--out", tmp_path / "c", *arguments)
        assert wrong.code == 2 and word in wrong.err, wrong.err
    without = cli("exec", "--out", tmp_path / "d", "--attach", "unit:x", PATH=str(tmp_path))
    assert without.code == 3 and "systemd is missing" in without.err


def test_a_command_that_ends_at_once_or_fails_has_its_row(cli, measured):
    result, table, _ = measured("--", "true")
    assert result.code == 0 and table["whole"]["cpu_s"]["mean"] > 0
    assert [row["process"] for row in table["processes"]] == ["true"]
    result, table, _ = measured("--", "sh", "-c", "exit 7")
    assert result.code == 1 and table["repeats"][0]["exit_code"] == 7
    shown = cli("exec", "--out", "shown", "--baseline", BASELINE, "--", "sh", "-c", "exit 7")
    assert "exit code 7" in shown.out and "CPU s" in shown.out
    assert cli("bundle", "shown").code == 0
    with zipfile.ZipFile(cli.folder / "shown.zip") as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
    assert {"processes.csv", "summary.parquet", "README.md", "SHA256SUMS", "study.json"} <= names


LATE = """
import subprocess, sys, time
code = "import time; time.sleep(0.15); block = bytearray(80 << 20); sum(range(300000))"
subprocess.run([sys.executable, "-S", "-c", code])
"""


THREADS = """
import sys, threading, time
open('ready', 'w').close()
end_s = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end_s:
    threads = [threading.Thread(target=time.sleep, args=(0.002,)) for _ in range(4)]
    [thread.start() for thread in threads] and [thread.join() for thread in threads]
"""
RELATED = {
    "one": [sys.executable, "-S", "-c", BUSY, "0.3"],
    "tree": ["sh", "-c", TREE.replace("$PYTHON", sys.executable)],
    "threads": ["sh", "-c", f'"{sys.executable}" -S -c "$0" 0.8; true', THREADS],
    "short": ["sh", "-c", "for i in $(seq 100); do /bin/true; done; seq 9000 | sort -r | tail -1"],
    "attached": [],
}


@pytest.mark.parametrize("records", ["", "none"])
@pytest.mark.parametrize("kind", RELATED)
def test_no_part_exceeds_the_whole_and_a_lower_bound_says_so(measured, tmp_path, kind, records):
    environment = {"WATTWIRE_EXIT_RECORDS": records, "WATTWIRE_CGROUP": records}
    if kind == "attached":
        source = THREADS.replace("sys.argv[1]", "99")
        with started(source, tmp_path) as system:
            target = ("--attach", f"pid:{system.pid}")
            result, table, folder = measured("--for", "1.2s", *target, **environment)
            system.terminate()
    else:
        result, table, folder = measured("--", *RELATED[kind], **environment)
    assert result.code == 0, result.err
    processes = pl.read_parquet(folder / "processes.parquet").to_dicts()
    whole = {name: value["mean"] for name, value in table["whole"].items() if type(value) is dict}
    assert (len(processes) == 1) is (kind in ("one", "attached"))
    tick_s = 0.01
    sums = {name: sum(row[name] or 0.0 for row in processes) for name in CPU_PARTS}
    assert sums["cpu_s"] == pytest.approx(whole["cpu_s"], abs=tick_s)
    assert whole["cpu_user_s"] + whole["cpu_system_s"] == pytest.approx(whole["cpu_s"])
    for name in CPU_PARTS[1:]:
        assert sums[name] <= whole[name] + tick_s * len(processes)
    assert (whole["memory_peak_kib"] or 0) >= whole.get("memory_mean_kib", 0)
    for row in processes:
        assert row["cpu_s"] <= whole["cpu_s"] + 1e-9
        if row["pid"] is None:
            assert row["process"].startswith("(")  # a row of several says so
            continue
        assert row["process"] != "?"
        if row["cpu_user_s"] is not None:
            assert row["cpu_user_s"] + row["cpu_system_s"] == pytest.approx(row["cpu_s"])
        assert (row["memory_peak_kib"] or 0) >= (row["memory_mean_kib"] or 0)
        assert whole["memory_peak_kib"] >= (row["memory_peak_kib"] or 0)
    thread = max(processes, key=lambda row: row["threads_max"] or 0)
    if thread["threads_max"] > 1:
        is_final = kind == "threads" and not records and os.geteuid() == 0
        assert thread["switches_are_bound"] is not is_final
        # Four sleeping threads in every 2 to 10 ms; those of one time would have 8.
        assert thread["voluntary_switches"] > 50


@pytest.mark.parametrize("records", ["", "none"])
def test_the_peak_of_a_process_that_ends_between_two_scans_is_final_or_a_bound(measured, records):
    result, table, folder = measured(
        "--", sys.executable, "-S", "-c", LATE, WATTWIRE_EXIT_RECORDS=records
    )
    assert result.code == 0, result.err
    usage = json.loads(next(folder.glob("runs/*/run.json")).read_text())["exit"]["rusage"]
    peak_kib = usage["maxrss_bytes"] / 1024
    assert peak_kib > 80 << 10
    # The guard's `wait4` knows the largest process in any case.
    assert table["whole"]["memory_peak_kib"]["mean"] >= peak_kib
    assert table["whole"]["memory_peak_is_bound"] is True  # two processes ran at the same time
    rows = [row for row in table["processes"] if "memory_peak_kib" in row]
    peaks = {row["memory_peak_kib"]["mean"]: row["memory_peak_is_bound"] for row in rows}
    missing = "exit records" in result.err
    assert missing or (max(peaks) == pytest.approx(peak_kib, rel=0.02) and not any(peaks.values()))
    assert not missing or any(peaks.values())
    if records:
        assert missing


def test_a_command_of_one_process_has_one_row_with_its_final_figures(measured):
    for records in ("", "none"):
        result, table, folder = measured(
            "--", sys.executable, "-S", "-c", "sum(range(300000))", WATTWIRE_EXIT_RECORDS=records
        )
        assert result.code == 0 and "exit records" not in result.err
        document = json.loads(next(folder.glob("runs/*/run.json")).read_text())
        (row,) = table["processes"]
        usage, (repeat,) = document["exit"]["rusage"], table["repeats"]
        truth_s = (usage["user_ns"] + usage["system_ns"]) / 1e9
        assert row["cpu_s"]["mean"] == pytest.approx(truth_s, rel=0.02)
        assert repeat["cpu_s"] == pytest.approx(truth_s, rel=0.02)
        assert row["memory_peak_kib"]["mean"] == usage["maxrss_bytes"] / 1024
        assert row["memory_peak_is_bound"] is table["whole"]["memory_peak_is_bound"] is False
        # The window ends with the process and not with a scan.
        (member,) = document["members"]["command"]
        lived_s = (member["ended_ns"] - member["born_ns"]) / 1e9
        assert repeat["window_s"] == pytest.approx(lived_s, rel=1e-9)
        assert member["ended_ns"] == document["exit"]["t_ns"]


def test_a_closed_output_ends_no_measurement_and_changes_no_exit_code(cli, tmp_path):
    folder = tmp_path / "out"
    command = "for _ in 1 2 3 4 5 6 7 8; do echo word; sleep 0.1; done"
    process = cli.start("exec", "--out", folder, "--repeat", "2", "--baseline", BASELINE,
                        "--no-report", "--", "sh", "-c", command)  # fmt: skip
    assert process.stderr is not None and process.stdout is not None
    assert "repeat 1 of 2" in process.stderr.readline()  # as `2>&1 | head -1`
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0
    resumed = cli("run", "--resume", folder, "--no-report")
    assert resumed.code == 0 and "2 of 2 design runs are valid" in resumed.out


def test_a_killed_measurement_leaves_nothing_and_is_resumed(cli, tmp_path):
    folder, code = tmp_path / "out", "test -e again || { touch again; sleep 300 & sleep 300; }"
    process = cli.start("exec", "--out", folder, "--repeat", "2", "--baseline", BASELINE,
                        "--", "bash", "-c", f"echo up; {code}")  # fmt: skip
    assert process.stderr is not None
    while process.stderr.readline() != "up\n":
        assert process.poll() is None
    [(token,)] = sqlite3.connect(folder / "journal.sqlite").execute("SELECT token FROM attempt")
    process.kill()
    process.communicate(timeout=60)
    resumed = cli("run", "--resume", folder, "--no-report")
    assert resumed.code == 0, resumed.err
    assert "2 of 2 design runs are valid" in resumed.out
    assert processes_of(token) == [] and left_of(folder) == []
    attempts = pl.read_parquet(folder / "summary.parquet", glob=False)
    assert attempts["attempt"].to_list() == [2, 1] and attempts["ended_by"].unique().item()


@pytest.mark.parametrize("victim", ["agent", "guard"])
def test_a_killed_agent_or_guard_costs_one_attempt(cli, tmp_path, victim):
    folder = tmp_path / "out"
    result = cli("exec", "--out", folder, "--baseline", BASELINE, "--no-report", "--",
                 "sleep", "0.3", WATTWIRE_CRASH=f"{victim}@window")  # fmt: skip
    assert result.code == 0, result.err
    with contextlib.closing(sqlite3.connect(folder / "journal.sqlite")) as journal:
        attempts = journal.execute("SELECT verdict FROM attempt ORDER BY attempt").fetchall()
    assert attempts == [("failed",), ("valid",)]
    (document,) = [
        found
        for path in folder.glob("runs/*/run.json")
        if (found := json.loads(path.read_text()))["verdict"] == "failed"
    ]
    assert any(victim in reason["detail"] for reason in document["reasons"])
    assert left_of(folder) == []


def test_the_page_has_the_processes_and_two_measurements_are_compared(cli):
    for name, seconds in (("base", "0.2"), ("head", "0.6")):
        result = cli("exec", "--out", name, "--baseline", BASELINE, "--repeat", "3", "--",
                     sys.executable, "-c", BUSY, seconds)  # fmt: skip
        assert result.code == 0, result.err
    page = (cli.folder / "head" / "report" / "index.html").read_text()
    assert "Costs of the processes of the measured trees" in page and "CPU time in 3 ×" in page
    assert "Counts, losses, starts" not in page and "No valid run has a latency" not in page
    assert (cli.folder / "head" / "report" / "tables" / "processes.csv").is_file()
    compared = cli("compare", "base", "head")
    assert compared.code == 1 and "CPU time" in compared.out and "worse" in compared.out
    assert "command: " in cli("show", "head", "1").out
    assert cli("show", "head", "1", "--commands").out.startswith(sys.executable)
    loaded = wattwire.load(cli.folder / "head")
    assert loaded.runs["cpu_s"].min() > 0.5 and loaded.units["cpu_s"] == "s"
    assert set(loaded.processes["run"]) == set(loaded.runs["run"])


def test_a_process_that_was_attached_by_its_number_is_not_resumed(cli, tmp_path):
    process = started(STEADY, tmp_path)
    try:
        cli(
            "exec", "--out", "out", "--for", "0.2s", "--no-report", "--attach", f"pid:{process.pid}"
        )
        refused = cli("run", "--resume", "out")
        assert refused.code == 2 and "may be another process now" in refused.err
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_measures_without_cgroups(cli, nobodys_folder):
    cli.folder = nobodys_folder
    python = interpreter_of(NOBODY)
    result = cli(
        "exec", "--json", "--out", nobodys_folder / "out", "--", python, "-S", "-c", BUSY, "0.3",
        user=NOBODY, python=python, **environment_at(nobodys_folder),
    )  # fmt: skip
    assert result.code == 0, result.err
    machine = json.loads((nobodys_folder / "out" / "machine.json").read_text())["hosts"]["local"]
    assert machine["rights"]["root"] is False and machine["cgroup"]["rung"] == "none"
    assert 0.3 <= json.loads(result.out)["whole"]["cpu_s"]["mean"] < 0.5


PRINTS = """
import sys, time
for i in range(int(sys.argv[1])):
    sum(range(20000))
    print("sent", i + 1, flush=True)
    time.sleep(0.01)
print(f"p50_ms={sys.argv[2]}", flush=True)
"""


def prints(count: int, p50_ms: float) -> str:
    return shlex.join([sys.executable, "-S", "-c", PRINTS, str(count), str(p50_ms)])


def test_variants_of_a_command_are_compared_in_blocks_and_the_exit_code_is_a_gate(cli):
    result = cli(
        "exec", "--campaign", "out", "--baseline", BASELINE, "--repeat", "3",
        "--value-from", "p50_ms", "--margin", "10%", "--variant", f"base={prints(3, 4.5)}",
        "--variant", f"head={prints(3, 9.0)}",
    )  # fmt: skip
    assert result.code == 1, result.err
    assert "repeat 1 of 3: variant=head" in result.err and "(control a)" in result.err
    output = " ".join(result.out.split())
    assert "Variant base:" in output and "Variant head:" in output
    assert "value.p50_ms = 9.00 [9.00, 9.00] ms" in output and "Noise floor of" in output
    rows = pl.read_parquet(cli.folder / "out" / "summary.parquet", glob=False)
    # Three blocks of two variants and three control runs of the first.
    assert sorted(rows["control"].to_list()) == sorted(["", "", "a", "b", "unsampled"] * 3)
    head = rows.filter((pl.col("factor.variant") == "head") & (pl.col("control") == ""))
    assert head["value.p50_ms"].to_list() == [9.0] * 3
    columns = json.loads((cli.folder / "out" / "columns.json").read_text())
    assert columns["value.p50_ms"]["unit"] == "ms"
    page = (cli.folder / "out" / "report" / "index.html").read_text()
    assert "Costs of the processes of head" in page
    title = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert title is not None and "head is worse than base" in title[1]
    again = cli("compare", "out", "--response", "value.p50_ms")
    assert again.code == 1 and "2.00 times" in again.out


def test_a_failing_variant_or_two_commands_are_refused(cli):
    both = cli("exec", "--variant", "a=true", "--variant", "b=true", "--", "true")
    assert both.code == 2 and "each variant names its own command" in both.err
    alone = cli("exec", "--variant", "a=true")
    assert alone.code == 2 and "needs two variants" in alone.err
    gone = cli("exec", "--variant", "a=true", "--variant", "b=no-such-program-here")
    assert gone.code == 2 and "no-such-program-here: cannot be started" in gone.err


@pytest.mark.parametrize("warm_up", ["0.5s", "30"])
def test_a_warm_up_is_in_no_value(measured, warm_up):
    code = (
        "import time\n"
        "began = time.process_time()\n"
        "while time.process_time() < began + 0.3: pass\n"
        "block = bytearray(60 << 20)\n"
        "print('p50_ms=1000', flush=True)\n"
        "del block\n"
        "for i in range(80):\n"
        "    print('sent', i + 1, flush=True)\n"
        "    time.sleep(0.02)\n"
        "print('p50_ms=4.5', flush=True)\n"
    )
    result, table, folder = measured(
        "--warmup", warm_up, "--count-from", r"sent (?P<n>\d+)", "--value-from", "p50_ms",
        "--", sys.executable, "-S", "-c", code,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "(warm-up: " in result.err and "the window begins now" in result.err
    (repeat,) = table["repeats"]
    run = json.loads(next(folder.glob("runs/*/run.json")).read_text())
    usage = run["exit"]["rusage"]
    whole_s = (usage["user_ns"] + usage["system_ns"]) / 1e9
    assert whole_s > 0.3 and repeat["messages"] <= 80
    assert repeat["value.p50_ms"] == 4.5
    if warm_up == "30":
        assert repeat["messages"] <= 50
        assert repeat["cpu_s"] < whole_s - 0.25
        (row,) = [row for row in table["processes"] if row["process"].startswith("python")]
        assert row["cpu_s"]["mean"] == pytest.approx(repeat["cpu_s"], abs=0.02)


def test_a_command_that_ends_in_its_warm_up_has_no_values(measured):
    result, table, _ = measured("--warmup", "60s", "--", "true")
    assert result.code == 4 and table is None
    assert "within the warm-up (60 s), so nothing was measured; use a shorter" in result.err
    wrong, _, _ = measured("--warmup", "100", "--", "true")
    assert wrong.code == 2 and "needs --count-from" in wrong.err


def test_lost_events_of_layers_are_stated_and_exclude_no_run(measured, tmp_path):
    header = np.zeros(1, HEADER)
    header["magic"], header["pid"], header["lost"] = MAGIC, 7, 5
    lossy = tmp_path / "lossy"
    lossy.write_bytes(header.tobytes().ljust(HEADER_BYTES + NOTES_BYTES, b"\0"))
    code = f'cp {shlex.quote(str(lossy))} "$WATTWIRE_LAYERS_DIR/7.events"'
    result, table, folder = measured("--layers", "--", "sh", "-c", code)
    assert result.code == 4, result.err  # the layers that were asked for are missing
    run = json.loads(next(folder.glob("runs/*/run.json")).read_text())
    assert (run["verdict"], run["reasons"]) == ("valid", [])
    assert [reason["code"] for reason in run["layers"]["reasons"]] == [LOST_EVENTS]
    (reason,) = table["layers"]["invalid"]
    assert "5 events of layers" in reason and table["repeats"][0]["cpu_s"] > 0
