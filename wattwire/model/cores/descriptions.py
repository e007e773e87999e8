"""Describe what each level of `cores` means on a machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wattwire.model.cores.assignment import CoresGapError, assign
from wattwire.model.cores.levels import APART, CORES, FREE, SAME
from wattwire.model.cores.topology import Machine
from wattwire.model.treatment import Level
from wattwire.model.words import listed, plural

PAIR = {"one node": "", "the other": ""}
"""Two nodes, which each pattern has at least."""


def core_lines(levels: Sequence[Level], machine: Machine) -> list[str]:
    """Return a line per level: where two nodes of a run would be executed."""
    return [f"{CORES} = {level}: {_meaning(str(level), machine)}" for level in levels]


def machine_words(machine: Machine) -> str:
    """Return the cores of a machine, with their CPUs if a core has several."""
    cores = machine.cores
    text = f"{plural(len(cores), 'core')} for nodes: CPU {_cpus(c for core in cores for c in core)}"
    if any(len(core) > 1 for core in cores):
        text += f" (hardware threads of a core: {'; '.join(map(_cpus, cores))})"
    if machine.online - machine.allowed:
        text += f"; taskset or a cpuset excludes CPU {_cpus(machine.online - machine.allowed)}"
    return text


def _meaning(level: str, machine: Machine) -> str:
    if level == FREE:
        return f"the scheduler chooses among CPU {_cpus(machine.allowed)}"
    if level not in (SAME, APART):
        return "these CPUs"
    try:
        assigned = assign(level, PAIR, {}, machine)
    except CoresGapError as error:
        return f"not possible here ({error})"
    used = dict.fromkeys(cpu for cpus in assigned.cpus.values() for cpu in cpus)
    if level == SAME:
        text = f"all nodes on CPU {_cpus(used)}"
    else:
        text = f"each node on a CPU of its own, such as {listed([*map(str, used)])}"
    return "; ".join([text, *assigned.remarks])


def _cpus(cpus: Iterable[int]) -> str:
    """Return CPUs as a list of the kernel, such as "0-3,8"."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in ranges)
