"""Test that runs are invalid whose network did not carry the messages, or whose link was late."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.rigs.kills import LINK_RIG, PLACEMENT, RIG_STUDY
from wattwire.cli.main import main
from wattwire.hosts import namespaces
from wattwire.hosts.hosts import LiveNetwork
from wattwire.hosts.namespaces import Switch
from wattwire.model.errors import MissingError, WattwireError
from wattwire.rig.emulator import find_emulator
from wattwire.store import Campaign

pytestmark = pytest.mark.quiet

NATIVE_RIG = LINK_RIG.replace('link = "lossless-20ms"\nnear = ["robot"]\n', "")
RIGS = {"emulated": LINK_RIG, "native": NATIVE_RIG}
OTHER_DEVICE = "detour"
STOPPED_S = 0.5
SLOW = 'title = "T"\nsummary = "S"\n[both]\ndelay_ms = 300\n'
"""A link with many frames under way, which leave late when the emulator stops."""
LIMIT_MS = 100.0
"""A lateness that a busy machine does not cause, and a stopped emulator exceeds."""


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    try:
        find_emulator()
        namespaces.user_namespace()
        namespaces.require_tap_devices()
    except MissingError as error:
        pytest.skip(str(error))


def measured(folder: Path, rig: str, change: Callable[[str], str] = str) -> list[dict[str, Any]]:
    """Run a campaign of two runs in this process; return their rows and documents."""
    (folder / "rig.toml").write_text((rig + PLACEMENT).replace("NETWORK", "lan"))
    study = change(RIG_STUDY.replace("NETWORK", "lan"))
    (folder / "study.toml").write_text(study)
    arguments = [str(folder / "study.toml"), "--rig", str(folder / "rig.toml"), "--plain"]
    main(["run", *arguments, "--campaign", str(folder / "c"), "--no-report"])
    campaign = Campaign(folder / "c")
    try:
        return [{**row, **campaign.run(row["run"])} for row in campaign.rows()]
    finally:
        campaign.close()


def without_retries(study: str) -> str:
    return study.replace("retries = 2", "retries = 0")


def codes(row: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in row["reasons"]}


@pytest.fixture
def detour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join the hosts by second devices, over which all packets to each other go."""
    route_multicast = Switch.route_multicast

    def with_detour(self: Switch, device: str, pids: Iterable[int]) -> None:
        one, other = list(pids)
        route_multicast(self, device, (one, other))
        with contextlib.suppress(WattwireError):  # that of the run before
            self._ip(one, [f"link del {OTHER_DEVICE}"])
        self._ip(one, [f"link add {OTHER_DEVICE} type veth peer name {OTHER_DEVICE} netns {other}"])
        for pid in (one, other):
            self._ip(pid, [f"link set {OTHER_DEVICE} up"])
        for pid, far in ((one, "10.77.0.2"), (other, "10.77.0.1")):
            self._ip(pid, [f"route add {far}/32 dev {OTHER_DEVICE}"])

    monkeypatch.setattr(Switch, "route_multicast", with_detour)


@pytest.mark.parametrize("kind", RIGS)
def test_a_run_over_its_own_network_is_valid(kind: str, tmp_path: Path) -> None:
    for row in measured(tmp_path, RIGS[kind]):
        assert row["verdict"] == "valid" and row["received_unique"] > 0, row["reasons"]
        assert (row.get("link_late_p99_ms") is not None) == (kind == "emulated")
        assert (row.get("emulator_cpu_share", 0.0) > 0.0) == (kind == "emulated")


@pytest.mark.parametrize("kind", RIGS)
@pytest.mark.usefixtures("detour")
def test_a_run_whose_messages_another_interface_carried_is_invalid(
    kind: str, tmp_path: Path
) -> None:
    rows = measured(tmp_path, RIGS[kind], without_retries)
    large = max(rows, key=lambda row: row["factor.payload_bytes"])
    assert large["verdict"] == "invalid" and large["received_unique"] > 0
    (reason,) = (r for r in large["reasons"] if r["code"] == "not_carried")
    assert f"{large['received_unique'] * 64} bytes of payload" in reason["detail"]
    (reason,) = (r for r in large["reasons"] if r["code"] == "other_interface")
    assert f"by {OTHER_DEVICE} (" in reason["detail"]


def test_a_run_whose_emulator_was_late_without_a_stall_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root" / "links" / "slow"
    folder.mkdir(parents=True)
    (folder / "link.toml").write_text(SLOW, encoding="utf-8")
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path / "root"))
    stopping = []
    start = LiveNetwork.start

    def start_and_stop(self: LiveNetwork, start_ns: int) -> None:
        start(self, start_ns)
        thread = threading.Thread(target=stop_for_a_while, args=(self.emulator_pid, start_ns))
        thread.start()
        stopping.append(thread)

    def stop_for_a_while(pid: int, start_ns: int) -> None:
        time.sleep(max(0.0, start_ns / 1e9 + STOPPED_S - time.monotonic()))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(pid, signal.SIGCONT)

    monkeypatch.setattr(LiveNetwork, "start", start_and_stop)
    limit = f"link_late_max_ms = {LIMIT_MS}"
    rows = measured(
        tmp_path, LINK_RIG.replace("lossless-20ms", "slow"),
        lambda study: without_retries(study).replace("link_late_max_ms = 60000.0", limit)
        .replace("duration_s = 0.2", "duration_s = 1.0")
        .replace("linger_ms = 100", "linger_ms = 1000"),
    )  # fmt: skip
    for thread in stopping:
        thread.join()
    for row in rows:
        assert row["verdict"] == "invalid" and "link_late" in codes(row), row["reasons"]
        assert row["link_late_p99_ms"] > LIMIT_MS
