"""Judge whether the network of a run carried its messages, all by the bridge if the run has one,
and how late its emulator was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from wattwire.catalog import Bridge
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED
from wattwire.model.validity import LINK_LATE, ValidityLimits, broken_limits
from wattwire.model.verdict import Reason, Verdict
from wattwire.rig.emulator_log import Fate, read_log
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.record import RunNetwork, RunRecord
from wattwire.run.results.resources import Readings

RECEIVED_BYTES = "rx_bytes"
LOOPBACK = "lo"
ARRIVALS = ("message", "call", "goal")
"""Kinds of the receivers' records of a message that a sender sent."""
PLAIN = ("bytes", "text")
"""Encodings whose payloads are on the wire as they are. Those of records can be shorter."""
LATE_QUANTILE = 0.99
END_NS = 2**62
EMULATOR_CPU = "emulator_cpu_share"
INNER_FRAMES = "inner_frames"
LEAKED = "leaked"

HostReadings = Mapping[str, Readings]


@dataclass(frozen=True)
class Carried:
    """Bytes that arrived at a host, by what counted them."""

    delivered_bytes: int
    """Payload that its nodes received from nodes of other hosts; a lower bound."""
    device_bytes: float | None
    """Bytes that its device of the run's network received."""
    link_bytes: int | None
    """Bytes of the frames that the emulator delivered to it."""
    others_bytes: Mapping[str, float]
    """Bytes that its other devices received, without the loopback device."""


def judge(
    record: RunRecord, readings: HostReadings, messages: Path, limits: ValidityLimits
) -> tuple[list[Reason], dict[str, float | None]]:
    """Return the reasons against a run between hosts, and the figures of its network."""
    network = record.network
    if network is None or not record.window.get("end_ns"):
        return [], {}
    figures: dict[str, float | None] = {}
    records = None if network.log is None else read_log(network.log)
    if records is not None:
        figures[LINK_LATE] = late_ms(records, record, readings)
        window_s = (record.window["end_ns"] - record.window["start_ns"]) / SECOND_NS
        cpu_ns = network.emulator_cpu_ns
        figures[EMULATOR_CPU] = None if cpu_ns is None else cpu_ns / SECOND_NS / window_s
    reasons = broken_limits(figures, {}, limits)
    if network.bridge is not None:
        by_host = inner_frames(network, readings)
        figures[INNER_FRAMES] = sum(by_host.values()) if by_host else None
        reasons += leak_reasons(network, network.bridge, by_host)
    if _is_plain(record):
        for host, carried in carried_to_hosts(record, readings, messages, records).items():
            reasons += carrying_reasons(host, network, carried)
    return reasons, figures


def _is_plain(record: RunRecord) -> bool:
    return all(node.spec["payload.encoding"] in PLAIN for node in record.nodes)


# -- who carried the messages --------------------------------------------------------------------


def carried_to_hosts(
    record: RunRecord, readings: HostReadings, messages: Path, records: np.ndarray | None
) -> dict[str, Carried]:
    """Return what arrived at each host with receivers, from the start of the sampling to its end.

    `records` is the log of the emulator, or None without one.
    """
    network, found = record.network, {}
    assert network is not None
    for host, delivered_bytes in delivered_to_hosts(record, messages).items():
        received = {
            device: readings[host].increase(RECEIVED_BYTES, "interface", device, 0, END_NS)
            for device in readings[host].subjects(RECEIVED_BYTES, "interface")
        }
        device_bytes = received.pop(network.devices[host], None)
        found[host] = Carried(
            delivered_bytes,
            device_bytes,
            None if records is None else link_bytes(records, network.ports.index(host)),
            {name: n for name, n in received.items() if name != LOOPBACK and n is not None},
        )
    return found


def link_bytes(records: np.ndarray, port: int) -> int:
    """Return the bytes of the frames that the emulator delivered to a port."""
    arrived = records[(records["fate"] == Fate.DELIVERED) & (records["target"] == port)]
    return int(arrived["size_bytes"].sum(dtype=np.uint64))


