"""Tests of `doctor`, which reports requirements and the commands that install them."""

from __future__ import annotations

import json

import pytest

from wattwire.catalog import Catalog
from wattwire.cli.main import main
from wattwire.cli.verbs import doctor
from wattwire.model.errors import MissingError
from wattwire.rig.builds import LackingError


class FakeAgent:
    """An available agent without builds that has the given meters."""

    meters: list = []
    cgroup = {"rung": "v2", "lost": []}
    binary = "/somewhere/wattwire-agent"
    built_cells: set = set()
    looks = 1

    def __init__(self, _state):
        from wattwire import __version__

        self.hello = {
            "version": __version__, "build": "a" * 64, "rights": {"root": False},
            "cgroup": self.cgroup, "meters": self.meters,
            "cpu_latency": {"path": "/dev/x", "absent": "no device"},
        }  # fmt: skip

    def request(self, operation, **_):
        if operation == "load":
            times_ns = {"busy_ns": self.looks * 10**9, "total_ns": self.looks * 2 * 10**9}
            self.looks += 1
            counts = {"steal_ns": 0, "other_demand_ns": 0, "tick_ns": 10**7, "cpus": 2}
            return {**times_ns, **counts}
        if operation == "cpus":
            return {"allowed": [0, 1], "cpus": [{"cpu": cpu, "core": cpu} for cpu in (0, 1)]}
        assert operation == "fingerprint"
        return {"facts": [{"key": "virtualisation", "value": "QEMU"},
                          {"key": "governor", "value": "powersave"},
                          {"key": "clocksource", "value": "hpet"}]}  # fmt: skip

    def built(self, _key):
        return None

    def close(self):
        return


def meter(name, unit="ns", state="present", grant="", reason="", kind="measured"):
    quantities = [{"kind": kind, "unit": unit}]
    return {"name": name, "title": name, "default": True, "state": state, "reason": reason,
            "grant": grant, "quantities": quantities, "info": {}}  # fmt: skip


