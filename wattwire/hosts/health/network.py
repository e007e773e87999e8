"""Check the networks of a rig while they are up: devices, routes, multicast and fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.hosts.health.finding import (
    MISSING,
    OTHER_RIG,
    Finding,
    as_root,
    finding,
    json_of,
    kernel_values,
    output_of,
)
from wattwire.hosts.host import Host
from wattwire.hosts.hosts import LiveNetwork

FRAGMENTS = "net.ipv4.ipfrag_high_thresh"
FRAGMENTS_TIME = "net.ipv4.ipfrag_time"
DATAGRAM_BYTES = 65_536
INCOMPLETE_PER_S_MIN = 100.0
"""Incomplete datagrams per second that the kernel keeps without dropping others. The default of
Linux, 4 MiB and 30 s, gives 2.
"""
FRAGMENTS_BYTES, FRAGMENTS_S = 128 << 20, 3
GROUP = "239.255.0.1"
HEADERS_BYTES = 28
"""Bytes of the headers of IPv4 and UDP."""
OFFLOADS = {
    "tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro", "large-receive-offload": "lro",
}  # fmt: skip
"""Feature of `ethtool -k` → its option of `ethtool -K`."""


def fragment_finding(host: Host) -> Finding:
    """Return the kernel's limits on the fragments of large datagrams (per network namespace)."""
    values = kernel_values(host, [FRAGMENTS, FRAGMENTS_TIME])
    if len(values) < 2:
        return finding(host, "fragments", "not readable: the kernel has no such limits here")
    high_bytes, time_s = values[FRAGMENTS], values[FRAGMENTS_TIME]
    evidence = f"{FRAGMENTS} = {high_bytes}, {FRAGMENTS_TIME} = {time_s}"
    incomplete_per_s = high_bytes / DATAGRAM_BYTES / max(1, time_s)
    if incomplete_per_s >= INCOMPLETE_PER_S_MIN:
        return finding(host, "fragments", evidence)
    return finding(
        host, "fragments", evidence,
        f"datagrams above the MTU travel in fragments. After {incomplete_per_s:.2g} incomplete "
        f"ones of {DATAGRAM_BYTES} bytes per second, their memory is full and the kernel drops "
        f"complete ones, for up to {time_s} s",
        as_root(host, f"sysctl -w {FRAGMENTS}={FRAGMENTS_BYTES} {FRAGMENTS_TIME}={FRAGMENTS_S}",
                in_network=True),
        f"payload_bytes below and above the MTU on a lossy network; {OTHER_RIG}",
    )  # fmt: skip


def network_findings(network: LiveNetwork, hosts: Mapping[str, Host]) -> Iterator[Finding]:
    """Yield the findings on the devices of a network that is up."""
    joined = {name: hosts[name] for name in network.addresses}
    interfaces = {
        name: {entry["name"]: entry for entry in host.agent.request("addresses")["interfaces"]}
        for name, host in joined.items()
    }
    yield from _mtu_findings(network, joined, interfaces)
    for name, host in joined.items():
        device = network.interfaces[name]
        yield from _offload_findings(host, device, network.name)
        yield from _wireless_findings(host, device, network.name)
        yield _multicast_finding(host, device, network.name)
        yield _route_finding(host, device, network)
        yield _other_interface_finding(host, device, network, interfaces[name])