def delivered_to_hosts(record: RunRecord, messages: Path) -> dict[str, int]:
    """Return host → payload bytes that arrived from other hosts, at least.

    Several receivers of a host may get a message by one frame, so the receiver with the most bytes
    counts. Replies do not count, because their length need not be that of the call.
    """
    host_of = {node.node: record.deployment.host_of(node) for node in record.deployment.nodes}
    sums = (
        pl.scan_parquet(messages)
        .filter(
            pl.col("kind").is_in(ARRIVALS),
            pl.col("sender") != pl.col("node"),
            (pl.col("flags") & (FLAG_FAILED | FLAG_CORRUPT)) == 0,
        )
        .group_by("node", "sender")
        .agg(pl.col("bytes").cast(pl.Int64).sum())
        .collect()
    )
    by_node: dict[int, int] = {}
    for node, sender, size_bytes in sums.iter_rows():
        if sender in host_of and host_of[node] != host_of[sender]:
            by_node[node] = by_node.get(node, 0) + size_bytes
    delivered: dict[str, int] = {}
    for node, size_bytes in by_node.items():
        delivered[host_of[node]] = max(size_bytes, delivered.get(host_of[node], 0))
    return delivered


def carrying_reasons(host: str, network: RunNetwork, carried: Carried) -> Iterator[Reason]:
    """Yield a reason if the network carried less than was delivered, or another device as much.

    Devices of other hosts than namespaces carry the connection of ssh and other programs as well,
    so their bytes alone exclude no run.
    """
    delivered = carried.delivered_bytes
    counted = {
        f"the link of network {network.name}": carried.link_bytes,
        f"device {network.devices[host]}": carried.device_bytes,
    }
    others = {name: n for name, n in carried.others_bytes.items() if n >= delivered > 0}
    names = ", ".join(f"{name} ({n:.0f} bytes)" for name, n in sorted(others.items()))
    for what, carried_bytes in counted.items():
        if carried_bytes is not None and carried_bytes < delivered:
            text = (
                f"{what} carried {carried_bytes:.0f} bytes to host {host}, whose nodes received "
                f"{delivered} bytes of payload from other hosts; another way carried them"
            )
            yield Reason(Verdict.INVALID, "not_carried", f"{text}: {names}" if names else text)
            return
    if others and host in network.isolated:
        text = (
            f"host {host} received as much as the payload ({delivered} bytes) by other devices "
            f"than {network.devices[host]}: {names}"
        )
        yield Reason(Verdict.INVALID, "other_interface", text)


# -- bridges -------------------------------------------------------------------------------------


def inner_frames(network: RunNetwork, readings: HostReadings) -> dict[str, float]:
    """Return host → frames of the bridge's inner middleware that arrived from the network.

    They count from the start of the sampling to its end. Hosts that cannot count them are omitted.
    """
    quantity = network.bridge.inner_frames if network.bridge else ""
    counted = {
        host: readings[host].increase(quantity, "interface", device, 0, END_NS)
        for host, device in network.devices.items()
        if host in readings
    }
    return {host: frames for host, frames in counted.items() if frames is not None}


def leak_reasons(
    network: RunNetwork, bridge: Bridge, by_host: Mapping[str, float]
) -> Iterator[Reason]:
    """Yield a reason if frames of the inner middleware bypassed the bridge."""
    leaks = [
        f"{frames:.0f} on device {network.devices[host]} of host {host}"
        for host, frames in sorted(by_host.items())
        if frames > 0
    ]
    if leaks:
        settings = ", ".join(f"{k} = {v}" for k, v in bridge.document.get("settings", {}).items())
        text = (
            f"{bridge.middleware.name} bypassed {bridge.name} "
            f"({bridge.inner_frames}: {', '.join(leaks)}; allowed: 0). The bridge alone joins the "
            f"hosts with the settings {settings or 'of its manifest'}."
        )
        yield Reason(Verdict.INVALID, LEAKED, text)


# -- the emulator --------------------------------------------------------------------------------


def late_ms(records: np.ndarray, record: RunRecord, readings: HostReadings) -> float | None:
    """Return the 99th percentile of out − planned in the window, minus stalls of the machine.

    The emulator's times are those of this machine, on whose boot its hosts are.
    """
    machine = record.hosts[record.machine]
    begin_ns = machine.window["start_ns"] - machine.offset_ns
    end_ns = machine.window["end_ns"] - machine.offset_ns
    planned_ns = records["planned_ns"].astype(np.int64)
    counts = (records["fate"] == Fate.DELIVERED) & (planned_ns >= begin_ns) & (planned_ns <= end_ns)
    if not counts.any():
        return None
    planned_ns, out_ns = planned_ns[counts], records["out_ns"][counts].astype(np.int64)
    stalled_ns = readings[machine.name].stalled_ns(
        planned_ns + machine.offset_ns, out_ns + machine.offset_ns
    )
    late_ns = np.maximum(out_ns - planned_ns - stalled_ns, 0)
    return float(np.quantile(late_ns, LATE_QUANTILE)) / 1e6
