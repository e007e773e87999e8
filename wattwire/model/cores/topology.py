"""Define the CPUs of a machine, and how near two of them are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SAME_CPU, SIBLINGS, SHARED_CACHE, FURTHER = "same_cpu", "siblings", "shared_cache", "further"
NEARNESS = (SAME_CPU, SIBLINGS, SHARED_CACHE, FURTHER)
"""How near two CPUs are: one CPU, hardware threads of one core, cores under one last-level cache,
or further apart.
"""


@dataclass(frozen=True)
class Cpu:
    """A CPU in the sense of the kernel, which is a hardware thread. None is unknown."""

    cpu: int
    core: int | None = None
    package: int | None = None
    cache: int | None = None
    """First CPU that shares its last-level cache."""

    @property
    def core_key(self) -> tuple[Any, ...]:
        """Return what identifies its core. A CPU of an unknown core is a core of its own."""
        return (self.package, self.core) if self.core is not None else (None, None, self.cpu)


@dataclass(frozen=True)
class Machine:
    """The CPUs of a machine, and those that wattwire's processes may use there."""

    cpus: tuple[Cpu, ...]
    allowed: frozenset[int]

    @staticmethod
    def of(reply: Mapping[str, Any]) -> Machine:
        """Return the machine from an agent's reply to `cpus`."""
        keys = ("cpu", "core", "package", "cache")
        cpus = (Cpu(**{key: entry.get(key) for key in keys}) for entry in reply["cpus"])
        return Machine(tuple(cpus), frozenset(reply["allowed"]))

    @property
    def cores(self) -> list[tuple[int, ...]]:
        """Return the allowed CPUs of each core. Cores under one cache are neighbours."""
        usable = [cpu for cpu in self.cpus if cpu.cpu in self.allowed]
        usable.sort(key=lambda cpu: (cpu.package or 0, cpu.cache or 0, cpu.core or 0, cpu.cpu))
        by_core: dict[tuple[Any, ...], list[int]] = {}
        for cpu in usable:
            by_core.setdefault(cpu.core_key, []).append(cpu.cpu)
        return [tuple(cpus) for cpus in by_core.values()]

    @property
    def online(self) -> frozenset[int]:
        return frozenset(cpu.cpu for cpu in self.cpus)


def nearness(cpus: Iterable[Cpu]) -> dict[tuple[int, int], str]:
    """Return (CPU, CPU) → an entry of NEARNESS, for all pairs in both orders."""
    known = list(cpus)
    return {(one.cpu, other.cpu): _nearness(one, other) for one in known for other in known}


def _nearness(one: Cpu, other: Cpu) -> str:
    if one.cpu == other.cpu:
        return SAME_CPU
    if one.core_key == other.core_key:
        return SIBLINGS
    if one.cache is not None and one.cache == other.cache:
        return SHARED_CACHE
    return FURTHER
