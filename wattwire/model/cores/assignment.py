"""Assign the processes of a run to the CPUs of a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wattwire.model.cores.levels import ANY, APART, FREE, SAME, listed_cpus
from wattwire.model.cores.topology import Machine
from wattwire.model.errors import WattwireError
from wattwire.model.words import listed, plural


class CoresGapError(WattwireError):
    """Error for a level that a machine or a treatment does not allow."""


@dataclass(frozen=True)
class Assignment:
    """The CPUs of a run's processes on one machine."""

    cpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Process → its CPUs. Other processes use those of the agent."""
    kept_free: tuple[int, ...] = ()
    """CPUs that the agent and the controller leave to these processes."""
    remarks: tuple[str, ...] = ()
    """Sentences on what the machine has too few cores for."""


def assign(
    level: str, nodes: Mapping[str, str], others: Mapping[str, str], machine: Machine
) -> Assignment:
    """Return the CPUs of the processes of a run.

    `level` is a level of `cores` in its normal form. `nodes` maps the process of each node to its
    role, `others` that of each service and bridge to its name. Raises CoresGapError with the reason
    if the machine or the treatment does not allow the level.
    """
    if level == FREE:
        return Assignment()
    cores = machine.cores
    if level == SAME:
        return _same([*nodes, *others], cores)
    if level == APART:
        return _apart([*nodes], [*others], cores)
    return _listed(level, {**nodes, **others}, machine)


def _same(processes: Sequence[str], cores: Sequence[tuple[int, ...]]) -> Assignment:
    """Place all processes on one CPU, and leave its siblings idle."""
    last = cores[-1]
    if len(cores) > 1:
        return Assignment(dict.fromkeys(processes, last[:1]), kept_free=last)
    remark = "the machine has one core, which the nodes share with wattwire's agent"
    return Assignment(dict.fromkeys(processes, last[:1]), remarks=(remark,))


def _apart(
    nodes: Sequence[str], others: Sequence[str], cores: Sequence[tuple[int, ...]]
) -> Assignment:
    """Place each node on a core of its own; services and bridges too where there are enough.

    The last cores are used, because interrupts often go to the first one.
    """
    places = [core[:1] for core in reversed(cores)]
    remarks = []
    if len(places) < len(nodes):  # siblings share the units of their core
        places += [(cpu,) for core in reversed(cores) for cpu in core[1:]]
        remarks.append("nodes share cores as hardware threads, because there are more than cores")
    if len(places) < len(nodes):
        raise CoresGapError(
            f"cores = {APART} needs a CPU for each of {plural(len(nodes), 'node')}, and "
            f"{plural(len(places), 'CPU')} can be used; use fewer nodes, or cores = {SAME}"
        )
    cpus = dict(zip(nodes, places, strict=False))
    left = places[len(nodes) :]
    if others and len(left) >= len(others):
        cpus |= zip(others, left, strict=False)
        left = left[len(others) :]
    elif others:
        text = listed([*others])
        remarks.append(f"too few cores for {text}, which the scheduler places on any of them")
    used = {cpu for taken in cpus.values() for cpu in taken}
    kept_free = tuple(sorted(cpu for core in cores if used & {*core} for cpu in core))
    if len(kept_free) == sum(map(len, cores)):
        kept_free = ()
        remarks.append("no core is left, so wattwire's agent shares those of the nodes")
    return Assignment(cpus, kept_free, tuple(remarks))


def _listed(level: str, names: Mapping[str, str], machine: Machine) -> Assignment:
    """Place each process on the CPUs of its own name, of its role or service, or of ANY."""
    lists = listed_cpus(level)
    known = {*names, *names.values(), ANY}
    unknown = [name for name in lists if name not in known]
    if unknown:
        raise CoresGapError(
            f"cores = {level}: found {listed(unknown)}; allowed: {listed(sorted(known))}"
        )
    requested = {cpu for cpus in lists.values() for cpu in cpus}
    absent = sorted(requested - machine.online)
    if absent:
        raise CoresGapError(
            f"cores = {level}: found CPU {listed([*map(str, absent)])}; online are "
            f"{listed([*map(str, sorted(machine.online))])}"
        )
    outside = sorted(requested - machine.allowed)
    if outside:
        raise CoresGapError(
            f"cores = {level}: found CPU {listed([*map(str, outside)])}; wattwire may use "
            f"{listed([*map(str, sorted(machine.allowed))])} (taskset or a cpuset restricts it)"
        )
    cpus = {}
    for process, name in names.items():
        own = lists.get(process) or lists.get(name) or lists.get(ANY)
        if own:
            cpus[process] = own
    remaining = machine.allowed - requested
    return Assignment(cpus, tuple(sorted(requested)) if remaining else ())
