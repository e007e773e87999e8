"""Test clocks with planted offsets and rates, which a preloaded library gives to a second host.

The offset is that of a time namespace. The library scales the clocks of the far agent, its guards
and its nodes, and logs each process (scaled_clock.c).
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.end_to_end.rigs.kills import RIG_STUDY
from wattwire.cli.main import main
from wattwire.hosts import Hosts, namespaces
from wattwire.hosts.namespaces import Switch
from wattwire.model.errors import MissingError
from wattwire.model.hosts.clocks import ClockRelation, relations_of_run
from wattwire.model.rig import HostSpec, read_rig
from wattwire.run.runner import OneRun
from wattwire.store import Campaign

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("scaled_clock.c")
OFFSET_S, FAR = 1_000, "edge"
DOCUMENT: dict[str, Any] = {
    "hosts": {"robot": {"kind": "netns"}, FAR: {"kind": "netns", "clock_offset_s": OFFSET_S}},
    "networks": {"lan": {}},
    "placements": {"apart": {"sender": "robot", "receiver": FAR}},
}
RIG = f"""
[hosts]
robot = {{kind = "netns"}}
{FAR} = {{kind = "netns", clock_offset_s = {OFFSET_S}}}
[networks.lan]
[placements.apart]
sender = "robot"
receiver = "{FAR}"
"""
WINDOW_S = 4.0
SECOND_NS = 10**9


class ScaledClock:
    """The clock of the far host, as the library computes it."""

    def __init__(self, folder: Path) -> None:
        self.library, self.log = folder / "scaled_clock.so", folder / "scaled.log"
        self._change = folder / "change"
        self._change.write_bytes(bytes(8))
        self.origin_ns, self.change_ns = time.monotonic_ns() + OFFSET_S * SECOND_NS, 0
        self.ppm, self.change_ppm, self.step_ns = 0.0, 0.0, 0
        warnings = ["-Wall", "-Wextra", "-Werror"]
        words = ["gcc", "-shared", "-fPIC", "-O2", *warnings, "-o", str(self.library), str(SOURCE)]
        subprocess.run([*words, "-ldl"], check=True)

    def environment(self) -> list[str]:
        values = {
            "LD_PRELOAD": self.library, "SCALED_LOG": self.log, "SCALED_CHANGE": self._change,
            "SCALED_ORIGIN_NS": self.origin_ns, "SCALED_PPM": self.ppm,
            "SCALED_CHANGE_PPM": self.change_ppm, "SCALED_STEP_NS": self.step_ns,
        }  # fmt: skip
        return [f"{name}={value}" for name, value in values.items()]

    def change_in(self, seconds: float) -> None:
        """Let the clock change at this time from now."""
        self.change_ns = time.monotonic_ns() + round((OFFSET_S + seconds) * SECOND_NS)
        with self._change.open("r+b") as file:
            file.write(struct.pack("<q", self.change_ns))

    def offset_ns(self, controller_ns: int) -> int:
        """Return the planted offset from the controller's clock (ns)."""
        true_ns = controller_ns + OFFSET_S * SECOND_NS
        ahead_ns = (true_ns - self.origin_ns) * self.ppm * 1e-6
        if self.change_ns and true_ns >= self.change_ns:
            ahead_ns += self.step_ns + (true_ns - self.change_ns) * self.change_ppm * 1e-6
        return OFFSET_S * SECOND_NS + round(ahead_ns)

    def programs(self) -> set[str]:
        """Return the programs that read this clock at least 50 times, from the log."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return {name for what, _, name, *_ in lines if what == "read"}


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScaledClock:
    """Return the clock of the far host of all rigs of this test."""
    try:
        namespaces.user_namespace()
    except MissingError as error:
        pytest.skip(str(error))
    scaled = ScaledClock(tmp_path)
    host_command = Switch.host_command

    def with_clock(self: Switch, spec: HostSpec, agent: Sequence[str], hosts: Path) -> list[str]:
        command = host_command(self, spec, agent, hosts)
        if spec.name != FAR:
            return command
        return [*command[: -len(agent)], "env", *scaled.environment(), *agent]

    monkeypatch.setattr(Switch, "host_command", with_clock)
    return scaled


def measured(folder: Path, seconds: float = WINDOW_S) -> list[dict[str, Any]]:
    """Run a campaign with udp in C++ and in Python; return its rows and documents."""
    study = (
        RIG_STUDY.replace("NETWORK", "lan")
        .replace(
            "payload_bytes = [8, 64]", 'cell = ["udp/cpp", "udp/python"]\npayload_bytes = [64]'
        )
        .replace('middleware = "udp"\n', "")
        .replace('language = "python"\n', "")
        .replace("duration_s = 0.2", f"duration_s = {seconds}")
        .replace("retries = 2", "retries = 0")
    )
    (folder / "rig.toml").write_text(RIG)
    (folder / "study.toml").write_text(study)
    arguments = [str(folder / "study.toml"), "--rig", str(folder / "rig.toml"), "--plain"]
    main(["run", *arguments, "--campaign", str(folder / "c"), "--no-report"])
    campaign = Campaign(folder / "c")
    try:
        return [{**row, **campaign.run(row["run"])} for row in campaign.rows()]
    finally:
        campaign.close()


def is_inside(relation: ClockRelation, clock: ScaledClock) -> bool:
    """Return whether all knots hold the planted offset; the library rounds to 1 ns."""
    return all(
        abs(knot.offset_ns - clock.offset_ns(knot.controller_ns)) <= knot.band_ns + 2
        for knot in relation.knots
    )


@pytest.mark.parametrize("ppm", [-50.0, 50.0])
def test_planted_rates_of_nodes_in_two_languages_are_corrected(
    ppm: float, clock: ScaledClock, tmp_path: Path
) -> None:
    clock.ppm = ppm
    rows = measured(tmp_path)
    assert {row["cells"]["publisher"] for row in rows} == {"udp/cpp", "udp/python"}
    for row in rows:
        assert row["verdict"] == "valid", row["reasons"]
        relation = relations_of_run(row)[FAR]
        assert (relation.changes, relation.step_ns) == (0, None)
        assert relation.count > 128 + 2 * WINDOW_S
        assert is_inside(relation, clock)
        folder = next((tmp_path / "c" / "runs").glob(f"{row['run']}-*"))
        exchanges = pl.read_parquet(folder / "clocks.parquet")
        assert exchanges.height == relation.count and set(exchanges["host"]) == {FAR}
        # The clock was off by OFFSET_S and by 50 ppm of several seconds.
        assert -relation.band_ns / 1e3 <= row["latency_p50_us"] < 5_000
        adjustments = row["hosts"][FAR]["clock_adjustments"]
        assert set(adjustments) == {"begin", "end"}
    programs = clock.programs()
    nodes = programs - {"wattwire-agent"}
    assert "wattwire-agent" in programs and len(nodes) > 1
    assert any("python" in name for name in nodes) and not all("python" in name for name in nodes)


def window_with_change(monkeypatch: pytest.MonkeyPatch, clock: ScaledClock) -> None:
    """Let the clock change in the middle of the first window."""
    window = OneRun._window

    def with_change(self: OneRun) -> None:
        if not clock.change_ns:
            clock.change_in(WINDOW_S / 2)
        window(self)

    monkeypatch.setattr(OneRun, "_window", with_change)


def test_a_clock_that_is_set_in_the_window_makes_the_run_invalid(
    clock: ScaledClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.step_ns = 80_000_000
    window_with_change(monkeypatch, clock)
    first, second = measured(tmp_path)
    (reason,) = (reason for reason in first["reasons"] if reason["code"] == "clock_changed")
    assert f"the clock of host {FAR} was set, or slewed by more than 500 ppm" in reason["detail"]
    assert "allowed: a rate within ± 500 ppm" in reason["detail"]
    assert relations_of_run(first)[FAR].step_ns == pytest.approx(clock.step_ns, abs=5_000_000)
    assert second["verdict"] == "valid", second["reasons"]


def test_a_clock_that_slews_in_the_window_is_corrected_in_pieces(
    clock: ScaledClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.ppm, clock.change_ppm = -200.0, 600.0
    window_with_change(monkeypatch, clock)
    first, second = measured(tmp_path, seconds=2 * WINDOW_S)
    assert first["verdict"] == "valid", first["reasons"]
    relation = relations_of_run(first)[FAR]
    assert relation.changes == 1
    assert is_inside(relation, clock)
    assert relations_of_run(second)[FAR].changes == 0


def test_offset_and_rate_of_a_real_second_host_are_inside_for_half_a_minute(
    clock: ScaledClock, tmp_path: Path
) -> None:
    """It also checks at every exchange, which the knots alone do not show."""
    clock.ppm = 37.0
    with Hosts(read_rig(DOCUMENT, "rig"), tmp_path / "state") as hosts:
        host = hosts.by_name[FAR]
        host.relate_clock()
        with host.comparison.continued():
            time.sleep(float(os.environ.get("SCALED_SECONDS", "10")))
        relation = host.relate_clock_again()
        exchanges = host.clock_exchanges
    assert len(relation.knots) == 2 and is_inside(relation, clock)
    begin, end = relation.knots
    inside = [sent for sent, *_ in exchanges if begin.controller_ns <= sent <= end.controller_ns]
    assert len(inside) > 10
    for sent_ns in inside:  # the other exchanges before and after are beyond the knots
        error_ns = abs(relation.offset_ns(sent_ns) - clock.offset_ns(sent_ns))
        assert error_ns <= relation.band_ns + 2
