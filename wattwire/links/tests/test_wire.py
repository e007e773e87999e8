"""Tests of the check on the wire, and of the emulator between two network namespaces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wattwire.cli.main import main
from wattwire.links import probe
from wattwire.links.wire import (
    ADDRESSES,
    DEVICE,
    WireRun,
    exchange,
    frames_off_plan,
    late_values_ms,
    lateness_findings,
    loss_findings,
    sent_marks,
)
from wattwire.model.errors import EXIT_USAGE, MissingError
from wattwire.model.links.profile import read_link
from wattwire.rig.emulator import Emulator, EmulatorError, Port, Tap, find_emulator
from wattwire.rig.emulator_log import RECORD, Fate
from wattwire.rig.namespaces import Script, require_namespaces

COUNT = 300
LINK = read_link(
    "example",
    {"title": "T", "summary": "S", "both": {"delay_ms": 20, "jitter_ms": 5, "loss": 0.1}},
    "link.toml", str,
)  # fmt: skip


@pytest.fixture
def namespaces() -> None:
    try:
        require_namespaces()
        find_emulator()
    except MissingError as reason:
        pytest.skip(str(reason))


def observed(count: int = 10) -> WireRun:
    """Return a run in which host 0 lost its frame 3, and all others arrived 0.1 ms late."""
    records = np.zeros(2 * count, RECORD)
    records["mark"] = np.concatenate([sent_marks(0, count), sent_marks(1, count)])
    records["source"][count:] = 1
    records["fate"][3] = Fate.RANDOM_LOSS
    records["planned_ns"] = 1_000_000 * np.arange(1, 2 * count + 1)
    records["out_ns"] = records["planned_ns"] + 100_000
    received = (sent_marks(1, count), np.delete(sent_marks(0, count), 3))
    return WireRun(records, received, np.zeros((0, 2)), "SCHED_OTHER")


def failed(run: WireRun) -> list[str]:
    return [f.quantity for f in loss_findings(run, "here", 10) if not f.passed]


def test_a_loss_or_an_arrival_that_was_not_planned_is_detected() -> None:
    run = observed()
    assert failed(run) == []
    at_host0, at_host1 = run.received
    lost = replace(run, received=(at_host0[1:], at_host1))
    assert failed(lost) == ["frames whose loss or delivery was not planned"]
    revived = replace(run, received=(at_host0, sent_marks(0, 10)))
    assert failed(revived) == ["frames whose loss or delivery was not planned"]
    assert "not that of the law" in failed(replace(run, off_plan=1))[0]
    twice = replace(run, received=(np.append(at_host0, at_host0[:1]), at_host1))
    assert failed(twice) == ["frames received twice"]


def test_a_frame_that_is_missing_in_the_log_or_was_not_written_is_detected() -> None:
    run = observed()
    assert "frames in the log" in failed(replace(run, records=run.records[1:]))
    run.records["fate"][5] = Fate.NOT_WRITTEN
    assert "frames not written" in failed(run)


def test_lateness_counts_only_outside_stalls() -> None:
    run = observed()
    assert late_values_ms(run.lateness_ms) == pytest.approx((0.1, 0.1))
    run.records["out_ns"][0] += 5_000_000
    late = [f.quantity for f in lateness_findings(run, "here") if not f.passed]
    assert late == ["mean lateness outside stalls", "p99 lateness outside stalls"]
    calm = replace(run, stalls_ns=np.array([[1_050_000.0, 1_060_000.0]]))
    assert [f.quantity for f in lateness_findings(calm, "here") if not f.passed] == []
    stalled = replace(run, stalls_ns=np.array([[0.0, 1e12]]))
    assert not next(iter(lateness_findings(stalled, "here"))).passed


@pytest.mark.usefixtures("namespaces")
def test_the_frames_lost_on_the_wire_are_those_of_the_log() -> None:
    run = exchange(LINK, 1, COUNT)
    assert [f.words() for f in loss_findings(run, "here", COUNT) if not f.passed] == []
    fates = np.bincount(run.records["fate"], minlength=3)
    assert fates[Fate.RANDOM_LOSS] > 0
    assert frames_off_plan(LINK, 2, run.records) > 0  # another seed plans other fates
    delivered = run.records[run.records["fate"] == Fate.DELIVERED]
    assert (delivered["planned_ns"] >= delivered["in_ns"] + 15_000_000).all()
    assert (delivered["out_ns"] >= delivered["planned_ns"]).all()


def devices(pid: int) -> str:
    return Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8")


@pytest.mark.usefixtures("namespaces")
def test_the_emulator_and_its_devices_end_with_its_parent(tmp_path: Path) -> None:
    """A killed parent closes the emulator's input."""
    hosts = [Script(Path(probe.__file__), isolated=True) for _ in range(2)]
    taps = [Tap(host.pid, DEVICE, address) for host, address in zip(hosts, ADDRESSES, strict=True)]
    parent = (
        "import sys, time; from pathlib import Path\n"
        "from wattwire.links.tests.test_wire import LINK\n"
        "from wattwire.rig.emulator import Emulator, Port, Tap\n"
        f"ports = [Port('a', True, {taps[0]!r}), Port('b', False, {taps[1]!r})]\n"
        f"emulator = Emulator(LINK, 1, ports, Path({str(tmp_path)!r}))\n"
        "print(emulator.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        emulator = Path("/proc") / process.stdout.readline().strip()
        assert all(DEVICE in devices(host.pid) for host in hosts)
        process.send_signal(signal.SIGKILL)
        process.wait()
        while emulator.exists() and "State:\tZ" not in (emulator / "status").read_text():
            time.sleep(0.02)
        assert not any(DEVICE in devices(host.pid) for host in hosts)
    finally:
        process.kill()
        for host in hosts:
            host.kill()


def test_the_emulator_serves_hosts_of_a_user_namespace(tmp_path: Path) -> None:
    """An ordinary user may create network namespaces and devices in a user namespace."""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("no access to /dev/net/tun")
    hosts = "unshare --net sleep 60 & echo $!; unshare --net sleep 60 & echo $!; wait"
    outer = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "sh", "-c", hosts],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    assert outer.stdout is not None
    pids = [int(line) for line in (outer.stdout.readline(), outer.stdout.readline()) if line]
    try:
        find_emulator()
        own = Path("/proc/self/ns/net").readlink()
        while any(Path(f"/proc/{pid}/ns/net").readlink() == own for pid in pids):
            time.sleep(0.02)
        if len(pids) != 2:
            pytest.skip("user namespaces are not permitted here")
        taps = [Tap(pid, DEVICE, address) for pid, address in zip(pids, ADDRESSES, strict=True)]
        ports = [Port(f"host{at}", True, tap) for at, tap in enumerate(taps)]
        emulator = Emulator(LINK, 1, ports, tmp_path)
        assert all(DEVICE in devices(pid) for pid in pids)
        emulator.close()
        assert not any(DEVICE in devices(pid) for pid in pids)
    except (MissingError, FileNotFoundError) as reason:
        pytest.skip(f"no emulator, or no network namespaces: {reason}")
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.wait()


@pytest.mark.usefixtures("namespaces")
def test_a_host_that_has_ended_is_an_error_of_the_emulator(tmp_path: Path) -> None:
    ports = [Port(name, True, Tap(2**22 - 1, DEVICE, ADDRESSES[0])) for name in ("a", "b")]
    with pytest.raises(EmulatorError, match="its namespace: No such file"):
        Emulator(LINK, 1, ports, tmp_path)


def test_wire_without_links_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--wire"]) == EXIT_USAGE
    assert "wattwire check links --wire" in capsys.readouterr().err


def test_an_ordinary_user_learns_which_permission_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MissingError, match="CAP_NET_ADMIN; found user 1000; run this command as"):
        require_namespaces()
