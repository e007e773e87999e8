"""Test the evidence that the network of a run carried its messages, and that its link was on time.

tests/end_to_end/rigs tests it with the devices and the emulator of real runs.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wattwire.hosts.socket_bytes import SshSent
from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.model.verdict import Verdict
from wattwire.rig.emulator_log import RECORD, Fate
from wattwire.run.record import RunNetwork
from wattwire.run.results.carrying import (
    Carried,
    Elsewhere,
    carrying_reasons,
    delivered_to_hosts,
    elsewhere_reasons,
    fate_shares,
    inner_frames,
    late_ms,
    leak_reasons,
    link_bytes,
    sent_elsewhere,
    smallest_flow_bytes,
)
from wattwire.run.results.resources import Readings

MS = 1_000_000
NETWORK = RunNetwork(
    name="lan", ports=("a", "b"), devices={"a": "lan", "b": "eth0"}, isolated=frozenset({"a"})
)


def found(host: str, carried: Carried) -> list[tuple[str, str]]:
    return [(reason.code, reason.detail) for reason in carrying_reasons(host, NETWORK, carried)]


def test_a_network_that_carried_at_least_the_payload_gives_no_reason():
    assert found("a", Carried(1000, 1000.0, 1000)) == []
    assert found("a", Carried(1000, None, None)) == []


def test_the_link_or_the_device_with_fewer_bytes_than_the_payload_is_named():
    ((code, text),) = found("b", Carried(1000, 2000.0, 999))
    assert code == "not_carried" and "the link of network lan carried 999 bytes to host b" in text
    ((code, text),) = found("b", Carried(1000, 900.0, None))
    assert code == "not_carried" and "device eth0 carried 900 bytes" in text


def counters(**by_device: tuple[float, ...]) -> Readings:
    """Return readings of the bytes that devices sent, one per second."""
    rows = [
        {"meter": "m", "quantity": "tx_bytes", "scope": "interface", "subject": device,
         "kind": "measured", "t_ns": 1000 * MS * i, "value": value}
        for device, values in by_device.items() for i, value in enumerate(values)
    ]  # fmt: skip
    return Readings(pl.DataFrame(rows))


def elsewhere(
    host: str,
    network: RunNetwork,
    ssh_sent: dict[str, SshSent] | None = None,
    **by_device: tuple[float, ...],
) -> dict[str, float]:
    """Return device → bytes that a host sent elsewhere in a window of 2 s after 1 s of baseline."""
    machine = {"begin_ns": 0, "end_ns": 1000 * MS}
    record = SimpleNamespace(
        network=network,
        hosts={
            host: SimpleNamespace(
                window={"start_ns": 1000 * MS, "end_ns": 2000 * MS},
                baselines={"machine": machine},
                ssh_sent=ssh_sent or {},
            )
        },
    )
    sent = sent_elsewhere(record, {host: counters(**by_device)})  # type: ignore[arg-type]
    return {other.device: other.sent_bytes for other in sent}


def test_bytes_that_other_devices_sent_count_from_go_to_the_end():
    sent = {"lan": (0, 0, 9000, 9000), "lo": (0, 0, 9000, 9000), "fast": (0, 5, 700, 905)}
    assert elsewhere("a", NETWORK, **sent) == {"fast": 900}


def test_other_programs_of_a_real_host_are_subtracted_but_not_its_nodes():
    """Other programs send by other devices, too; nodes start after the machine's baseline."""
    sent = {"eth0": (0, 0, 0, 0), "wlan0": (0, 100, 300, 100 + 200 + 5000)}
    assert elsewhere("b", NETWORK, **sent) == {"wlan0": 5000}
    assert elsewhere("a", NETWORK, **sent)["wlan0"] == 5200  # a namespace has no other programs


def test_the_counted_bytes_of_ssh_are_subtracted_on_its_own_device_only():
    """The baseline of 100 B contains 60 B of ssh, so other programs sent 40 B/s."""
    sent = {"wlan0": (0, 100, 100, 8000), "usb0": (0, 0, 0, 7000)}
    ssh = {"machine": SshSent("wlan0", 60), "window": SshSent("wlan0", 500)}
    expected = {"wlan0": 7900 - 2 * 40 - 500, "usb0": 7000}
    assert elsewhere("b", NETWORK, ssh, **sent) == expected


