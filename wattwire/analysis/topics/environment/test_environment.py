"""Test what the machines and missing permissions do to results, and where this is stated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.environment.numbers import (
    Environment,
    Machine,
    Scheduler,
    SharedConnection,
    environment,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign

SHAPE = Shape(blocks=2, patterns=("service",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
FACTS = {
    "cpu_name": "Made-up CPU <4>",
    "cpus": 4,
    "memory_total": 3 << 29,
    "operating_system": "Made-up OS",
    "kernel": "6.1.0",
    "virtualisation": "kvm",
}


def evidence_with(
    folder: Path, others: Mapping[str, Mapping[str, Any]] = MappingProxyType({}), **change: Any
) -> Evidence:
    """Return the evidence of a campaign whose local host has these entries.

    The entries of each of the `others` replace those of the local host.
    """
    write_campaign(folder, SHAPE)
    machine = json.loads((folder / "machine.json").read_text())
    local = machine["hosts"]["local"] | change
    hosts = {"local": local, **{name: {**local, **entry} for name, entry in others.items()}}
    (folder / "machine.json").write_text(json.dumps({**machine, "hosts": hosts}))
    return gather(Campaign(folder))


def values(result: Environment, section: str) -> list[tuple[str, str]]:
    """Return the (key, value) of each text that joins a section."""
    elsewhere = topic_page("environment", result).elsewhere
    return [(text.key, text.value) for at, (_, text) in elsewhere if at == section]


def test_hosts_of_one_boot_are_one_machine(tmp_path: Path) -> None:
    facts = [{"key": key, "value": value} for key, value in FACTS.items()]
    others = {"robot": {"boot": "2", "facts": facts[:1]}, "edge": {}}
    result = environment(evidence_with(tmp_path / "c", others, facts=facts, boot="1"))
    both = Machine(("local", "edge"), "Made-up CPU <4>", 4, 1.5, "Made-up OS", "6.1.0", True)
    assert result.machines == (both, Machine(("robot",), "Made-up CPU <4>"))
    (text,) = [text for at, (_, text) in topic_page("environment", result).elsewhere
               if at == "methods.tex"]  # fmt: skip
    assert text.value == "2"
    assert "on 2 machines (local and edge: Made-up CPU <4>, 4 logical CPUs, 1.5 GiB" in text.words
    assert "Made-up OS, kernel 6.1.0, a virtual machine; robot: Made-up CPU <4>)." in text.words


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        (("local",), "All results come from one machine, one boot and one build."),
        (("local", "robot"), "come from 2 machines, one boot of the first and one build."),
    ],
)
def test_results_of_several_machines_are_not_those_of_one(
    hosts: tuple[str, ...], words: str
) -> None:
    result = Environment(True, machines=tuple(Machine((host,)) for host in hosts), boots=1)
    (text,) = [text for _, (_, text) in topic_page("environment", result).elsewhere
               if text.key == "environment.boots"]  # fmt: skip
    assert words in text.words


def test_a_machine_without_facts_has_no_description() -> None:
    result = Environment(True, "0.1.0", (Machine(("local",)),))
    (text,) = [text for at, (_, text) in topic_page("environment", result).elsewhere
               if at == "methods.tex"]  # fmt: skip
    assert text.words == "All runs used wattwire 0.1.0 on one machine."


def test_a_link_emulator_without_real_time_priority_is_reported(tmp_path: Path) -> None:
    evidence = evidence_with(tmp_path / "c")
    first, *others = evidence.usable["run"].to_list()
    schedulers = {first: "SCHED_OTHER", **dict.fromkeys(others, "SCHED_FIFO")}
    runs = {
        run: {**document, **({"link_scheduler": schedulers[run]} if run in schedulers else {})}
        for run, document in evidence.runs.items()
    }
    result = environment(replace(evidence, runs=runs))
    assert result.schedulers == (Scheduler("SCHED_OTHER", 1),)
    assert ("environment.scheduler", "SCHED_OTHER") in values(result, "threats")


def test_only_hosts_without_control_groups_are_reported(tmp_path: Path) -> None:
    others = {"delegated": {"cgroup": {"rung": "v2", "lost": []}}}
    cgroup = {"rung": "none", "lost": []}
    result = environment(evidence_with(tmp_path / "c", others, cgroup=cgroup))
    assert result.without_cgroups == ("local",)
    assert result.schedulers == ()


def test_the_most_bytes_of_a_window_over_the_measured_network_are_reported(tmp_path: Path) -> None:
    evidence = evidence_with(tmp_path / "c")
    runs = {}
    for number, (run, document) in enumerate(evidence.runs.items()):
        traffic = {"ssh": {"sent_bytes": number, "received_bytes": 7 - number}}
        runs[run] = {**document, "hosts": {"robot": {"management": traffic}, "edge": {}}}
    result = environment(replace(evidence, runs=runs))
    assert result.connections == (SharedConnection("robot", "ssh", len(runs) - 1, 7),)
    (text,) = [text for _, (_, text) in topic_page("environment", result).elsewhere
               if text.key == "environment.connection"]  # fmt: skip
    assert text.words.endswith("per window (counted at the socket of ssh).")


@pytest.mark.parametrize("unseen", [None, "those of other users"])
def test_processes_that_no_meter_can_read_are_reported(tmp_path: Path, unseen: str | None) -> None:
    meters = [{"name": "any", "info": {"unseen": unseen}}]
    result = environment(evidence_with(tmp_path / "c", meters=meters))
    assert result.unseen == ((unseen,) if unseen else ())
    reported = [value for key, value in values(result, "threats") if key == "environment.unseen"]
    assert reported == [*result.unseen]


@pytest.mark.parametrize("subjects", [[], ["package-0-invented", "package-1-invented"]])
def test_invented_energy_is_named_at_the_top_and_in_the_threats(
    tmp_path: Path, subjects: list[str]
) -> None:
    meters = [{"name": "any", "info": {"invented": subjects}}, {"name": "other", "info": {}}]
    result = environment(evidence_with(tmp_path / "c", meters=meters))
    assert result.invented == tuple(f"any/{subject}" for subject in subjects)
    page = topic_page("environment", result)
    (at_top,) = [words for _, words in page.terminal_lines] if subjects else [""]
    assert ("Real sysfs, invented energy" in at_top) == bool(subjects)
    assert bool(page.terminal_lines) == bool(subjects)
    keys = [key for key, _ in values(result, "threats")]
    assert ("environment.invented_threat" in keys) == bool(subjects)


def test_load_of_other_programs_that_no_meter_read_is_reported(tmp_path: Path) -> None:
    evidence = evidence_with(tmp_path / "c")
    unread = replace(evidence, attempts=evidence.attempts.drop("other_load_share"))
    for one, expected in ((evidence, False), (unread, True)):
        result = environment(one)
        keys = [key for key, _ in values(result, "threats")]
        assert result.is_load_unmeasured == expected == ("environment.load_unmeasured" in keys)


def test_boots_are_counted_and_a_small_change_of_the_clock_is_none(tmp_path: Path) -> None:
    evidence = evidence_with(tmp_path / "c")
    assert environment(evidence).boots == 0
    runs = {}
    for number, (run, document) in enumerate(evidence.runs.items()):
        booted_s = 10 * (number % 2) + (1000 if number == 3 else 0)
        begin = {"realtime_ns": 2_000_000_000_000, "boottime_ns": int(1e12 - booted_s * 1e9)}
        runs[run] = {**document, "clocks": {**document["clocks"], "begin": [begin]}}
    assert environment(replace(evidence, runs=runs)).boots == 2
    assert environment(evidence).ended_on == "2023-11-14"


def test_only_a_virtual_machine_has_a_host_that_steals_time(tmp_path: Path) -> None:
    for is_virtual in (False, True):
        machine = Machine(("local",), is_virtual=is_virtual)
        result = Environment(True, machines=(machine,), steal_max=0.02)
        keys = [key for key, _ in values(result, "threats")]
        assert ("environment.steal_max" in keys) == is_virtual
