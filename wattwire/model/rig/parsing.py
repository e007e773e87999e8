"""Parse and validate the document of a rig."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, names, number, read_table
from wattwire.model.rig.rig import (
    KERNEL,
    KINDS,
    LOCAL,
    NATIVE,
    NETNS,
    SHARED,
    SSH,
    HostSpec,
    NetworkSpec,
    PlacementSpec,
    Rig,
)

TABLES = ("hosts", "networks", "placements")
METERS = "meters"
SSH_CONFIG = "ssh_config"
ENGINES = (KERNEL, "emulator")
MANAGEMENT = (SHARED,)
LOOPBACK = "lo"
DEVICE_CHARS_MAX = 15
"""Maximum length of the name of a network interface (IFNAMSIZ − 1)."""
NAME_CHARS_MAX = 31
CLOCK_OFFSET_S_MAX = 1e9
SUBNETS = ipaddress.IPv4Network("10.77.0.0/16")
"""The networks without `subnet` get the parts of this range in their order."""
SUBNET_BITS = 24
EXAMPLE = "see docs/rigs.md and rigs/three.toml"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{NAME_CHARS_MAX - 1}}}")
_DEVICE = f"the name of a network interface: 1 to {DEVICE_CHARS_MAX} characters, no slash or space"
_LIST = "a list of hosts"


def _is_device(name: str) -> bool:
    has_legal_characters = name.isascii() and name.isprintable() and not set(name) & {"/", " ", ":"}
    return 0 < len(name) <= DEVICE_CHARS_MAX and has_legal_characters and name not in (".", "..")


def _is_offset(offset_s: float) -> bool:
    return math.isfinite(offset_s) and abs(offset_s) <= CLOCK_OFFSET_S_MAX


@dataclass(frozen=True)
class _HostTable:
    kind: str = given(", ".join(KINDS), LOCAL, allows=KINDS.__contains__)
    to: str = given("a destination of ssh, such as user@machine", "")
    interface: str = given(_DEVICE, "", allows=_is_device)
    clock_offset_s: float = number(f"±{CLOCK_OFFSET_S_MAX:g} s", _is_offset, 0.0)
    management: str = given(", ".join(MANAGEMENT), "", allows=MANAGEMENT.__contains__)


@dataclass(frozen=True)
class _NetworkTable:
    link: str = given(f"{NATIVE}, or the name of a link profile", NATIVE, allows=bool)
    hosts: tuple[str, ...] = names(_LIST)
    near: tuple[str, ...] = names(_LIST)
    subnet: str = given("an IPv4 network, such as 10.77.0.0/24", "", allows=bool)
    interfaces: dict[str, str] = given("a table: host = interface", {})
    engine: str = given(", ".join(ENGINES), "", allows=ENGINES.__contains__)


def read_rig(
    document: Mapping[str, Any],
    source: str,
    links: Collection[str] | None = None,
    placed: Collection[str] | None = None,
) -> Rig:
    """Return the validated rig of a document.

    `source` names the document in errors. `links` are the known link profiles, and `placed` the
    known keys of placements. None accepts every name, as for the stored rig of a campaign, which
    another machine may read. Raises UsageError with the position, the value and what is allowed.
    """
    for key in document:
        if key not in (*TABLES, METERS, SSH_CONFIG):
            raise unknown(source, "key", key, (*TABLES, METERS, SSH_CONFIG))
    tables = {key: _tables(document, key, source) for key in TABLES}
    if not tables["hosts"]:
        raise UsageError(
            f"{source}: hosts: found none; allowed: a table [hosts] with at least one host, such "
            f'as robot = {{kind = "{NETNS}"}}; {EXAMPLE}'
        )
    hosts = {
        name: _read_host(name, table, f"{source}: hosts.{name}")
        for name, table in tables["hosts"].items()
    }
    _check_local_hosts(hosts, source)
    networks = _read_networks(tables["networks"], hosts, source, links)
    placements = {
        name: _read_placement(name, table, f"{source}: placements.{name}", hosts, placed)
        for name, table in tables["placements"].items()
    }
    config = _read_ssh_config(document, hosts, source)
    meters = document.get(METERS, {})
    if not isinstance(meters, Mapping):
        raise UsageError(
            f"{source}: {METERS}: found {meters!r}; allowed: a table [{METERS}]; {EXAMPLE}"
        )
    return Rig(hosts, networks, placements, config, dict(meters), source, dict(document))


def _read_ssh_config(
    document: Mapping[str, Any], hosts: Mapping[str, HostSpec], source: str
) -> str:
    if SSH_CONFIG not in document:
        return ""
    path = document[SSH_CONFIG]
    if not isinstance(path, str) or not path.strip() or not path.isprintable():
        raise UsageError(
            f"{source}: {SSH_CONFIG}: found {path!r}; allowed: the path of a configuration file of "
            "ssh, relative to the rig file"
        )
    if not any(host.kind == SSH for host in hosts.values()):
        raise UsageError(
            f"{source}: {SSH_CONFIG}: found {path!r} in a rig without a host of kind {SSH}; "
            f"allowed: only with such a host. Remove {SSH_CONFIG}, or change a kind."
        )
    return path


def _tables(document: Mapping[str, Any], key: str, source: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables below a key. Raises UsageError for other values and invalid names."""
    tables = document.get(key, {})
    if not isinstance(tables, Mapping):
        raise UsageError(f"{source}: {key}: found {tables!r}; allowed: a table [{key}]; {EXAMPLE}")
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise UsageError(f"{source}: {key}.{name}: found {table!r}; allowed: a table")
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{source}: {key}: found the name {name!r}; allowed: 1 to {NAME_CHARS_MAX} "
                "letters, digits, - and _, of which the first is a letter or a digit"
            )
    return tables