def _mtu_findings(
    network: LiveNetwork, hosts: Mapping[str, Host], interfaces: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    mtus = {name: int(interfaces[name][network.interfaces[name]]["mtu"]) for name in hosts}
    lowest = min(mtus.values())
    for name, mtu in mtus.items():
        device = network.interfaces[name]
        evidence = f"{device}: {mtu} bytes"
        if mtu == lowest == max(mtus.values()):
            yield finding(hosts[name], "MTU", evidence, network=network.name)
            continue
        others = ", ".join(f"{other} {size}" for other, size in mtus.items() if other != name)
        yield finding(
            hosts[name], "MTU", f"{evidence}; {others}",
            "the hosts of the network disagree: frames above the lowest MTU are dropped without "
            "a message, so large messages stall or are lost and small ones pass",
            as_root(hosts[name], f"ip link set dev {device} mtu {lowest}", in_network=True),
            f"payload_bytes below and above {lowest - HEADERS_BYTES}", network.name,
        )  # fmt: skip


def _offload_findings(host: Host, device: str, network: str) -> Iterator[Finding]:
    text = output_of(host, "ethtool", "-k", device)
    if text is None:
        if host.which("ethtool") is None:
            yield finding(
                host, "offloads", "no ethtool on the host", "the offloads are not known",
                as_root(host, "apt-get install ethtool"), OTHER_RIG, network,
            )  # fmt: skip
        return
    lines = (line.partition(":") for line in text.splitlines())
    states = {name.strip(): value.split()[0] for name, _, value in lines if value.split()}
    on = [option for feature, option in OFFLOADS.items() if states.get(feature) == "on"]
    evidence = f"{device}: on: {', '.join(on) or 'none'}"
    if not on:
        yield finding(host, "offloads", evidence, network=network)
        return
    off = " ".join(f"{option} off" for option in on)
    yield finding(
        host, "offloads", evidence,
        "the device or the kernel joins and splits segments: one system call moves many frames, "
        "and frames wait to be joined, so CPU time per byte falls and small latencies change",
        as_root(host, f"ethtool -K {device} {off}", in_network=True),
        f"payload_bytes and rate_hz; {OTHER_RIG}", network,
    )  # fmt: skip


def _wireless_findings(host: Host, device: str, network: str) -> Iterator[Finding]:
    """Yield power save and rate of a Wi-Fi device."""
    info = output_of(host, "iw", "dev", device, "info")
    if info is None:
        table = output_of(host, "cat", "/proc/net/wireless") or ""
        if f"{device}:" in table and host.which("iw") is None:
            yield finding(
                host, "Wi-Fi", f"{device} is a Wi-Fi device; no iw on the host",
                "power save and rate are not known", as_root(host, "apt-get install iw"),
                OTHER_RIG, network,
            )  # fmt: skip
        return
    power_save = output_of(host, "iw", "dev", device, "get", "power_save") or "unknown"
    link = output_of(host, "iw", "dev", device, "link") or ""
    yield from wireless_findings(host, device, power_save, link, network)


def wireless_findings(
    host: Host, device: str, power_save: str, link: str, network: str
) -> Iterator[Finding]:
    """Yield the findings on outputs of `iw dev DEVICE get power_save` and `iw dev DEVICE link`."""
    lines = [line.strip() for line in link.splitlines()]
    rates = [line for line in lines if line.startswith(("signal", "tx bitrate", "rx bitrate"))]
    evidence = f"{device}: {', '.join(rates) or 'not connected'}"
    yield finding(host, "Wi-Fi rate", evidence, network=network)
    evidence = f"{device}: {power_save.strip()}"
    if not power_save.strip().endswith("on"):
        yield finding(host, "Wi-Fi power save", evidence, network=network)
        return
    yield finding(
        host, "Wi-Fi power save", evidence,
        "the device sleeps between beacons (100 ms): frames to it wait, most at low rates",
        as_root(host, f"iw dev {device} set power_save off"), f"rate_hz; {OTHER_RIG}", network,
    )  # fmt: skip


def _multicast_finding(host: Host, device: str, network: str) -> Finding:
    described = json_of(host, "ip", "-json", "link", "show", "dev", device)
    if not described:
        return finding(
            host, "multicast", "not readable: no ip of iproute2 on the host",
            "flags and routes are not known", as_root(host, "apt-get install iproute2"),
            OTHER_RIG, network,
        )  # fmt: skip
    cause = "discovery by multicast finds no peer through this device"
    factor = "a middleware with discovery by multicast against one with fixed peers"
    if "MULTICAST" not in described[0].get("flags", []):
        command = as_root(host, f"ip link set dev {device} multicast on", in_network=True)
        return finding(
            host, "multicast", f"{device}: off", cause, command, factor, network
        )  # fmt: skip
    routes = json_of(host, "ip", "-json", "route", "get", GROUP)
    used = routes[0].get("dev", "") if routes else ""
    evidence = f"{device}: on, {GROUP} leaves through {used or 'no device'}"
    if used == device:
        return finding(host, "multicast", evidence, network=network)
    command = as_root(host, f"ip route replace 224.0.0.0/4 dev {device}", in_network=True)
    return finding(host, "multicast", evidence, f"{cause}, unless a socket names it", command,
                   factor, network)  # fmt: skip


def _route_finding(host: Host, device: str, network: LiveNetwork) -> Finding:
    """Return the devices through which packets to the other hosts of the network leave."""
    own = network.addresses[host.name]
    peers = {name: a for name, a in network.addresses.items() if name != host.name and a != own}
    paths, wrong = [], []
    for peer, address in peers.items():
        routes = json_of(host, "ip", "-json", "route", "get", address)
        used = routes[0].get("dev", "") if routes else ""
        via = f" via {routes[0]['gateway']}" if routes and "gateway" in routes[0] else ""
        paths.append(f"{peer} ({address}) through {used or 'no device'}{via}")
        if used != device:
            wrong.append(f"{address}/32")
    evidence = "; ".join(paths) or "no other address"
    if not wrong:
        return finding(host, "routes", evidence, network=network.name)
    commands = [f"ip route replace {address} dev {device}" for address in wrong]
    return finding(
        host, "routes", evidence,
        f"this traffic does not pass {device}, so the study does not measure this network",
        "; ".join(as_root(host, command, in_network=True) for command in commands),
        "network: its levels would show no difference", network.name, MISSING,
    )  # fmt: skip


def _other_interface_finding(
    host: Host, device: str, network: LiveNetwork, interfaces: Mapping[str, Any]
) -> Finding:
    others = [
        f"{name} ({entry['ipv4'][0]['address']})"
        for name, entry in interfaces.items()
        if name != device and entry["up"] and not entry["loopback"] and entry["ipv4"]
    ]
    if not others:
        return finding(host, "other interfaces", "none", network=network.name)
    return finding(
        host, "other interfaces", ", ".join(others),
        "a middleware that announces all its addresses can carry the traffic there instead",
        as_root(host, f"ip link set dev {others[0].split()[0]} down", in_network=True),
        f"a setting that names the interface; {OTHER_RIG}", network.name,
    )  # fmt: skip
