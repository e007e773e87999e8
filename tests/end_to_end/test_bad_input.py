"""Test that errors on invalid input name the place, the value, the allowed values and a remedy."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

import pytest

from wattwire.store import Campaign


def run(cli, study, folder, *more, **environment):
    return cli("run", study, "--campaign", folder, "--plain", "--no-report", *more, **environment)


def test_an_unknown_study_and_an_unknown_cell(cli, mini, tmp_path):
    result = cli("run", "ros2-enery")
    assert result.code == 2
    assert 'unknown study "ros2-enery"' in result.err
    assert "Did you mean" in result.err
    result = cli("build", "loopback/pyton")
    assert result.code == 2
    assert 'unknown cell "loopback/pyton"' in result.err
    assert "loopback/python" in result.err


def test_an_unknown_setting_names_the_known_ones(cli, mini, tmp_path):
    result = run(cli, mini, tmp_path / "c", "--set", "fixed.settings.drop_evry=3")
    assert result.code == 2
    assert 'unknown setting "drop_evry"' in result.err
    assert 'Did you mean "drop_every"?' in result.err
    told = " ".join(result.err.split())
    assert (
        "[factors], [fixed] or variants (or --set) and applies to every cell of the study" in told
    )


def test_a_missing_toolchain_is_a_skip_with_its_reason(cli, mini, tmp_path):
    language = tmp_path / "more" / "languages" / "notthere" / "language.toml"
    language.parent.mkdir(parents=True)
    language.write_text('title = "X"\nrequires = ["no-such-compiler"]\n[run]\nargv = ["x"]\n')
    cell = tmp_path / "more" / "middleware" / "odd" / "notthere"
    cell.mkdir(parents=True)
    (cell.parent / "middleware.toml").write_text('title = "odd"\n')
    (cell / "node.toml").write_text(
        'patterns = ["topic", "service", "pingpong"]\n'
        'capabilities = ["encoding.bytes", "pacing.kit", "loop.open", "reply.echo"]\n'
    )
    result = run(
        cli, mini, tmp_path / "c", "--set", "fixed.middleware=odd", "--set",
        "fixed.language=notthere", WATTWIRE_PATH=str(tmp_path / "more"),
    )  # fmt: skip
    assert result.code == 3
    assert "no-such-compiler is not on PATH; install it and try again" in result.err
    checked = cli("check", "odd/notthere", WATTWIRE_PATH=str(tmp_path / "more"))
    assert checked.code == 3, "a check that tested nothing is no green one"
    assert "nothing was checked: odd/notthere cannot be built here" in checked.err


@pytest.mark.parametrize(
    "script, told",
    [
        ("echo go version go1.19.8 linux/amd64", "found 1.19.8 ({go})"),
        ("echo broken >&2; exit 1", "printed no version number for {go}: exit code 1, broken"),
    ],
)
def test_a_toolchain_that_is_too_old_is_a_skip_that_says_what_to_do(
    cli, mini, tmp_path, script, told
):
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)
    result = run(
        cli, mini, tmp_path / "c", "--set", "fixed.middleware=rest", "--set",
        "fixed.language=go", PATH=f"{go.parent}:{os.environ['PATH']}",
    )  # fmt: skip
    assert result.code == 3
    assert "rest/go: needs go 1.25 or newer; " in result.err
    assert told.format(go=go) in result.err
    assert "install a newer one, put its folder first on PATH, and try again" in result.err


def silent_cell(folder, body):
    """Create a cell in a separate root whose node is a shell script."""
    root = folder / "more"
    cell = root / "middleware" / "shell" / "python"
    cell.mkdir(parents=True)
    (cell.parent / "middleware.toml").write_text('title = "shell"\n')
    (cell / "node.sh").write_text(body)
    (cell / "node.toml").write_text(
        'patterns = ["topic", "service", "pingpong"]\n'
        'capabilities = ["encoding.bytes", "pacing.kit", "loop.open", "reply.echo"]\n'
        '[run]\nargv = ["sh", "{source}/node.sh"]\n'
    )
    return {"WATTWIRE_PATH": str(root)}


def test_a_node_that_is_never_ready_is_a_result_that_says_so(cli, mini, tmp_path, nothing_left):
    environment = silent_cell(tmp_path, "while read line; do :; done\n")
    result = run(
        cli, mini, tmp_path / "c", "--set", "fixed.middleware=shell", "--set",
        "plan.ready_timeout_s=0.5", "--only", "pattern=topic", **environment,
    )  # fmt: skip
    assert "timed_out: publisher-0 did not print READY in time" in result.out
    told = "The only run timed out before READY: publisher-0 did not print READY in time."
    assert told in " ".join(result.out.split())
    assert result.code == 4 and "0 of 1 design run is valid" in result.out
    campaign = Campaign(tmp_path / "c")
    assert [a.outcome for a in campaign.journal.attempts()] == ["timed_out"]
    campaign.close()


def test_a_node_that_dies_in_the_window_is_a_result_that_says_so(cli, mini, tmp_path, nothing_left):
    result = run(
        cli, mini, tmp_path / "c", "--set", 'fixed.settings.die_at="window"', "--only",
        "pattern=topic",
    )  # fmt: skip
    assert "died:" in result.out
    campaign = Campaign(tmp_path / "c")
    assert [a.outcome for a in campaign.journal.attempts()] == ["died"]
    campaign.close()


def test_a_truncated_sample_file_fails_the_run_and_names_the_file(cli, mini, tmp_path):
    body = (
        'for word in "$@"; do case $previous in --out) out=$word;; esac; previous=$word; done\n'
        'exec >&3; echo \'READY {"matched":null,"startup_ns":1,"discovery_ns":null,"library":'
        '{"name":"","version":"","build":""},"effective":{},"guarantee":{"delivery":"reliable",'
        '"ordering":"none","overload":"block"}}\'; read go; sleep 0.2\n'
        'case $out in *publisher*) echo \'SENT {"begin_ns":null,"end_ns":null,"sent":0,'
        '"scheduled":20,"skipped":0}\';; esac\n'
        "read stop; printf WATTWIRE > $out/samples.bin\n"
        'echo \'DONE {"sent":0,"received":0,"recorded":0,"overflow":0,"foreign":0,'
        '"corrupt":0,"probes":0}\'\n'
    )
    result = run(
        cli, mini, tmp_path / "c", "--set", "fixed.middleware=shell", "--set", "plan.retries=0",
        "--only", "pattern=topic", **silent_cell(tmp_path, body),
    )  # fmt: skip
    assert "failed" in result.out
    assert "samples.bin: the file is shorter than its header (8 of 64 bytes)" in result.out
    assert result.code == 4


TAKES = "import socket, sys; socket.socket().bind(('127.0.0.1', int(sys.argv[1])))"


def test_a_taken_port_is_told_with_the_services_own_words(cli, mini, tmp_path, nothing_left):
    root = tmp_path / "more"
    cell = root / "middleware" / "broken" / "python"
    cell.mkdir(parents=True)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        (cell.parent / "middleware.toml").write_text(
            'title = "broken"\n[services.broker]\n'
            f'argv = ["python3", "-c", "{TAKES}", "{port}"]\n'
            'ready = {line = "never"}\n'
        )
        (cell / "node.toml").write_text(
            'patterns = ["topic", "service", "pingpong"]\n'
            'capabilities = ["encoding.bytes", "pacing.kit", "loop.open", "reply.echo"]\n'
        )
        result = run(
            cli, mini, tmp_path / "c", "--set", "fixed.middleware=broken", "--only",
            "pattern=topic", WATTWIRE_PATH=str(root),
        )  # fmt: skip
    assert "could not be started" in result.out
    assert "Address already in use" in result.out
    output = " ".join(result.out.split())
    assert f"failed before GO: port {port} is in use" in output
    assert output.index("This is the reason in 1 of 1 run") < output.index(
        "0 of 1 design run is valid"
    )
    campaign = Campaign(tmp_path / "c")
    attempts = campaign.journal.attempts()
    campaign.close()
    # Such an attempt is no result, so it is repeated.
    assert [a.verdict for a in attempts] == ["failed"] * len(attempts) and len(attempts) > 1


def test_a_read_only_directory_is_refused_before_anything_runs(cli, mini, tmp_path):
    if os.geteuid() == 0:
        folder = tmp_path / "ro"
        folder.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", folder],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip("a read-only file system cannot be mounted here")
    else:
        folder = tmp_path / "ro"
        folder.mkdir(mode=0o555)
    try:
        result = run(cli, mini, folder / "c")
    finally:
        subprocess.run(["umount", folder], capture_output=True, check=False)
    assert result.code == 3
    assert "cannot be written" in result.err
    assert "--campaign DIR" in result.err


def test_a_full_disk_stops_the_campaign_and_keeps_what_is_done(cli, mini, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: a small file system is mounted")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        before = run(cli, mini, folder / "c")
        assert before.code == 3
        assert "validity.free_disk_bytes_min requires" in before.err
        assert f"--resume {folder / 'c'}" in before.err
        limits = ("--set", "validity.free_disk_bytes_min=0", "--set", "plan.duration_s=1.0")
        # Fill the disk so that the files of the first run do not fit.
        (folder / "ballast").write_bytes(bytes(shutil.disk_usage(folder).free - 120_000))
        during = run(cli, mini, folder / "d", *limits)
        assert during.code == 3
        assert "disk" in during.err
        (folder / "ballast").unlink()
        again = cli("run", "--resume", folder / "d", "--plain", "--no-report")
        assert again.code in (0, 2), again.err
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_stops_the_campaign_and_resume_goes_on(cli, mini, tmp_path):
    """The files of the campaign fill the disk, so that it becomes full at any point of a run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a small file system is mounted")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=260k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        limits = ("--set", "validity.free_disk_bytes_min=0", "--set", "plan.blocks=3")
        full = run(cli, mini, folder / "c", *limits)
        again = cli("run", "--resume", folder / "c", "--plain", "--no-report")
        for result in (full, again):
            assert result.code == 3
            assert "Traceback" not in result.err
            assert "the disk is full" in result.err
        subprocess.run(["mount", "-o", "remount,size=8m", folder], check=True)
        whole = cli("run", "--resume", folder / "c", "--plain", "--no-report")
        assert whole.code == 0, whole.err
        campaign = Campaign(folder / "c")
        attempts = [a for a in campaign.journal.attempts() if a.state == "done"]
        campaign.close()
        assert len({a.run for a in attempts if a.verdict == "valid"}) == 9
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_an_empty_study_file_says_what_is_missing(cli, tmp_path):
    (tmp_path / "empty.toml").write_text("")
    result = cli("plan", tmp_path / "empty.toml")
    assert result.code == 2
    assert "no pattern; allowed: topic, service, action, pingpong" in result.err


def test_a_reader_that_leaves_does_not_end_the_measurement(cli, mini, tmp_path, nothing_left):
    process = cli.start("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report")
    process.stdout.close()
    process.wait(60)
    campaign = Campaign(tmp_path / "c")
    assert len([a for a in campaign.journal.attempts() if a.verdict == "valid"]) == 3
    campaign.close()
    process.stderr.close()


def test_a_directory_with_other_things_is_not_taken(cli, mini, tmp_path):
    result = run(cli, mini, tmp_path)
    assert result.code == 2
    assert "this directory is not empty" in result.err


def test_an_unknown_meter_is_refused_before_a_campaign_begins(cli, mini, tmp_path):
    result = run(cli, mini, tmp_path / "c", "--set", 'meters.use=["procc_cpu"]')
    assert result.code == 2
    assert 'unknown meter "procc_cpu"' in result.err
    assert "Did you mean" in result.err
