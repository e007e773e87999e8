"""Test the chain of energy on a real kernel, whose counters follow a law that is known.

The sysfs is real and the energy is invented: the tests compare wattwire's joules with the law,
computed from the busy time that the kernel module itself logged. Times inside mean nothing.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.machine.boot import ROOT
from tests.machine.conftest import booted
from tests.machine.law import Law, Span, read_law
from tests.machine.parts import MissingPartsError, parts
from tests.machine.planted import Planted, planted, seconds, whole
from wattwire import stats
from wattwire.analysis.dataset import by_treatment
from wattwire.model.deployment import Deployment
from wattwire.run.results import power
from wattwire.run.results.convert import quantities_frame
from wattwire.run.results.resources import Readings, attributed_energy, column

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SMOKE_LIMIT_S, SUITE_LIMIT_S = 50.0, 1200.0
AGREEMENT = 0.01
"""Largest relative difference between wattwire's power and the law's."""
BATTERY_W = 15.0
SHALLOW_W = 2 * 6.0
"""What both packages use more while a CPU latency limit holds."""
ROUNDED_NS = 60e6
"""Idle, iowait and steal time are multiples of 10 ms, and a span has two ends."""
EDGES_W = 0.1
"""The agent reads at 10 Hz and the log has a line per 20 ms, so the ends of a span differ."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    """Return the results of a machine that ran all steps."""
    folder = tmp_path_factory.mktemp("machine")
    steps = ["wraps", "rights", "doctor", "battery", "additivity", "held", "campaign"]
    return booted(folder, steps, SUITE_LIMIT_S).out


@dataclass
class Sampled:
    """The readings of a step with its spans, and the law's log."""

    readings: Readings
    source: power.Source
    steps: list[dict[str, Any]]
    law: Law | None


def sampled(folder: Path) -> Sampled:
    document = json.loads((folder / "sampled.json").read_text())
    series, path = document["series"], folder / "readings.bin"
    readings = Readings(quantities_frame("r", Deployment(()), path, series))
    spans = [tuple(step[name]) for step in document["steps"] for name in ("silent", "window")]
    source = power.choose(readings, series, spans)
    assert source is not None
    truth = folder / "truth.txt"
    law = read_law(truth) if truth.exists() else None
    return Sampled(readings, source, document["steps"], law)


def check_wraps(folder: Path) -> None:
    """Compare the power of each zone in each span with the law, and count the wraps."""
    data = sampled(folder)
    assert data.source.name == "powercap/energy"
    assert data.source.subjects == ("package-0-invented", "package-1-invented")
    spans = [span_of(step, name) for step in data.steps for name in ("silent", "window")]
    for span in spans:
        measured_w = power.mean_w(data.readings, data.source, span)
        planted_w = data.law.power_w(span)
        print(f"{(span[1] - span[0]) / 1e9:.1f} s: {measured_w:.2f} W, planted {planted_w:.2f} W")
        assert measured_w == pytest.approx(planted_w, rel=AGREEMENT, abs=EDGES_W)
        for package in range(data.law.packages):
            one = f"package-{package}-invented"
            _, energy_uj = data.readings.of_meter("powercap", "energy", one)
            dram = data.readings.increase("energy_part", "package", f"{one}/dram", *span)
            rate_w = data.readings.rate("energy", "package", one, *span) / 1e6
            assert rate_w == pytest.approx(
                data.law.package_power_w(span, package), rel=AGREEMENT, abs=EDGES_W
            )
            wraps = int((energy_uj[-1] - energy_uj[0]) // data.law.range_uj)
            assert wraps >= 2, f"{one} wrapped {wraps} times"
            if package == 0:
                dram_w = dram / 1e6 / ((span[1] - span[0]) / 1e9)
                assert dram_w == pytest.approx(data.law.dram_power_w(span), rel=0.02, abs=0.02)
    idle, busy = (data.law.busy_cores(span) for span in spans[2:])
    assert busy > idle + 0.4, "the load left no trace in the log, so the law was not tested"


def span_of(step: dict[str, Any], name: str) -> Span:
    begin_ns, end_ns = step[name]
    return begin_ns, end_ns


def test_counters_of_a_real_kernel_follow_their_law_through_wraps(tmp_path):
    """The smoke test: boots a machine for one step, and needs half a minute of a free core."""
    try:
        ended = booted(tmp_path / "machine", ["wraps"], SMOKE_LIMIT_S)
    except TimeoutError as error:
        pytest.skip(
            f"this host is too slow or too busy for a machine without acceleration: {error}"
        )
    check_wraps(ended.out / "wraps")


@pytest.mark.matrix
def test_a_machine_dies_with_the_process_that_booted_it(tmp_path):
    try:
        parts()
    except MissingPartsError as error:
        pytest.skip(str(error))
    code = "import pathlib, sys, tests.machine.boot as b; b.boot(pathlib.Path(sys.argv[1]), [], 99)"
    command = [sys.executable, "-c", code, str(tmp_path / "machine")]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        qemu = wait_for(lambda: child_named(process.pid, "qemu-system"))
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not Path(f"/proc/{qemu}").exists())


