"""List what was measured with: meters, plan, validity limits, fixed settings and machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.host_facts import meters_of
from wattwire.analysis.topics.settings.nested_tables import pairs
from wattwire.model import words
from wattwire.model.validity import VALIDITY


@dataclass(frozen=True)
class Meter:
    """The state of a meter on a host. If it is absent: the reason, and how to enable it."""

    host: str
    meter: str
    state: str
    reason: str = ""
    grant: str = ""


@dataclass(frozen=True)
class Conduct:
    """How the runs were conducted, in one of three ways.

    A setting of the study has `key` and `value`. A baseline has its name and the median of its
    length. The third is the number of attempts that were repetitions.
    """

    key: str | None = None
    value: str | None = None
    baseline: str = ""
    median_s: float | None = None
    retried: int = 0


@dataclass(frozen=True)
class Cgroup:
    """The mode of control groups on a host, and what it cannot measure."""

    rung: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class MachineFact:
    """A fact on a host (`key`), or on the software `version_of`; a `cgroup` has no value."""

    host: str
    key: str | None
    value: str | None
    unit: str = ""
    version_of: str = ""
    cgroup: Cgroup | None = None


def meters(evidence: Evidence) -> list[Meter]:
    """Return the meters of all hosts, absent ones first; none of imported campaigns."""
    if evidence.imported:  # an imported campaign did not use wattwire's meters
        return []
    entries = [
        Meter(
            host,
            meter["name"],
            meter["state"],
            str(meter.get("reason") or ""),
            str(meter.get("grant") or ""),
        )
        for host, meter in meters_of(evidence.reader.machine)
    ]
    return sorted(entries, key=lambda entry: (entry.state == "present", entry.meter))


def conduct(evidence: Evidence) -> Iterator[Conduct]:
    """Yield the study's plan, validity limits and fixed settings, and what the runs had."""
    for table in ("plan", VALIDITY, "fixed"):
        for key, value in sorted(evidence.study.stated(table).items()):
            yield Conduct(f"{table}.{key}", words.plain(value))
    for name, length_s in _baseline_lengths_s(evidence).items():
        yield Conduct(baseline=name, median_s=length_s)
    attempts = evidence.attempts.iter_rows(named=True)
    yield Conduct(retried=sum((attempt.get("attempt") or 1) > 1 for attempt in attempts))


def _baseline_lengths_s(evidence: Evidence) -> dict[str, float]:
    """Return the median length (s) of each baseline over the runs."""
    lengths_s: dict[str, list[float]] = {}
    for run in evidence.runs.values():
        for name, span in (run.get("baselines") or {}).items():
            if span and span.get("end_ns") is not None and span.get("begin_ns") is not None:
                lengths_s.setdefault(name, []).append((span["end_ns"] - span["begin_ns"]) / 1e9)
    return {name: float(np.median(values_s)) for name, values_s in lengths_s.items()}


def machine_facts(machine: Mapping[str, Any]) -> Iterator[MachineFact]:
    """Yield the facts, control groups and rights of each host, and the versions of software."""
    for host, entry in machine.get("hosts", {}).items():
        for fact in entry.get("facts", []):
            value, unit = words.plain(fact.get("value")), str(fact.get("unit") or "")
            yield MachineFact(host, str(fact["key"]), value, unit)
        if cgroup := entry.get("cgroup"):
            lost = tuple(str(item) for item in cgroup.get("lost", []))
            mode = Cgroup(str(cgroup.get("rung")), lost)
            yield MachineFact(host, "cgroup", None, cgroup=mode)
        rights = entry.get("rights")
        if isinstance(rights, Mapping):
            yield MachineFact(host, "rights", pairs(rights))
    for software, version in (machine.get("versions") or {}).items():
        yield MachineFact("", None, words.plain(version), version_of=software)