def test_a_short_baseline_subtracts_nothing_because_one_frame_would_become_many():
    network = replace(NETWORK, isolated=frozenset())
    assert elsewhere("a", network, fast=(0, 1000, 3000, 3000)) == {"fast": 0}
    short = {"begin_ns": 0, "end_ns": 100 * MS}
    host = SimpleNamespace(
        window={"start_ns": 1000 * MS}, baselines={"machine": short}, ssh_sent={}
    )
    record = SimpleNamespace(network=network, hosts={"a": host})
    (other,) = sent_elsewhere(record, {"a": counters(fast=(0, 1000, 3000, 3000))})
    assert other.sent_bytes == 2000


def test_the_port_below_a_bridge_is_no_other_way():
    network = replace(NETWORK, stacked={"a": frozenset({"port"})})
    sent = {"lan": (0, 0, 9000, 9000), "port": (0, 0, 9000, 9000)}
    assert elsewhere("a", network, **sent) == {}


def test_the_payload_of_one_flow_by_another_device_excludes_a_run_whatever_arrived():
    ways = [Elsewhere("a", "fast", 640.0), Elsewhere("b", "eth1", 639.0)]
    (reason,) = elsewhere_reasons(NETWORK, ways, 640)
    assert reason.code == "other_interface" and reason.verdict is Verdict.INVALID
    assert "host a by fast (640 bytes)" in reason.detail and "eth1" not in reason.detail
    assert list(elsewhere_reasons(NETWORK, ways, 641)) == []
    assert list(elsewhere_reasons(NETWORK, ways, 0)) == []


