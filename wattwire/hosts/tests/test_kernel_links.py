"""Tests of links that the kernel forms: commands, refusals, and the rate between namespaces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from wattwire.hosts import Hosts, kernel_links, namespaces
from wattwire.model.errors import MissingError, UsageError, WattwireError
from wattwire.model.links.kernel import check_expressible
from wattwire.model.links.profile import Link, read_link
from wattwire.model.rig import Rig, read_rig
from wattwire.rig.agent import find_agent

HEAD = {"title": "T", "summary": "S"}
RATE = {"rate_mbit_s": 10, "queue_bytes": 30_000}
RATE_BIT_S = 10_000_000
BURSTS = {"enter": 0.01, "leave": 0.25, "loss_good": 0.001, "loss_bad": 0.9}
PAYLOAD_BYTES = 1_400
FRAME_BYTES = PAYLOAD_BYTES + 42
"""Payload with the headers of UDP, IPv4 and Ethernet."""
RECEIVE = """
import json, socket, sys, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind((sys.argv[1], 7000))
receiver.settimeout(60)
times = []
try:
    while True:
        receiver.recv(2000)
        times.append(time.monotonic())
        receiver.settimeout(1)
except TimeoutError:
    print(json.dumps([len(times), times[-1] - times[0] if times else 0]))
"""
SEND = """
import socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
end = time.monotonic() + 2
while time.monotonic() < end:
    sender.sendto(bytes(1400), (sys.argv[1], 7000))
"""


def read(trace: str = "", **document: Any) -> Link:
    return read_link("mine", {**HEAD, **document}, "link.toml", lambda _: trace)


def commands(**both: Any) -> list[str]:
    return list(kernel_links.commands(read(both=both).up.segments[0].direction, "eth9"))


def test_a_rate_is_a_bucket_of_one_frame_with_the_queue_in_bytes() -> None:
    assert commands(**RATE, overhead_bytes=24) == [
        "qdisc add dev eth9 root handle 1: tbf rate 10000000bit burst 1538 limit 30000 overhead 24"
    ]
    (fast,) = commands(rate_mbit_s=1000, queue_bytes=30_000)
    assert "burst 31250 limit" in fast, "what 250 µs transmit"


def test_a_delay_precedes_the_rate_which_has_the_queue() -> None:
    assert commands(**RATE, delay_ms=20) == [
        "qdisc add dev eth9 root handle 1: netem delay 20.000000ms limit 1000000",
        "qdisc add dev eth9 parent 1:1 handle 10: tbf rate 10000000bit burst 1514 limit 30000",
    ]


def test_jitter_and_losses_are_options_of_netem() -> None:
    (line,) = commands(delay_ms=5, jitter_ms=2, reorders=True, loss=0.015)
    assert "netem delay 5.000000ms 2.000000ms loss random 1.5% limit" in line
    (line,) = commands(bursts=BURSTS)
    # p, r, the loss in the bad state (1-h) and in the good state (1-k), as in tc-netem(8).
    assert "netem loss gemodel 1% 25% 90% 0.1% limit" in line
    assert commands() == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "half-duplex": ({"medium": "half-duplex", "both": RATE}, "a half-duplex medium"),
    "trace": (
        {"down": {"trace": "t", "queue_bytes": 3000}},
        "down.trace: no queueing discipline follows a delivery trace",
    ),
    "change": ({"change": [{"at_s": 2, "loss": 0.1}]}, "changes of up: the kernel changes nothing"),
    "shape": (
        {"up": {"jitter_ms": 2, "jitter_shape": "exponential", "reorders": True}},
        "up.jitter_shape 'exponential': netem has only uniform jitter",
    ),
    "order": ({"both": {"delay_ms": 2, "jitter_ms": 1}}, "up.jitter_ms without reorders = true"),
    "overhead": ({"up": {**RATE, "overhead_bytes": -14}}, "up.overhead_bytes -14: tbf has only 0"),
    "rate and loss": ({"down": {**RATE, "loss": 0.1}}, "down.rate_mbit_s with a jitter or loss"),
    "rate and bursts": ({"down": {**RATE, "bursts": BURSTS}}, "down.rate_mbit_s with a jitter"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_kernel_cannot_express_is_refused_with_the_alternative(case: str) -> None:
    document, reason = REFUSED[case]
    with pytest.raises(UsageError) as error:
        check_expressible(read("1\n2\n", **document), "rig.toml: networks.n.engine")
    text = str(error.value)
    assert text.startswith("rig.toml: networks.n.engine: found 'kernel' with the link 'mine'")
    assert reason in text and text.endswith("allowed for this link: 'emulator'")


def test_links_that_the_kernel_expresses_are_not_refused() -> None:
    for both in (RATE, {**RATE, "delay_ms": 20}, {"delay_ms": 5, "loss": 0.1}, {"bursts": BURSTS},
                 {"delay_ms": 5, "jitter_ms": 5, "reorders": True}):  # fmt: skip
        check_expressible(read(both=both), "")
    assert kernel_links.kinds_of(read(up=RATE, down={"delay_ms": 1})) == {"tbf", "netem"}
    assert kernel_links.kinds_of(read()) == set()


COUNTERS = """[{"kind":"netem","handle":"1:","root":true,"bytes":2884,"packets":2,"drops":3,
"overlimits":0,"requeues":0,"backlog":0,"qlen":0},{"kind":"tbf","handle":"10:","parent":"1:1",
"options":{"rate":1250000,"burst":1514},"bytes":1442,"packets":1,"drops":1},{"kind":"noqueue"}]"""
"""The output of `tc -s -json qdisc show dev DEVICE`."""


def test_counters_are_those_of_the_links_queueing_disciplines() -> None:
    assert kernel_links.read_counters(COUNTERS) == {
        "netem": {"sent_bytes": 2884, "sent_frames": 2, "dropped_frames": 3},
        "tbf": {"sent_bytes": 1442, "sent_frames": 1, "dropped_frames": 1},
    }
    assert kernel_links.read_counters("") == {}


# -- between namespaces ----------------------------------------------------------------------------


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Return a rig with the networks `limited` (tbf), `delayed` (netem) and `plain`."""
    try:
        find_agent()
        namespaces.user_namespace()
    except MissingError as error:
        pytest.skip(str(error))
    tables = {
        "ten": "[both]\nrate_mbit_s = 10\nqueue_bytes = 30000\n",
        "late": "[both]\ndelay_ms = 20\n",
    }
    for name, table in tables.items():
        folder = tmp_path / "root" / "links" / name
        folder.mkdir(parents=True)
        (folder / "link.toml").write_text(f'title = "T"\nsummary = "S"\n{table}')
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path / "root"))
    return read_networks({"limited": {"link": "ten", "engine": "kernel"}, "plain": {}})


