"""Test that load steps on a simulated machine recover its energy per CPU second."""

import json
import struct

import pytest

from wattwire.model.errors import MissingError, UsageError
from wattwire.rig import calibrations
from wattwire.run import calibrating
from wattwire.stats.calibration import Step, joules_per_cpu_second

IDLE_W, PLANTED, OTHER_CORES = 7.0, 2.5, 0.3
SERIES = [
    ("counter", "energy", "package", "package-0", "uj", 20),
    ("state", "busy_time", "machine", "machine", "ns", None),
]


class SimulatedMachine:
    """Agent of a simulated machine, whose power depends on its loads.

    Time advances only at marks.
    """

    def __init__(self, responds=True):
        self.t_ns, self.busy_ns, self.energy_uj = 10**9, 0.0, 0.0
        self.joules = PLANTED if responds else 0.0
        self.loads, self.ended, self.records = {}, [], []

    def request(self, operation, **given):
        return getattr(self, f"do_{operation}")(**given)

    def do_sample_start(self, path, meters, **_):
        assert meters == ["counter", "state"]
        self.path = path

    def do_spawn(self, process, argv, **_):
        self.loads[process] = float(argv[-1])

    def do_signal(self, process, **_):
        self.ended.append(process)
        del self.loads[process]

    def do_mark(self, name):
        cores = OTHER_CORES + sum(self.loads.values())
        self.t_ns += 10**9
        self.busy_ns += cores * 1e9
        self.energy_uj += (IDLE_W + self.joules * cores) * 1e6
        for number, value in enumerate((self.energy_uj, self.busy_ns)):
            self.records.append(struct.pack("<qIId", self.t_ns, number, 0, value))
        return {"t_ns": self.t_ns}

    def do_sample_stop(self):
        header = struct.pack("<8sHHI48x", b"WWSAMPLE", 1, 24, 0)
        with open(self.path, "wb") as file:
            file.write(header + b"".join(self.records))
        return {
            "series": [
                {"series": number, "meter": meter, "quantity": quantity, "scope": scope,
                 "subject": subject, "unit": unit, "kind": "measured", "counter": True,
                 "rank": rank}
                for number, (meter, quantity, scope, subject, unit, rank) in enumerate(SERIES)
            ]
        }  # fmt: skip

    def do_clean(self, run):
        assert run.startswith("ww")


def measured(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(calibrating, "SETTLE_S", 0.0)
    steps = calibrating.LoadSteps(machine, tmp_path, 4, 0.0, 2, lambda _: None)
    source, found = steps.measure(["counter", "state"])
    return source, [Step(m.block, m.requested_cores, m.busy_cores, m.power_w) for m in found]


def test_a_planted_cost_comes_out_of_the_whole_chain(tmp_path, monkeypatch):
    machine = SimulatedMachine()
    source, steps = measured(machine, tmp_path, monkeypatch)
    assert source is not None and source.name == "counter/energy"
    assert sorted({s.requested_cores for s in steps}) == [0.0, 0.5, 1.0, 2.0]
    assert len(steps) == 4 * 7 and not machine.loads
    found = joules_per_cpu_second(steps)
    assert found.low <= PLANTED + 1e-9 and found.high >= PLANTED - 1e-9
    assert found.slope.estimate == pytest.approx(PLANTED)
    idle = [s for s in steps if s.requested_cores == 0]
    assert idle[0].power_w == pytest.approx(IDLE_W + PLANTED * OTHER_CORES)


def test_every_block_has_every_load_between_idle_steps(tmp_path, monkeypatch):
    _, steps = measured(SimulatedMachine(), tmp_path, monkeypatch)
    orders = set()
    for block in range(1, 5):
        asked = [s.requested_cores for s in steps if s.block == block]
        assert asked[::2] == [0.0] * 4
        assert sorted(asked[1::2]) == [0.5, 1.0, 2.0]
        orders.add(tuple(asked))
    assert len(orders) > 1


def test_a_counter_that_was_not_read_throughout_is_said(tmp_path, monkeypatch):
    machine = SimulatedMachine()
    monkeypatch.setattr(machine, "records", _Short())
    with pytest.raises(MissingError, match="no counter could be read throughout"):
        measured(machine, tmp_path, monkeypatch)


class _Short(list):
    """A list that stores only the readings of the first steps."""

    def append(self, record):
        if len(self) < 8:
            super().append(record)


def meter(name, state="present", default=True, rank=20, grant=""):
    return {
        "name": name, "state": state, "default": default, "reason": f"{name} is not there",
        "grant": grant, "quantities": [{"name": "energy", "rank": rank}, {"name": "part"}],
    }  # fmt: skip


def test_counters_are_found_by_rank_and_what_is_missing_is_said_with_its_grant():
    cpu = meter("cpu", rank=None)
    assert calibrating.counter_meters([cpu, meter("a"), meter("b", default=False)], None) == ["a"]
    assert calibrating.counter_meters([meter("b", default=False)], "b") == ["b"]
    with pytest.raises(MissingError, match="a is not there\n  to grant it: sudo x"):
        calibrating.counter_meters([cpu, meter("a", "absent", grant="sudo x")], None)
    with pytest.raises(UsageError, match='unknown meter with an energy counter "cpu"; known: a'):
        calibrating.counter_meters([cpu, meter("a")], "cpu")


def test_calibrations_are_kept_in_their_order_and_another_file_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    calibrations.add({"cpu_name": "a"})
    file = calibrations.add({"cpu_name": "b"})
    assert file == tmp_path / "wattwire" / "calibration.json"
    kept = json.loads(file.read_text())
    assert kept == {"version": 1, "calibrations": [{"cpu_name": "a"}, {"cpu_name": "b"}]}
    assert [p.name for p in file.parent.iterdir()] == [file.name]
    for text in ('{"version": 2, "calibrations": []}', "[]", "no"):
        file.write_text(text)
        with pytest.raises(UsageError, match="calibration.json"):
            calibrations.add({"cpu_name": "c"})
        assert file.read_text() == text
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert calibrations.path() == tmp_path / "home/.config/wattwire/calibration.json"
