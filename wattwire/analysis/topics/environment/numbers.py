"""Describe the machines of a campaign, and what they and missing permissions do to its results."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.host_facts import meters_of
from wattwire.model.derived import column
from wattwire.model.validity import OTHER_LOAD

GIB = 1 << 30
BOOT_GAP_S = 30.0
"""Minimum time between two boots, in seconds. A smaller difference is an adjustment of the wall
clock.
"""
REAL_TIME = "SCHED_FIFO"
"""The scheduler that the link emulator requests."""
NO_CGROUPS = "none"
"""The mode of an agent that cannot create control groups."""


@dataclass(frozen=True)
class Machine:
    """A machine with the names of its hosts. Unknown facts are "" or None."""

    hosts: tuple[str, ...]
    processor: str = ""
    cpus: int | None = None
    memory_gib: float | None = None
    system: str = ""
    kernel: str = ""
    is_virtual: bool = False

    @property
    def is_known(self) -> bool:
        """Whether any fact is known."""
        texts = (self.processor, self.system, self.kernel)
        return any(texts) or self.memory_gib is not None or self.is_virtual


@dataclass(frozen=True)
class SharedConnection:
    """The most bytes per window of a host's ssh connection over the measured network.

    They are `counted` at the socket of "ssh", or in the "protocol" before ssh encrypts them.
    """

    host: str
    counted: str
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class Scheduler:
    """The scheduler of the link emulator in runs in which it lacked its permission."""

    name: str
    runs: int


@dataclass(frozen=True)
class Environment:
    """The machines and permissions; empty for imported runs, which do not record them.

    `boots` is 0 if the runs have no clocks. `ended_on` is the UTC date of the end of the last run
    in ISO format, "" if unknown. `steal_max` is the largest share of CPU time that the host of a
    virtual machine took in a valid run, None if unknown. `unseen` describes processes that no meter
    can read. `invented` lists what reports energy that nothing measured, as a test machine does.
    """

    is_measured: bool = False
    version: str = ""
    machines: tuple[Machine, ...] = ()
    boots: int = 0
    ended_on: str = ""
    steal_max: float | None = None
    connections: tuple[SharedConnection, ...] = ()
    schedulers: tuple[Scheduler, ...] = ()
    without_cgroups: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    is_load_unmeasured: bool = False

    @property
    def is_virtual(self) -> bool:
        """Whether the machine of the first host is virtual."""
        return bool(self.machines) and self.machines[0].is_virtual

    @property
    def known(self) -> tuple[Machine, ...]:
        """The machines with a known fact; all machines if there are several."""
        return tuple(m for m in self.machines if m.is_known or len(self.machines) > 1)


def environment(evidence: Evidence) -> Environment:
    """Return the machines of a campaign and the permissions on them."""
    ended_on = _ended_on(evidence)
    if evidence.imported:
        return Environment(ended_on=ended_on)
    hosts = evidence.reader.machine.get("hosts", {})
    versions = evidence.reader.machine.get("versions") or {}
    return Environment(
        True,
        str(versions.get("wattwire", "")),
        tuple(_machines(hosts)),
        _boots(evidence),
        ended_on,
        _steal_max(evidence),
        tuple(_connections(evidence)),
        tuple(_schedulers(evidence)),
        tuple(
            host
            for host, entry in hosts.items()
            if (entry.get("cgroup") or {}).get("rung") == NO_CGROUPS
        ),
        tuple(_unseen(evidence)),
        tuple(_invented(evidence)),
        bool(evidence.attempts.height)
        and not np.isfinite(column(evidence.attempts, OTHER_LOAD)).any(),
    )


def _machines(hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[Machine]:
    """Yield the machines, each with its hosts, which have the same boot."""
    hosts_of_boot: dict[str, list[str]] = {}
    for name, host in hosts.items():
        hosts_of_boot.setdefault(str(host.get("boot", name)), []).append(name)
    for names in hosts_of_boot.values():
        entries = hosts[names[0]].get("facts", [])
        facts = {str(fact["key"]): fact.get("value") for fact in entries}
        processor, memory = str(facts.get("cpu_name") or ""), facts.get("memory_total")
        yield Machine(
            tuple(names),
            processor,
            facts.get("cpus") or None,
            memory / GIB if isinstance(memory, int) else None,
            str(facts.get("operating_system") or ""),
            str(facts.get("kernel") or ""),
            facts.get("virtualisation") not in (None, "none", ""),
        )


def _boots(evidence: Evidence) -> int:
    """Return the number of boots during the runs, or 0 if the runs have no clocks."""
    boots_s = []
    for run in evidence.runs.values():
        for clocks in (run.get("clocks") or {}).get("begin", [])[:1]:
            if "boottime_ns" in clocks and "realtime_ns" in clocks:
                boots_s.append((clocks["realtime_ns"] - clocks["boottime_ns"]) / 1e9)
    boots_s.sort()
    gaps = sum(
        later - earlier > BOOT_GAP_S for earlier, later in zip(boots_s, boots_s[1:], strict=False)
    )
    return gaps + 1 if boots_s else 0


def _ended_on(evidence: Evidence) -> str:
    ends_ns = [
        int(clocks["realtime_ns"])
        for run in evidence.runs.values()
        for clocks in (run.get("clocks") or {}).get("end", [])
        if "realtime_ns" in clocks
    ]
    if not ends_ns:
        return ""
    end = datetime.datetime.fromtimestamp(max(ends_ns) / 1e9, datetime.timezone.utc)
    return end.date().isoformat()


def _steal_max(evidence: Evidence) -> float | None:
    shares = column(evidence.usable, "steal_share")
    shares = shares[np.isfinite(shares)]
    return float(shares.max()) if shares.size else None


def _connections(evidence: Evidence) -> Iterator[SharedConnection]:
    """Yield the most bytes that each connection over the measured network had in a window."""
    counts: dict[tuple[str, str], list[Mapping[str, int]]] = {}
    for run in evidence.usable["run"].to_list():
        for host, entry in (evidence.runs[run].get("hosts") or {}).items():
            if traffic := entry.get("management"):
                counted = "ssh" if "ssh" in traffic else "protocol"
                counts.setdefault((host, counted), []).append(traffic[counted])
    for (host, counted), of_runs in sorted(counts.items()):
        sent, received = (
            max(traffic[key] for traffic in of_runs) for key in ("sent_bytes", "received_bytes")
        )
        yield SharedConnection(host, counted, sent, received)


def _schedulers(evidence: Evidence) -> Iterator[Scheduler]:
    names = [evidence.runs[run].get("link_scheduler") for run in evidence.usable["run"]]
    for name in sorted({name for name in names if name} - {REAL_TIME}):
        yield Scheduler(name, names.count(name))


def _unseen(evidence: Evidence) -> Iterator[str]:
    infos = (meter.get("info") or {} for _, meter in meters_of(evidence.reader.machine))
    yield from filter(None, (info.get("unseen") for info in infos))


def _invented(evidence: Evidence) -> Iterator[str]:
    for _, meter in meters_of(evidence.reader.machine):
        for subject in (meter.get("info") or {}).get("invented", ()):
            yield f"{meter['name']}/{subject}"