def read_networks(networks: dict[str, Any]) -> Rig:
    hosts = {"robot": {"kind": "netns"}, "edge": {"kind": "netns"}}
    return read_rig({"hosts": hosts, "networks": networks}, "rig.toml")


def start(rig: Rig, state: Path) -> Hosts:
    try:
        return Hosts(rig, state)
    except MissingError as error:
        pytest.skip(str(error))


def transfer(hosts: Hosts, sender: str, receiver: str, address: str) -> tuple[int, float]:
    """Return the frames that a receiver got of a flood, and the time from the first to the last."""
    argv = [sys.executable, "-c", RECEIVE, address]
    agent = hosts.by_name[receiver].agent
    receiving = agent.submit("command", argv=argv, env={}, timeout_s=60)
    code, output = hosts.by_name[sender].command([sys.executable, "-c", SEND, address], 60)
    assert code == 0, output
    frames, seconds = json.loads(agent.reply("command", receiving)["output"])
    return int(frames), float(seconds)


def test_the_kernel_limits_the_rate_in_both_directions_and_drops_beyond_its_queue(rig, tmp_path):
    with start(rig, tmp_path / "state") as hosts:
        with hosts.network("limited", tmp_path, 1) as network:
            assert network.emulator_pid is None and network.log is None
            for sender, receiver in (("robot", "edge"), ("edge", "robot")):
                address = network.addresses[receiver]
                frames, seconds = transfer(hosts, sender, receiver, address)
                least_s = (frames - 4) * FRAME_BYTES * 8 / RATE_BIT_S
                assert frames > 100 and seconds > 0.97 * least_s, (sender, frames, seconds)
        with hosts.network("plain", tmp_path, 1):
            shown = hosts._switch.counters("plain", [h.pid for h in hosts.by_name.values()],
                                           hosts.first.pid)  # fmt: skip
            assert shown == {"up": {}, "down": {}}, "the link ended with its network"
    counters = json.loads((tmp_path / "kernel-link.json").read_text())
    assert list(counters) == ["robot"], "only near hosts are at the link"
    for direction in ("up", "down"):
        assert counters["robot"][direction]["tbf"]["dropped_frames"] > 0


def test_a_link_that_ended_in_the_run_is_named(rig, tmp_path):
    with start(rig, tmp_path / "state") as hosts:
        with (
            pytest.raises(WattwireError, match="link of host robot ended: up has no tbf"),
            hosts.network("limited", tmp_path, 1) as network,
        ):
            device, pid = network.interfaces["robot"], hosts.first.pid
            hosts._switch._ip(pid, [f"qdisc del dev {device} root"], "tc")
        with hosts.network("plain", tmp_path, 1) as network:
            device, address = network.interfaces["edge"], network.addresses["edge"]
            edge = hosts.by_name["edge"]
            assert edge.has_address(device, address)
            hosts._switch.remove_device(edge.pid, device)
            assert not edge.has_address(device, address)


def test_hosts_whose_switch_ended_start_again(rig, tmp_path):
    with start(rig, tmp_path / "state") as hosts, hosts.network("plain", tmp_path, 1) as network:
        assert not hosts.any_lost and network.ended() == {}
        hosts._switch._process.kill()
        hosts._switch._process.wait(60)
        assert hosts.any_lost and list(network.ended()) == ["switch"]


def test_a_kernel_without_netem_is_named_before_the_first_run(rig, tmp_path):
    late = read_networks({"late": {"link": "late", "engine": "kernel"}})
    try:
        hosts = Hosts(late, tmp_path / "state")
    except WattwireError as error:
        assert isinstance(error, MissingError)
        assert "needs the queueing discipline netem; found: " in str(error)
        assert "modprobe sch_netem" in str(error) and 'set engine = "emulator"' in str(error)
        return
    with hosts, hosts.network("late", tmp_path, 1) as network:
        code = f"import socket; socket.create_connection(('{network.addresses['edge']}', 9))"
        hosts.first.command([sys.executable, "-c", code], 20)
    counters = json.loads((tmp_path / "kernel-link.json").read_text())
    assert counters["robot"]["up"]["netem"]["sent_frames"] > 0