def _read_host(name: str, table: Mapping[str, Any], place: str) -> HostSpec:
    host = read_table(_HostTable, table, place, dot=".")
    if host.kind == SSH and not host.to:
        raise UsageError(
            f"{place}.to: found nothing; allowed with kind {SSH}: a destination of ssh, such as "
            "user@machine. Add it, or choose another kind."
        )
    kinds = {
        "to": (SSH,), "interface": (LOCAL, SSH), "clock_offset_s": (NETNS,), "management": (SSH,),
    }  # fmt: skip
    for key, allowed in kinds.items():
        if key in table and host.kind not in allowed:
            raise UsageError(
                f"{place}.{key}: found {table[key]!r} on a host of kind {host.kind}; allowed only "
                f"for the kind {' or '.join(allowed)}. Remove {key}, or change the kind."
            )
    if host.to.startswith("-") or any(c.isspace() or not c.isprintable() for c in host.to):
        raise UsageError(
            f"{place}.to: found {host.to!r}; allowed: a destination of ssh without spaces, such as "
            "user@machine. Options belong in the ssh configuration (~/.ssh/config)."
        )
    return HostSpec(name, **vars(host))


def _check_local_hosts(hosts: Mapping[str, HostSpec], source: str) -> None:
    local = [host.name for host in hosts.values() if host.kind == LOCAL]
    if len(local) > 1:
        raise UsageError(
            f"{source}: hosts: {' and '.join(local)} have the kind {LOCAL}, which is this machine; "
            f"allowed: one such host. Give the others the kind {NETNS} or {SSH}."
        )


def _read_networks(
    tables: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, HostSpec],
    source: str,
    links: Collection[str] | None,
) -> dict[str, NetworkSpec]:
    specs = [
        _read_network(name, table, f"{source}: networks.{name}", hosts, links)
        for name, table in tables.items()
    ]
    taken = {s.name: ipaddress.IPv4Network(s.subnet) for s in specs if s.subnet}
    _check_subnets(taken, source)
    free = (
        part
        for part in SUBNETS.subnets(new_prefix=SUBNET_BITS)
        if not any(part.overlaps(subnet) for subnet in taken.values())
    )
    return {
        spec.name: spec
        if spec.interfaces or spec.subnet
        else _with_subnet(spec, free, f"{source}: networks.{spec.name}")
        for spec in specs
    }