def flows_on(*hosts: str, service: str = "") -> SimpleNamespace:
    """Return a record with a flow of 64 bytes and one of 1000, from each host to the next."""
    nodes, flows = [], []
    for number in range(len(hosts)):
        for role in ("publisher", "subscriber"):
            node = len(nodes)
            nodes.append(Node(node, f"{role}-{number}", role, number, 0, "c"))
        flows.append(Flow(f"f{number}", node - 1, (node,)))
    places = {node.process: hosts[(i + 1) // 2 % len(hosts)] for i, node in enumerate(nodes)}
    processes = [Process(name, "node", host) for name, host in places.items()]
    processes += [Process("broker", "service", service)] if service else []
    spec = {"payload.encoding": "bytes", "payload.literal": ""}
    sizes = (64, 1000)
    return SimpleNamespace(
        deployment=Deployment(tuple(processes), tuple(nodes), tuple(flows), hosts=("a", "b")),
        services={"broker": None} if service else {},
        nodes=[
            SimpleNamespace(node=n.node, spec={**spec, "payload.bytes": sizes[n.node // 2]})
            for n in nodes
        ],
    )


def test_the_smallest_flow_between_hosts_counts_as_it_was_sent(tmp_path):
    """Images that are all lost leave no arrivals, and the commands of the other flow are small."""
    path = tmp_path / "messages.parquet"
    columns = ["node", "sender", "kind", "bytes", "flags"]
    rows = [(0, 0, "message", 64, 0)] * 10 + [(0, 0, "message", 64, 2)] * 5
    rows += [(2, 2, "message", 1000, 0)] * 10
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)
    assert smallest_flow_bytes(flows_on("a", "b"), path) == 640
    assert smallest_flow_bytes(flows_on("a", "a"), path) == 0
    assert smallest_flow_bytes(flows_on("a", "a", service="b"), path) == 640
    shorter = flows_on("a", "b")
    for node in shorter.nodes:
        node.spec["payload.encoding"] = "pointcloud"
    assert smallest_flow_bytes(shorter, path) == 320


def test_bytes_from_other_hosts_count_once_per_host(tmp_path):
    """Two receivers on a host may share a frame; senders on the same host need no network."""
    places = {0: "a", 1: "b", 2: "b", 3: "a"}
    nodes = tuple(
        Node(n, f"p{n}", "publisher" if n == 0 else "subscriber", n, 0, "c") for n in places
    )
    processes = tuple(Process(f"p{n}", "node", host) for n, host in places.items())
    deployment = Deployment(processes, nodes, hosts=("a", "b"))
    rows = [
        (0, 0, "message", 64, 0), (1, 0, "message", 64, 0), (1, 0, "message", 64, 0),
        (2, 0, "message", 64, 0), (2, 0, "message", 64, 8), (3, 0, "message", 64, 0),
    ]  # fmt: skip
    path = tmp_path / "messages.parquet"
    columns = ["node", "sender", "kind", "bytes", "flags"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)
    assert delivered_to_hosts(SimpleNamespace(deployment=deployment), path) == {"b": 128}


BRIDGE = SimpleNamespace(
    name="bridges/b",
    inner_frames="seen",
    middleware=SimpleNamespace(name="inside"),
    document={"settings": {"reach": "host"}},
)


def counted(**by_device: tuple[float, ...]) -> Readings:
    """Return readings of frames by device, one per second."""
    rows = [
        {"meter": "m", "quantity": "seen", "scope": "interface", "subject": device,
         "kind": "measured", "t_ns": 1000 * MS * i, "value": value}
        for device, values in by_device.items() for i, value in enumerate(values)
    ]  # fmt: skip
    schema = {"meter": str, "quantity": str, "scope": str, "subject": str, "kind": str}
    return Readings(pl.DataFrame(rows, schema={**schema, "t_ns": int, "value": float}))


def test_frames_of_the_inner_middleware_on_the_network_exclude_a_run_with_a_bridge():
    network = replace(NETWORK, bridge=BRIDGE)
    readings = {"a": counted(lan=(0, 0, 0), other=(0, 9, 9)), "b": counted(eth0=(0, 3, 5))}
    by_host = inner_frames(network, readings)
    assert by_host == {"a": 0, "b": 5}
    (reason,) = leak_reasons(network, BRIDGE, by_host)
    assert reason.code == "leaked" and reason.verdict is Verdict.INVALID
    assert "seen: 5 on device eth0 of host b; allowed: 0" in reason.detail
    assert "reach = host" in reason.detail


def test_without_frames_or_without_a_counter_no_run_leaked():
    network = replace(NETWORK, bridge=BRIDGE)
    silent = inner_frames(network, {"a": counted(lan=(0, 0)), "b": counted()})
    assert silent == {"a": 0}
    assert list(leak_reasons(network, BRIDGE, silent)) == []
    assert inner_frames(network, {"a": counted(), "b": counted()}) == {}


def frames(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Return a log of frames: time planned, time out (ms), target and fate."""
    records = np.zeros(len(rows), RECORD)
    table = np.array(rows)
    for column, name in enumerate(("planned_ns", "out_ns", "target", "fate")):
        records[name] = table[:, column] * (MS if name.endswith("_ns") else 1)
    records["size_bytes"] = 100
    return records


def test_only_frames_that_the_emulator_delivered_to_a_host_count_for_it():
    records = frames((1, 1, 0, Fate.DELIVERED), (1, 1, 1, Fate.DELIVERED), (1, 0, 1, 2))
    assert link_bytes(records, 1) == 100


def stalled(*readings: tuple[int, int]) -> Readings:
    """Return readings of the machine's stalled time: time and sum (ms)."""
    return Readings(
        pl.DataFrame(
            [
                {"meter": "m", "quantity": "stalled_time", "scope": "machine",
                 "subject": "machine", "kind": "measured", "t_ns": t * MS, "value": float(v * MS)}
                for t, v in readings
            ]
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "out", "expected"),
    [(100, 103, 3.0), (250, 253, 0.0), (295, 340, 25.0), (50, 90, None)],
)
def test_lateness_is_that_of_the_window_without_stalls_of_the_machine(planned, out, expected):
    """The machine stalled for 20 ms in the interval from 200 to 300 ms, on a clock 1 s ahead."""
    record = SimpleNamespace(
        machine="a", hosts={"a": SimpleNamespace(name="a", offset_ns=1000 * MS)}
    )
    record.hosts["a"].window = {"start_ns": 1100 * MS, "end_ns": 1400 * MS}
    readings = {"a": stalled((1000, 0), (1200, 0), (1300, 20), (1400, 20))}
    late = late_ms(frames((planned, out, 0, Fate.DELIVERED)), record, readings)
    assert late == expected


def test_the_log_tells_how_many_frames_the_queue_dropped_and_the_link_lost():
    fates = (Fate.DELIVERED, Fate.QUEUE_FULL, Fate.QUEUE_FULL, Fate.RANDOM_LOSS, Fate.BURST_LOSS)
    shares = fate_shares(frames(*((0, 0, 0, fate) for fate in fates)))
    assert shares == {"link_queue_full_share": 0.4, "link_lost_share": 0.4}
    assert fate_shares(np.zeros(0, RECORD)) == {
        "link_queue_full_share": None,
        "link_lost_share": None,
    }
