"""Judge whether the network of a run alone carried its messages, all by the bridge if the run has
one, and how late its emulator was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from wattwire.catalog import Bridge
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED
from wattwire.model.validity import LINK_LATE, ValidityLimits, broken_limits
from wattwire.model.verdict import LEAKED, NOT_CARRIED, OTHER_INTERFACE, Reason, Verdict
from wattwire.rig.emulator_log import LOST, Fate, read_log
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.record import HostRecord, RunNetwork, RunRecord
from wattwire.run.results.node_checks import message_bytes
from wattwire.run.results.resources import SENT_BYTES, Readings
from wattwire.store.files import scan_table

RECEIVED_BYTES = "rx_bytes"
LOOPBACK = "lo"
ARRIVALS = ("message", "call", "goal")
"""Kinds of the receivers' records of a message that a sender sent."""
PLAIN = ("bytes", "text")
"""Encodings whose payloads are on the wire as they are. Those of records can be shorter."""
SHORTEST_SHARE = 0.5
"""Share of the nominal payload that another encoding has on the wire, at least."""
BASELINE_MIN_NS = SECOND_NS // 2
"""Length of a baseline that shows a rate. In a shorter one, a single frame would count as many."""
LATE_QUANTILE = 0.99
END_NS = 2**62
EMULATOR_CPU = "emulator_cpu_share"
QUEUE_FULL_SHARE, LOST_SHARE = "link_queue_full_share", "link_lost_share"
INNER_FRAMES = "inner_frames"

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


@dataclass(frozen=True)
class Elsewhere:
    """Bytes that a host sent by a device outside the run's network."""

    host: str
    device: str
    sent_bytes: float


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
        figures |= fate_shares(records)
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
    elsewhere = list(sent_elsewhere(record, readings))
    reasons += elsewhere_reasons(network, elsewhere, smallest_flow_bytes(record, messages))
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
    network = record.network
    assert network is not None
    return {
        host: Carried(
            delivered_bytes,
            readings[host].increase(RECEIVED_BYTES, "interface", network.devices[host], 0, END_NS),
            None if records is None else link_bytes(records, network.ports.index(host)),
        )
        for host, delivered_bytes in delivered_to_hosts(record, messages).items()
    }


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
        scan_table(messages)
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
    """Yield a reason if the network carried less than was delivered."""
    delivered = carried.delivered_bytes
    counted = {
        f"the link of network {network.name}": carried.link_bytes,
        f"device {network.devices[host]}": carried.device_bytes,
    }
    for what, carried_bytes in counted.items():
        if carried_bytes is not None and carried_bytes < delivered:
            text = (
                f"{what} carried {carried_bytes:.0f} bytes to host {host}, whose nodes received "
                f"{delivered} bytes of payload from other hosts; another way carried them"
            )
            yield Reason(Verdict.INVALID, NOT_CARRIED, text)
            return


# -- what other devices carried ------------------------------------------------------------------


def sent_elsewhere(record: RunRecord, readings: HostReadings) -> Iterator[Elsewhere]:
    """Yield what each host sent by other devices than the network's, from GO to the end.

    A frame that another device receives has a host that sent it by another device, or one whose
    frames the network's device does not receive. On hosts that other programs share, their traffic
    as in the baseline of the machine and the counted bytes of ssh are subtracted.
    """
    network = record.network
    assert network is not None
    for name, host in record.hosts.items():
        start_ns, host_readings = host.window["start_ns"], readings[name]
        allowed = {LOOPBACK, network.devices.get(name), *network.stacked.get(name, ())}
        for device in host_readings.subjects(SENT_BYTES, "interface"):
            sent = host_readings.increase(SENT_BYTES, "interface", device, start_ns, END_NS)
            if device in allowed or sent is None:
                continue
            if name not in network.isolated:
                seconds = ((host_readings.end_ns or start_ns) - start_ns) / SECOND_NS
                sent -= others_rate(host, host_readings, device) * seconds
                sent -= ssh_bytes(host, "window", device)
            yield Elsewhere(name, device, sent)