def child_named(parent: int, name: str) -> int | None:
    """Return a child of a process whose program's name begins with `name`."""
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with contextlib.suppress(OSError):  # it may have ended
            if Path(f"/proc/{pid}/comm").read_text().startswith(name):
                return int(pid)
    return None


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true result of a condition; fail after five minutes."""
    for _ in range(3000):
        if result := condition():
            return result
        time.sleep(0.1)
    return pytest.fail("waited five minutes in vain")


@pytest.mark.matrix
def test_counters_follow_their_law_through_wraps(suite):
    check_wraps(suite / "wraps")


@pytest.mark.matrix
def test_doctor_has_the_counters_and_says_that_their_energy_is_invented(suite):
    text = " ".join((suite / "doctor" / "doctor.txt").read_text().split())
    assert "and invented energy (powercap), which only tests may use." in text
    zones = "package-0-invented, package-1-invented"
    assert "~ powercap Energy counters of the processor (measured); real sysfs, " in text
    assert zones in text


@pytest.mark.matrix
def test_rights_are_those_of_the_kernel(suite):
    states = json.loads((suite / "rights" / "states.json").read_text())
    found = {name: state["state"] for name, state in states.items()}
    assert found == {
        "root": "present",
        "user": "absent",
        "user after the grant": "present",
        "user after the next start": "absent",
        "member of the group": "present",
        "no member of the group": "absent",
    }
    assert "only root may read energy_uj" in states["user"]["reason"]
    assert "chmod" in states["user"]["grant"]


@pytest.mark.matrix
def test_a_battery_of_acpi_is_a_source_whose_gauge_agrees_with_its_power(suite):
    folder = suite / "battery"
    assert (folder / "model_name").read_text().strip() == "battery-invented"
    data = sampled(folder)
    assert data.source.name == "battery_power/power_input" and data.source.subjects == ("BAT0",)
    (step,) = data.steps
    window = span_of(step, "window")
    assert power.mean_w(data.readings, data.source, window) == pytest.approx(BATTERY_W)
    times_ns, left_uj = data.readings.of_meter("battery_power", "energy_left", "BAT0")
    slope_w = -np.polyfit((times_ns - times_ns[0]) / 1e9, left_uj / 1e6, 1)[0]
    print(f"the gauge falls by {slope_w:.2f} W")
    assert slope_w == pytest.approx(BATTERY_W, rel=0.1)


@pytest.mark.matrix
def test_the_busy_time_of_the_host_is_that_of_the_law(suite):
    """The ticks of this kernel miss most of it, because the loads wake with a timer."""
    data = sampled(suite / "additivity")
    for step in data.steps:
        for name in ("silent", "window"):
            span = span_of(step, name)
            planted = data.law.busy_cores(span)
            measured = data.readings.rate("busy_time", "machine", "machine", *span) / 1e9
            print(step["loads"], f"{name}: {measured:.3f} busy cores, planted {planted:.3f}")
            rounded = ROUNDED_NS / (span[1] - span[0])
            assert measured == pytest.approx(planted, rel=0.02, abs=rounded)


@pytest.mark.matrix
def test_attributed_joules_of_two_loads_add_up(suite):
    """Compare both loads together with what they cost alone, at the CPU time that they used.

    A load uses a share of a core, but qemu's share of the host varies, and with it this CPU time.
    """
    data = sampled(suite / "additivity")
    steps = [attributed(data, step) for step in data.steps]
    together, expected = [], []
    for a, b, both in zip(steps[0::3], steps[1::3], steps[2::3], strict=True):
        alone = {name: joules / cpu_s for step in (a, b) for name, (joules, cpu_s) in step.items()}
        together.append(sum(joules for joules, _ in both.values()))
        expected.append(sum(alone[name] * cpu_s for name, (_, cpu_s) in both.items()))
    ratio = stats.additivity(together, expected)
    print("together / alone:", ratio)
    assert isinstance(ratio, stats.Interval)
    assert ratio.low <= 1.0 <= ratio.high or abs(ratio.estimate - 1.0) <= 0.03
    assert abs(ratio.estimate - 1.0) <= 0.1


def attributed(data: Sampled, step: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the attributed energy (J) and the CPU time (s) of each load of a step.

    Check that the energy that is divided is the law's.
    """
    silent, window = span_of(step, "silent"), span_of(step, "window")
    powers_w = [power.mean_w(data.readings, data.source, span) for span in (silent, window)]
    dynamic_j = (powers_w[1] - powers_w[0]) * seconds(window)
    planted_j = (data.law.power_w(window) - data.law.power_w(silent)) * seconds(window)
    assert dynamic_j == pytest.approx(planted_j, rel=0.02, abs=EDGES_W * seconds(window))
    spans = window, silent
    energies_j = attributed_energy(
        data.readings, step["loads"], spans, data.readings, spans, dynamic_j
    )
    print(step["loads"], f"{dynamic_j:.2f} J, planted {planted_j:.2f} J:", energies_j)
    return {
        name.split("-")[0]: (
            energies_j[column("energy_j", name)],
            data.readings.increase("cpu_time", "process", name, *window) / 1e9,
        )
        for name in step["loads"]
    }