def _read_network(
    name: str,
    table: Mapping[str, Any],
    place: str,
    hosts: Mapping[str, HostSpec],
    links: Collection[str] | None,
) -> NetworkSpec:
    network = read_table(_NetworkTable, table, place, dot=".")
    if network.link != NATIVE and links is not None and network.link not in links:
        raise unknown(place, "link", network.link, [*links, NATIVE])
    for key in ("hosts", "near", "interfaces"):
        for host in getattr(network, key):
            if host not in hosts:
                raise unknown(f"{place}.{key}", "host", host, hosts)
    joined = network.hosts or tuple(network.interfaces) or tuple(hosts)
    if len(joined) < 2:
        raise UsageError(
            f"{place}.hosts: found {', '.join(joined) or 'nothing'}; allowed: two or more hosts, "
            "because a network joins hosts. Add a host, or remove the network."
        )
    spec = NetworkSpec(
        name, network.link, joined, network.near, network.subnet,
        network.interfaces, network.engine,
    )  # fmt: skip
    kinds = {hosts[host].kind for host in joined}
    if kinds == {NETNS}:
        return _between_namespaces(spec, table, place)
    if NETNS in kinds:
        raise UsageError(
            f"{place}.hosts: found hosts of the kinds {', '.join(sorted(kinds))}; allowed: either "
            f"only the kind {NETNS}, or none of it, because wattwire creates the interfaces of "
            "namespaces and no interface joins them to other hosts. Set hosts = [...] to the hosts "
            "of this network."
        )
    return _between_machines(spec, hosts, place)


def _between_namespaces(spec: NetworkSpec, table: Mapping[str, Any], place: str) -> NetworkSpec:
    """Return a network whose interfaces wattwire creates. Raises UsageError for wrong keys."""
    if spec.interfaces:
        raise UsageError(
            f"{place}.interfaces: found {dict(spec.interfaces)!r}; allowed for hosts of kind "
            f"{NETNS}: nothing, because wattwire creates their interfaces. Remove the key."
        )
    if spec.name == LOOPBACK or not _is_device(spec.name):
        raise UsageError(
            f"{place}: found the name {spec.name!r} ({len(spec.name)} characters); allowed: up to "
            f"{DEVICE_CHARS_MAX} characters and not {LOOPBACK}, because it is also the name of the "
            "network's interfaces. Choose a shorter name."
        )
    for key in ("near", "engine"):
        if key in table and not spec.is_emulated:
            raise UsageError(
                f"{place}.{key}: found {table[key]!r}; allowed only with an emulated link. "
                f"Remove {key}, or set link to a profile (wattwire list links)."
            )
    outside = next((host for host in spec.near if host not in spec.hosts), None)
    if outside is not None:
        raise unknown(f"{place}.near", "host of this network", outside, spec.hosts)
    near = spec.near or (spec.hosts[:1] if spec.is_emulated else ())
    if spec.subnet:
        _check_subnet(spec, f"{place}.subnet")
    return NetworkSpec(spec.name, spec.link, spec.hosts, near, spec.subnet, {}, spec.engine)