def others_rate(host: HostRecord, readings: Readings, device: str) -> float:
    """Return the rate (B/s) at which other programs sent by a device in the machine's baseline.

    It is 0 if the baseline is too short.
    """
    begin_ns, end_ns = (host.baselines["machine"][key] for key in ("begin_ns", "end_ns"))
    if end_ns - begin_ns < BASELINE_MIN_NS:
        return 0.0
    rate = readings.rate(SENT_BYTES, "interface", device, begin_ns, end_ns) or 0.0
    ssh_rate = ssh_bytes(host, "machine", device) * SECOND_NS / (end_ns - begin_ns)
    return max(0.0, rate - ssh_rate)


def ssh_bytes(host: HostRecord, phase: str, device: str) -> int:
    """Return the bytes that ssh sent by a device in a phase."""
    sent = host.ssh_sent.get(phase)
    return sent.wire_bytes if sent and sent.device == device else 0


def smallest_flow_bytes(record: RunRecord, messages: Path) -> int:
    """Return the payload that was sent in the smallest flow between hosts; 0 without one.

    Whether it arrived does not matter. A flow between nodes of one host passes the network if a
    service is on another host.
    """
    deployment = record.deployment
    host_of = {node.node: deployment.host_of(node) for node in deployment.nodes}
    services = {deployment.host_of_process(service) for service in record.services}
    specs = {node.node: node.spec for node in record.nodes}
    counts = dict(
        scan_table(messages)
        .filter(
            pl.col("kind").is_in(ARRIVALS),
            pl.col("sender") == pl.col("node"),
            (pl.col("flags") & FLAG_FAILED) == 0,
        )
        .group_by("node")
        .len()
        .collect()
        .iter_rows()
    )
    sizes = [
        counts[flow.sender] * message_bytes(specs[flow.sender])
        for flow in deployment.flows
        if flow.sender in counts
        and len({*services, *(host_of[n] for n in (flow.sender, *flow.relays, *flow.receivers))})
        > 1
    ]
    return round(min(sizes, default=0) * (1.0 if _is_plain(record) else SHORTEST_SHARE))


def elsewhere_reasons(
    network: RunNetwork, elsewhere: Iterable[Elsewhere], payload_bytes: int
) -> Iterator[Reason]:
    """Yield a reason if a host sent at least the payload of a flow outside the network."""
    others = [
        f"host {other.host} by {other.device} ({other.sent_bytes:.0f} bytes)"
        for other in elsewhere
        if other.sent_bytes >= payload_bytes > 0
    ]
    if others:
        text = (
            f"from GO to the end, devices outside the network {network.name or 'of the run'} sent "
            f"at least the payload of the smallest flow ({payload_bytes} bytes): "
            f"{', '.join(others)}. Bind the middleware to the network. If other programs sent "
            f"this, end them, or set plan.baseline_s to at least {BASELINE_MIN_NS / SECOND_NS:g}, "
            "so that a steady rate is subtracted; then start a new campaign, because this run is "
            "not repeated."
        )
        yield Reason(Verdict.INVALID, OTHER_INTERFACE, text)


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


def fate_shares(records: np.ndarray) -> dict[str, float | None]:
    """Return the shares of all frames that the link's queue dropped, and that it lost at random.

    The log has the fate of every frame at once. The kernel counts a datagram with a missing
    fragment only after `ipfrag_time`, which is longer than most runs.
    """
    frames = len(records)
    dropped = np.count_nonzero(records["fate"] == Fate.QUEUE_FULL)
    lost = np.count_nonzero(np.isin(records["fate"], LOST))
    return {
        QUEUE_FULL_SHARE: dropped / frames if frames else None,
        LOST_SHARE: lost / frames if frames else None,
    }


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