@pytest.fixture(scope="module")
def campaign(suite) -> Planted:
    return planted(suite / "campaign")


def check_powers(campaign: Planted) -> None:
    """Compare the powers of each run, and the energies that follow from them, with the law.

    The power of the idle machine is a mean: of a block for standing energy, of all runs for energy
    above idle.
    """
    rows = list(campaign.evidence.usable.iter_rows(named=True))
    planted_w = {row["run"]: campaign.powers_w(row["run"]) for row in rows}
    idle_w: defaultdict[Any, list[float]] = defaultdict(list)
    block_idle_w: defaultdict[Any, list[float]] = defaultdict(list)
    for row in rows:
        limit_us, machine_w = campaign.limit_us(row["run"]), planted_w[row["run"]]["machine"]
        idle_w[limit_us].append(machine_w)
        block_idle_w[row["block"], limit_us].append(machine_w)
    for row in rows:
        powers_w, window_s = planted_w[row["run"]], seconds(campaign.spans(row["run"])["window"])
        for name, watts in powers_w.items():
            print(f"{row['run']} {name}: {row[f'power_{name}_w']:.2f} W, planted {watts:.2f} W")
            assert row[f"power_{name}_w"] == pytest.approx(watts, rel=AGREEMENT, abs=EDGES_W)
        slack_j = 2 * EDGES_W * window_s
        of_block_w = np.mean(block_idle_w[row["block"], campaign.limit_us(row["run"])])
        standing_w = powers_w["silent"] - of_block_w
        messages_w = powers_w["window"] - powers_w["silent"]
        assert row["energy_standing_j"] == pytest.approx(standing_w * window_s, abs=slack_j)
        assert row["energy_message_j"] == pytest.approx(messages_w * window_s, abs=slack_j)
    for row in rows:
        begin_ns = campaign.spans(row["run"])["machine"][1]
        run_w = campaign.law.power_w((begin_ns, begin_ns + int(row["run_s"] * 1e9)))
        above_w = run_w - np.mean(idle_w[campaign.limit_us(row["run"])])
        slack_j = 2 * EDGES_W * row["run_s"]
        planted_j = above_w * row["run_s"]
        print(f"{row['run']}: {row['energy_idle_subtracted_j']:.1f} J, planted {planted_j:.1f} J")
        assert row["energy_idle_subtracted_j"] == pytest.approx(planted_j, abs=slack_j)


@pytest.mark.matrix
def test_powers_of_each_run_are_those_of_the_law_and_a_wrap_costs_nothing(campaign):
    check_powers(campaign)
    wraps = []
    for run in campaign.evidence.usable["run"]:
        span = whole(campaign.spans(run))
        energy_uj = campaign.law.package_power_w(span, 0) * seconds(span) * 1e6
        wraps.append(energy_uj / campaign.law.range_uj)
    print("wraps of package 0 in each run:", [round(count, 1) for count in wraps])
    assert len(wraps) >= 6 and min(wraps) >= 1.0


@pytest.mark.matrix
def test_a_cpu_latency_limit_costs_power_and_no_standing_energy(suite):
    campaign = planted(suite / "held")
    check_powers(campaign)
    idle_w = {}
    for treatment, group in by_treatment(campaign.evidence, campaign.evidence.usable).items():
        (level,) = treatment
        idle_w[int(level)] = float(group["power_machine_w"].mean())
    print(idle_w)
    assert idle_w[0] - idle_w[2_000_000_000] == pytest.approx(SHALLOW_W, abs=3.0)


@pytest.mark.matrix
def test_intervals_of_joules_per_message_hold_those_of_the_law(campaign):
    rows = list(campaign.joules_per_message())
    assert len(rows) == 2
    for treatment, interval, planted_j in rows:
        print(treatment, interval, f"planted {planted_j:.4f} J")
        if isinstance(interval, stats.BelowResolution):  # the host was busy
            assert planted_j <= interval.limit
            continue
        assert isinstance(interval, stats.Interval)
        assert interval.low <= planted_j <= interval.high
        assert interval.estimate == pytest.approx(planted_j, rel=0.05)


@pytest.mark.matrix
def test_shares_of_processes_sum_to_at_most_the_energy_of_messages(campaign):
    for row in campaign.evidence.usable.iter_rows(named=True):
        shares_j = [
            value
            for name, value in row.items()
            if name.startswith("energy_j.") and value is not None
        ]
        print(f"{row['run']}: {sum(shares_j):.2f} J of {row['energy_message_j']:.2f} J")
        assert len(shares_j) == 2
        # Other work of the machine in the silent baseline can make both negative.
        assert 0 < sum(shares_j) / row["energy_message_j"] <= 1.001


@pytest.mark.matrix
def test_the_page_says_that_the_energy_is_invented(campaign, suite, tmp_path):
    command = [sys.executable, "-m", "wattwire", "report", str(campaign.evidence.reader.path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Real sysfs, invented energy" in done.stdout