def _between_machines(spec: NetworkSpec, hosts: Mapping[str, HostSpec], place: str) -> NetworkSpec:
    """Return a network of existing interfaces. Raises UsageError for wrong or missing keys."""
    created = {"near": spec.near, "subnet": spec.subnet, "engine": spec.engine}
    if spec.is_emulated:
        created = {"link": spec.link, **created}
    for key, value in created.items():
        if value:
            raise UsageError(
                f"{place}.{key}: found {value!r}; allowed only for a network of hosts of kind "
                f"{NETNS}, because wattwire does not change the interfaces of other hosts. Remove "
                f"{key}, or use hosts of kind {NETNS}."
            )
    for host, device in spec.interfaces.items():
        if host not in spec.hosts:
            raise unknown(f"{place}.interfaces", "host of this network", host, spec.hosts)
        if not isinstance(device, str) or not _is_device(device):
            raise UsageError(f"{place}.interfaces.{host}: found {device!r}; allowed: {_DEVICE}")
    devices = {host: spec.interfaces.get(host) or hosts[host].interface for host in spec.hosts}
    for host, device in devices.items():
        if not device:
            raise UsageError(
                f"{place}: found no interface of host {host}; allowed: {_DEVICE}. Set it in "
                f"{place}.interfaces.{host}, or as hosts.{host}.interface."
            )
    return NetworkSpec(spec.name, NATIVE, spec.hosts, (), "", devices, "")


def _check_subnet(spec: NetworkSpec, place: str) -> None:
    try:
        subnet = ipaddress.IPv4Network(spec.subnet)
    except ValueError as error:
        raise UsageError(
            f"{place}: found {spec.subnet!r} ({error}); allowed: an IPv4 network, such as {SUBNETS}"
        ) from error
    if subnet.is_loopback or subnet.is_multicast or subnet.is_unspecified or subnet.is_link_local:
        raise UsageError(
            f"{place}: found {spec.subnet}, which is reserved; allowed: a private IPv4 network, "
            f"such as {SUBNETS}"
        )
    _check_size(spec, subnet, place)


def _check_size(spec: NetworkSpec, subnet: ipaddress.IPv4Network, place: str) -> None:
    hosts_max = subnet.num_addresses - 2
    if len(spec.hosts) > hosts_max:
        raise UsageError(
            f"{place}: found {subnet}, which has addresses for {max(0, hosts_max)} hosts; allowed: "
            f"a network for the {len(spec.hosts)} hosts of {spec.name}"
        )


def _check_subnets(subnets: Mapping[str, ipaddress.IPv4Network], source: str) -> None:
    """Raise UsageError for two networks that share addresses."""
    earlier: dict[str, ipaddress.IPv4Network] = {}
    for name, subnet in subnets.items():
        for other, taken in earlier.items():
            if subnet.overlaps(taken):
                raise UsageError(
                    f"{source}: networks.{name}.subnet: found {subnet}, which overlaps {taken} of "
                    f"networks.{other}; allowed: subnets without common addresses. Change one, or "
                    "remove both: wattwire then chooses them."
                )
        earlier[name] = subnet


def _with_subnet(
    spec: NetworkSpec, free: Iterator[ipaddress.IPv4Network], place: str
) -> NetworkSpec:
    subnet = next(free, None)
    if subnet is None:
        raise UsageError(
            f"{place}: no part of {SUBNETS} is free; set subnet to another private IPv4 network"
        )
    _check_size(spec, subnet, place)
    return NetworkSpec(spec.name, spec.link, spec.hosts, spec.near, str(subnet), {}, spec.engine)


def _read_placement(
    name: str,
    table: Mapping[str, Any],
    place: str,
    hosts: Mapping[str, HostSpec],
    placed: Collection[str] | None,
) -> PlacementSpec:
    if not table:
        raise UsageError(
            f'{place}: found nothing; allowed: role = "host" or service = "host"; {EXAMPLE}'
        )
    for key, host in table.items():
        if placed is not None and key not in placed:
            raise unknown(place, "role or service", key, placed)
        if not isinstance(host, str):
            raise UsageError(f"{place}.{key}: found {host!r}; allowed: the name of a host")
        if host not in hosts:
            raise unknown(f"{place}.{key}", "host", host, hosts)
    return PlacementSpec(name, dict(table))
