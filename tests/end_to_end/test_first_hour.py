"""Test a user's first hour: try, inspect a run, repeat it manually, stop, clean up."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from wattwire.cli.main import main
from wattwire.rig import cache
from wattwire.store import Campaign

BUSY = ("--set", "validity.other_load_max=1.1", "--set", "validity.steal_max=1.1",
        "--set", "validity.missed_ticks_max=1.1", "--set", "validity.stall_max_ms=60000",
        "--set", "plan.quiet_wait_s=0")  # fmt: skip
HANG_S = 120


@pytest.fixture
def tried(cli, tmp_path):
    """Return the result of a short trial of one cell with two payloads.

    Beside other tests, two nodes on one core cannot keep a higher rate.
    """
    result = cli("try", "loopback/python", "--payload", "64,1k", "--for", "750ms", "--blocks", "2",
                 "--rate", "20", "--cores", "free", "--campaign", tmp_path / "c", "--plain",
                 *BUSY)  # fmt: skip
    assert result.code == 0, result.err
    return result


def test_a_trial_compares_and_keeps_its_study(cli, tried, tmp_path, nothing_left):
    out = tried.out
    assert re.search(r"^loopback/python at 64 B: median latency [\d.]+ µs", out, re.MULTILINE)
    assert "4 of 4 runs are valid, in 2 blocks" in out
    assert f"Page      {tmp_path / 'c/report/index.html'}" in out
    study = re.search(r"^Study +(\S+)$", out, re.MULTILINE)[1]
    head = (tmp_path / "c/study.toml").read_text().splitlines()[0]
    assert head.startswith("# Written by: wattwire try loopback/python --payload 64,1k")
    planned = cli("plan", study)
    assert planned.code == 0 and "2 treatments × 2 blocks = 4 runs" in " ".join(planned.out.split())
    shown = cli("show", tmp_path / "c", "1")
    assert shown.code == 0 and "verdict valid: used" in " ".join(shown.out.split())
    assert "transport" in shown.out and "ping-0: loopback/python, exit 0" in shown.out


def test_a_run_can_be_done_again_by_hand_from_what_is_shown(cli, tried, tmp_path):
    run = next((tmp_path / "c/runs").iterdir())
    before = sorted(run.rglob("*"))
    shown = cli("show", run, "--commands")
    assert shown.code == 0
    blocks = [b for b in shown.out.split("\n\n") if b.startswith("# p")]
    processes = []
    try:
        for block in blocks:
            name = block.split()[1]
            lines = [line for line in block.splitlines() if not line.startswith("#")]
            if name.startswith("ping"):
                subprocess.run(["sh", "-c", "\n".join(lines[:-1])], cwd=tmp_path, check=True)
                lines = [line for line in lines if not line.startswith("sed ")]
                endpoints = json.loads(processes[0].stdout.readline().split(" ", 1)[1])
                spec = tmp_path / "again" / name / "spec.json"
                spec.write_text(json.dumps({
                    **json.loads(spec.read_text()), "peers.endpoints": endpoints["endpoints"]
                }))  # fmt: skip
            script = "\n".join([*lines[:-1], f"exec {lines[-1]}"])
            processes.append(
                subprocess.Popen(
                    ["sh", "-c", script],
                    cwd=tmp_path,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )  # fmt: skip
            )
        told = [read_until(process, "READY") for process in processes]
        assert len(told) == 2
        say(processes, f"GO {time.monotonic_ns() + 200_000_000}")
        sent = read_until(processes[1], "SENT")
        say(processes, "STOP")
        done = [read_until(process, "DONE") for process in processes]
        assert sent["sent"] == 15 and [d["received"] for d in done] == [15, 15]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(run.rglob("*")) == before
    assert (tmp_path / "again/ping-0/samples.bin").stat().st_size == 64 + 15 * 40


def say(processes, line):
    for process in processes:
        process.stdin.write(line + "\n")
        process.stdin.flush()


def read_until(process, keyword):
    for line in process.stdout:
        word, _, body = line.partition(" ")
        if word == keyword:
            return json.loads(body)
    raise AssertionError(f"no {keyword}")


def test_sigterm_ends_cleanly_and_says_how_to_go_on(cli, mini, tmp_path, nothing_left):
    process = cli.start("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report",
                        "--set", "plan.duration_s=60")  # fmt: skip
    deadline_s = time.monotonic() + HANG_S
    while not list((tmp_path / "c").glob("runs/.*.partial")) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 143
    assert "terminated by SIGTERM; finished work is kept" in err
    assert f"Continue with: wattwire run --resume {tmp_path / 'c'}" in err
    assert not list((tmp_path / "c").glob("runs/.*.partial"))


def test_a_damaged_plan_is_named_and_nothing_is_run(cli, tried, tmp_path):
    plan = tmp_path / "c/plan.json"
    plan.write_bytes(plan.read_bytes()[:200])
    for verb in (("report", tmp_path / "c"), ("run", "--resume", tmp_path / "c", "--plain")):
        result = cli(*verb)
        assert result.code == 2
        assert f"{plan}: damaged, not valid JSON" in result.err and "Traceback" not in result.err


@pytest.mark.quiet  # `clean` also ends what other tests leave for a moment
def test_leftovers_are_listed_and_removed_after_a_yes_only(cli, tmp_path):
    token = f"wwclean{os.getpid()}"
    left = subprocess.Popen(["sleep", "1000"], env={**os.environ, "WATTWIRE_RUN": token})
    try:
        listed = cli("clean")
        assert listed.code == 0 and f"process {left.pid}: sleep 1000" in listed.out
        assert "Nothing was removed. To remove them, repeat the command with --yes" in listed.out
        assert left.poll() is None
        removed = cli("clean", "--yes")
        assert removed.code == 0 and "Ended " in removed.out
        assert left.wait(HANG_S) == -signal.SIGKILL
    finally:
        left.kill()
        left.wait()


def test_old_builds_are_thrown_away_and_new_ones_stay(cli, tmp_path):
    place = tmp_path / "cache"
    environment = {"WATTWIRE_CACHE": str(place)}
    assert cli("build", "loopback/python", **environment).code == 0
    (new,) = [e.path for e in cache.entries(place) if e.path.parent.name == "builds"]
    old = place / "builds/0123456789abcdef"
    shutil.copytree(new, old)
    os.utime(old / cache.MARKER, (0, 0))
    result = cli("clean", "--cache", "10", "--yes", **environment)
    assert result.code == 0, result.err
    assert "to remove: 1 build" in result.out
    assert new.exists() and not old.exists()
    again = cli("build", "loopback/python", **environment)
    assert "was built before" in again.out


def test_a_cache_that_cannot_be_written_serves_what_is_built_and_says_what_is_not(cli, tmp_path):
    place = tmp_path / "cache"
    environment = {"WATTWIRE_CACHE": str(place)}
    assert cli("build", "loopback/python", **environment).code == 0
    if os.geteuid() == 0:
        bound = ["mount", "--bind", place, place], ["mount", "-o", "remount,bind,ro", place]
        if any(subprocess.run(c, capture_output=True, check=False).returncode for c in bound):
            pytest.skip("a read-only file system cannot be mounted here")
    else:
        for folder in (place, place / "builds", place / "blobs"):
            folder.chmod(0o555)
    try:
        built = cli("build", "loopback/python", **environment)
        assert built.code == 0 and "was built before" in built.out
        other = cli("build", "loopback/cpp", **environment)
        assert other.code == 3
        assert f"the cache folder {place} cannot be written" in other.out
        assert "WATTWIRE_CACHE=FOLDER" in other.out
    finally:
        subprocess.run(["umount", place], capture_output=True, check=False)
        for folder in (place, place / "builds", place / "blobs"):
            folder.chmod(0o755)


def test_a_meter_that_the_agent_was_built_without_is_refused_before_a_run(cli, mini, tmp_path):
    folder = tmp_path / "more/meters/elsewhere"
    folder.mkdir(parents=True)
    (folder / "meter.toml").write_text(
        'title = "E"\nsummary = "e"\ntier = "tick"\ndefault = true\n'
    )
    result = cli("run", mini, "--campaign", tmp_path / "c", "--set", 'meters.use=["elsewhere"]',
                 "--plain", WATTWIRE_PATH=str(tmp_path / "more"))  # fmt: skip
    assert result.code == 3
    assert "the agent lacks the meter elsewhere" in result.err and "make agent" in result.err
    assert not (tmp_path / "c").exists()


def test_a_study_is_found_by_name_folder_and_file_from_where_one_stands(
    cli, tmp_path, monkeypatch, capsys
):
    assert cli("new", "mine/study.toml").code == 0
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "./mine", "mine/study.toml", str(tmp_path / "mine")):
        assert main(["plan", name]) == 0
        assert capsys.readouterr().out.endswith(f"Next: wattwire run {name}\n")
    assert main(["plan", "mine/studdy.toml"]) == 2
    assert "this study file does not exist" in capsys.readouterr().err


def test_the_doctor_looks_at_this_machine_and_ends_with_a_command_that_works(cli):
    result = cli("doctor")
    assert result.code == 0, result.out + result.err
    assert result.out.startswith("Ready: ")
    last = result.out.strip().splitlines()[-1]
    assert re.fullmatch(r"Next: wattwire try \S+ \S+", last)


def test_an_interrupted_beginning_leaves_no_campaign(cli, mini, tmp_path):
    result = cli("run", mini, "--campaign", tmp_path / "c", "--only", "pattern=action")
    assert result.code == 2
    assert not (tmp_path / "c").exists()
    assert Campaign.create(tmp_path / "c").holder() is None