@pytest.fixture
def agent(monkeypatch):
    monkeypatch.setattr(doctor, "AgentClient", FakeAgent)
    monkeypatch.setattr(doctor, "LOOK_S", 0.01)
    return FakeAgent


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return the catalogue of a root with two languages, two cells and one meter.

    The root is set as the search path.
    """
    files = {
        "languages/plain/language.toml": 'title = "P"\nrequires = []\n[run]\nargv = ["x"]\n',
        "languages/odd/language.toml": 'title = "O"\nrequires = ["no-such-compiler"]\n',
        "middleware/wire/middleware.toml": 'title = "W"\n',
        "middleware/wire/plain/node.toml": 'patterns = ["topic"]\ncapabilities = []\n',
        "middleware/wire/odd/node.toml": 'patterns = ["topic"]\ncapabilities = []\n',
        "meters/joule/meter.toml": 'title = "J"\nsummary = "j"\ntier = "tick"\ndefault = true\n',
        "meters/joule/udev.rules": '# Risk: they tell.\nSUBSYSTEM=="joule"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    catalog = Catalog([tmp_path])
    monkeypatch.setattr(doctor, "Catalog", lambda: catalog)
    return catalog


def text_of(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_cells_are_told_apart_by_what_they_lack(agent, root, capsys):
    assert main(["doctor"]) == 0
    out = text_of(capsys)
    assert "~ wire/plain can be built $ wattwire build CELL…" in out
    assert "- wire/odd no-such-compiler is not on PATH" in out
    assert out.endswith("Next: wattwire try wire/plain")


def test_the_cores_and_the_meaning_of_each_placement_are_listed(agent, root, capsys):
    assert main(["doctor"]) == 0
    out = text_of(capsys)
    assert "2 cores for nodes: CPU 0-1" in out
    assert "cores = free: the scheduler chooses among CPU 0-1" in out
    assert "cores = same: all nodes on CPU 1" in out
    assert "cores = apart: each node on a CPU of its own, such as 1 and 0" in out


def test_the_first_line_says_whether_energy_is_measured_estimated_or_neither(
    agent, root, capsys, monkeypatch
):
    for meters, told in (
        ([meter("joule", "uj")], "energy too."),
        ([meter("guess", "uj", kind="estimate")], "energy can only be estimated."),
        ([meter("time")], "no energy."),
        ([meter("joule", "uj", state="absent", reason="x")], "no energy."),
        (
            [meter("joule", "uj") | {"info": {"invented": ["package-0-invented"]}}],
            "and invented energy (joule), which only tests may use.",
        ),
    ):
        monkeypatch.setattr(agent, "meters", meters)
        main(["doctor"])
        assert text_of(capsys).startswith("Ready: 1 of 2 cells can be measured here, latency, loss")
        main(["doctor", "--json"])
        assert json.loads(capsys.readouterr().out)["first"].endswith(told)


def test_a_meter_of_a_test_machine_says_that_its_energy_is_invented(
    agent, root, capsys, monkeypatch
):
    invented = {"info": {"invented": ["package-0-invented", "package-1-invented"]}}
    monkeypatch.setattr(agent, "meters", [meter("joule", "uj") | invented])
    main(["doctor"])
    words = "real sysfs, invented energy: package-0-invented, package-1-invented"
    assert f"~ joule joule (measured); {words}" in text_of(capsys)


def test_an_absent_meter_has_its_reason_its_command_and_the_way_to_keep_it(
    agent, root, capsys, monkeypatch
):
    absent = meter("joule", "uj", "absent", "sudo chmod a+r it", "root only may read it")
    monkeypatch.setattr(agent, "meters", [absent])
    main(["doctor"])
    out = text_of(capsys)
    assert "- joule root only may read it $ sudo chmod a+r it" in out
    assert "permanent: wattwire doctor --print-udev" in out


def test_a_meter_that_the_agent_was_built_without_is_named(agent, root, capsys, monkeypatch):
    monkeypatch.setattr(agent, "meters", [])
    main(["doctor"])
    assert "meters are compiled in" in text_of(capsys)


def test_the_machine_is_remarked_upon_where_it_disturbs(agent, root, capsys):
    main(["doctor"])
    out = text_of(capsys)
    assert "~ virtual machine QEMU: usually without energy counters" in out
    assert "$ sudo cpupower frequency-set -g performance" in out
    assert "~ clock source hpet: reading the time is slow" in out


def test_no_cgroup_of_our_own_says_what_it_costs_and_what_would_bring_it(
    agent, root, capsys, monkeypatch
):
    lost = ["no cgroup", "to gain it: run as root"]
    monkeypatch.setattr(agent, "cgroup", {"rung": "none", "lost": lost})
    main(["doctor"])
    assert "~ cgroups No cgroup. To gain it: run as root." in text_of(capsys)


def test_without_an_agent_it_says_so_and_how_to_get_it(root, capsys, monkeypatch):
    def missing(_state):
        raise MissingError("no wattwire-agent: looked everywhere.")

    monkeypatch.setattr(doctor, "AgentClient", missing)
    monkeypatch.setattr(doctor.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "LOOK_S", 0.01)
    assert main(["doctor"]) == 3
    out = text_of(capsys)
    assert out.startswith("Nothing can be measured yet, because the agent")
    assert "cargo is missing too" in out and "Rust" in out
    assert out.endswith("Next: make setup")


def test_udev_rules_are_a_file_with_the_risk_and_the_commands_as_comments(root, capsys):
    assert main(["doctor", "--print-udev"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == ['SUBSYSTEM=="joule"']
    assert "# Risk: they tell." in lines
    assert any("udevadm control --reload" in line for line in lines)


def test_the_repositorys_own_rules_name_the_risk_in_one_line(capsys):
    main(["doctor", "--print-udev"])
    risky = [line for line in capsys.readouterr().out.splitlines() if "CVE-2020-8694" in line]
    assert len(risky) == 1 and risky[0].startswith("# Risk")


def test_everything_stays_within_80_columns(agent, root, capsys, monkeypatch):
    absent = meter("joule", "uj", "absent", "sudo x", "a long reason " * 12)
    monkeypatch.setattr(agent, "meters", [absent])
    main(["doctor"])
    told = [line for line in capsys.readouterr().out.splitlines() if "$" not in line]
    assert max(map(len, told)) <= 80


def test_the_load_is_the_share_between_two_answers_of_the_agent(agent):
    item = doctor._load_item(agent(""))
    assert item.state == "note" and item.text.startswith("50 % busy, 0 % stolen")


def test_the_install_command_names_the_package_of_a_program(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    assert doctor.install_command(["g++"]) == "sudo apt-get install g++"
    assert doctor.install_command(["nobody-packs-this"]) == ""
    monkeypatch.setattr(doctor.shutil, "which", lambda *_, **__: None)
    assert doctor.install_command(["g++"]) == ""
    monkeypatch.undo()
    assert "apt-get install g++" in doctor.install_command(["g++", "nobody-packs-this"])


def test_a_program_that_no_package_brings_new_enough_has_a_source():
    cell = Catalog().cell("rest/go")
    lacking = LackingError(cell.name, ["go", "openssl"])
    (told,) = doctor.sources(cell, lacking)
    assert told.startswith("go 1.25 or newer: the archive from ")
    assert doctor.sources(cell, LackingError(cell.name, ["openssl"])) == []
