"""Find the reason why a treatment cannot be placed on the hosts of its rig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wattwire.catalog import Bridge, Middleware
from wattwire.model.deployment import (
    PATTERNS,
    hosts_of_part,
    hosts_of_roles,
    hosts_of_services,
)
from wattwire.model.errors import UsageError
from wattwire.model.flows import flow_parts
from wattwire.model.hosts.bridging import bridge_of
from wattwire.model.rig import Rig
from wattwire.model.study import RIG_FACTORS, Study
from wattwire.model.treatment import Treatment

NETWORK = "network"
"""Capability of cells whose nodes can run on several hosts (C-38)."""


def check_rig(study: Study) -> None:
    """Raise UsageError if the study needs a rig and has none, or a rig without placements."""
    named = [factor for factor in RIG_FACTORS if factor in {**study.factors, **study.fixed}]
    if named and not study.rig.is_from_file:
        raise UsageError(
            f"study {study.name}: {' and '.join(named)}: the levels are names of a rig, and there "
            "is none. Add --rig FILE, such as --rig rigs/three.toml (docs/rigs.md)."
        )
    if study.request is None and study.rig.is_from_file and not study.rig.placements:
        raise UsageError(
            f"study {study.name}: the rig has no placement, so no process has a host. Add "
            "[placements.NAME] to the rig file (docs/rigs.md)."
        )


def level_gap(treatment: Treatment, rig: Rig) -> str | None:
    """Return the reason if the rig lacks the treatment's network or placement, else None."""
    for factor, names in zip(RIG_FACTORS, (rig.networks, rig.placements), strict=True):
        level = treatment.get(factor)
        if rig.is_from_file and level is not None and level not in names:
            return f"the rig has no {factor} {level} (it has: {', '.join(names) or 'none'})"
    return None


def placing_gap(
    treatment: Treatment, middleware: Middleware, services: Sequence[str], study: Study
) -> str | None:
    """Return the reason if the nodes and `services` cannot run on their hosts, else None."""
    rig = study.rig
    if not rig.is_from_file:
        return None
    same = _same_placement(treatment, services, study)
    if same:
        return f"placement {treatment['placement']} has the same hosts as placement {same}"
    hosts = used_hosts(treatment, services, rig)
    if None in hosts:
        missing = ", ".join(_without_host(treatment, services, rig))
        return f"placement {treatment['placement']} names no host for {missing}"
    if len(hosts) == 1:
        levels = [level for level in study.factors.get("network", ()) if level in rig.networks]
        if levels and treatment["network"] != levels[0]:
            return f"all nodes are on {hosts[0]}; the network carries nothing"
        return None
    return _network_gap(treatment, [host for host in hosts if host], middleware, rig)


def bridge_gap(
    treatment: Treatment, bridge: Bridge, middleware: Middleware, rig: Rig
) -> str | None:
    """Return the reason if a bridge cannot carry the treatment's messages, else None."""
    name, pattern = bridge_of(treatment), PATTERNS[str(treatment["pattern"])]
    if bridge.middleware.name != middleware.name:
        return f"bridge {name} joins hosts with {bridge.middleware.name}, not {middleware.name}"
    if not pattern.has_positions:
        return (
            f"bridge {name} has a position in the path of a message, but pattern {pattern.name} "
            "has no positions; use a pattern with relays"
        )
    size, size_max = int(treatment["payload_bytes"]), bridge.payload_bytes_max
    if size_max is not None and size > size_max:
        return f"bridge {name} carries at most {size_max} bytes, not {size}"
    part, *others = flow_parts(treatment)
    if others:
        return f"bridge {name} carries one flow, not {1 + len(others)}; set bridge = none"
    counts = pattern.counts(treatment)
    roles = hosts_of_roles(part, rig)
    hosts = {host for role, host in roles.items() if counts[role] and host is not None}
    if len(hosts) == 1:
        (host,) = hosts
        return (
            f"all nodes are on {host}, so both ends of bridge {name} would be there and no "
            "message would pass it; place the nodes on several hosts, or set bridge = none"
        )
    return None


def _same_placement(treatment: Treatment, services: Sequence[str], study: Study) -> str | None:
    """Return the study's first placement that puts all processes on the same hosts, if earlier.

    For example, placements that differ only in relays are the same for a pattern without relays.
    """
    own = treatment.get("placement")
    levels = [
        level for level in study.factors.get("placement", ()) if level in study.rig.placements
    ]
    placed = _hosts_by_process(treatment, services, study.rig)
    for level in levels[: levels.index(own)] if own in levels else ():
        levels_of_other = {**dict(treatment.levels), "placement": level}
        other = replace(treatment, levels=tuple(levels_of_other.items()))
        if _hosts_by_process(other, services, study.rig) == placed:
            return str(level)
    return None


def _hosts_by_process(
    treatment: Treatment, services: Sequence[str], rig: Rig
) -> dict[str, str | None]:
    """Return role (FLOW.ROLE in a flow of a study) or service → host; roles without nodes lack."""
    present: dict[str, str | None] = {}
    for part in flow_parts(treatment):
        prefix = f"{part.name}." if part.name else ""
        present |= {f"{prefix}{name}": host for name, host in hosts_of_part(part, rig).items()}
    return {**present, **hosts_of_services(treatment, services, rig)}


def used_hosts(treatment: Treatment, services: Sequence[str], rig: Rig) -> list[str | None]:
    """Return the distinct hosts of a treatment's nodes and services; None for a missing host."""
    return list(dict.fromkeys(_hosts_by_process(treatment, services, rig).values()))


def _without_host(treatment: Treatment, services: Sequence[str], rig: Rig) -> Iterator[str]:
    for part in flow_parts(treatment):
        flow = f" of flow {part.name}" if part.name else ""
        hosts = hosts_of_part(part, rig)
        yield from (f"{name}{flow}" for name, host in hosts.items() if host is None)
    placed = hosts_of_services(treatment, services, rig)
    yield from (name for name, host in placed.items() if host is None)


def _network_gap(
    treatment: Treatment, hosts: Sequence[str], middleware: Middleware, rig: Rig
) -> str | None:
    """Return the reason if the treatment's network does not join its hosts, else None."""
    if middleware.reach != NETWORK:
        return f"{middleware.name} works only within one host"
    spec = rig.networks.get(str(treatment.get("network")))
    if spec is None:
        return f"the rig has no network, and the processes are on {', '.join(hosts)}"
    outside = [host for host in hosts if host not in spec.hosts]
    if outside:
        return f"network {spec.name} does not join {', '.join(outside)}"
    if spec.is_emulated and not set(hosts) & {*spec.near}:
        return (
            f"no frame passes the link of network {spec.name}: placement "
            f"{treatment['placement']} has no process on a near host ({', '.join(spec.near)})"
        )
    return None
