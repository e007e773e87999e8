"""Tests of the checks of hosts, in real namespaces with changed values, and over ssh."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.hosts import Hosts
from wattwire.hosts.health import MISSING, NOTE, OK, Finding, check_rig, machine
from wattwire.hosts.health.machine import program_findings
from wattwire.hosts.health.network import (
    fragment_finding,
    network_findings,
    wireless_findings,
)
from wattwire.hosts.tests.sshd import ALIAS, Sshd, find_sshd, serving
from wattwire.model.errors import EXIT_OK, MissingError
from wattwire.model.rig import Rig, read_rig


def change(hosts: Hosts, name: str, *command: str) -> None:
    """Execute a command with all rights in the network namespace of a host."""
    switch = hosts._switch
    assert switch is not None
    pid = hosts.by_name[name].pid
    argv = [*switch._enter(f"--net=/proc/{pid}/ns/net"), *command]
    subprocess.run(argv, check=True, capture_output=True)


def checks(findings: list[Finding], check: str) -> dict[str, Finding]:
    """Return the findings of a check by host."""
    return {host: item for item in findings if item.check == check for host in item.hosts}


def test_limits_of_fragments_are_those_of_each_hosts_namespace(hosts):
    robot, edge = hosts.by_name.values()
    values = "echo 134217728 > /proc/sys/net/ipv4/ipfrag_high_thresh;"
    change(hosts, "edge", "sh", "-c", f"{values} echo 3 > /proc/sys/net/ipv4/ipfrag_time")
    change(hosts, "robot", "sh", "-c", "echo 1048576 > /proc/sys/net/ipv4/ipfrag_low_thresh")
    change(hosts, "robot", "sh", "-c", "echo 2097152 > /proc/sys/net/ipv4/ipfrag_high_thresh")
    assert fragment_finding(edge).state == OK
    found = fragment_finding(robot)
    assert found.state == NOTE
    assert found.evidence == "net.ipv4.ipfrag_high_thresh = 2097152, net.ipv4.ipfrag_time = 30"
    assert "After 1.1 incomplete ones" in found.cause  # 2 MiB / 64 KiB / 30 s
    command = "nsenter --net --target PID sysctl -w net.ipv4.ipfrag_high_thresh=134217728"
    assert command in found.command and "payload_bytes" in found.factor


def test_a_smaller_mtu_on_one_side_is_found_with_the_command_that_changes_it(hosts, tmp_path):
    with hosts.network("plain", tmp_path, 1) as network:
        before = list(network_findings(network, hosts.by_name))
        assert {item.state for item in checks(before, "MTU").values()} == {OK}
        change(hosts, "edge", "ip", "link", "set", "dev", "plain", "mtu", "1400")
        found = checks(list(network_findings(network, hosts.by_name)), "MTU")
    assert found["robot"].evidence == "plain: 1500 bytes; edge 1400"
    assert found["edge"].evidence == "plain: 1400 bytes; robot 1500"
    assert found["robot"].command.endswith("ip link set dev plain mtu 1400")
    assert found["robot"].factor == "payload_bytes below and above 1372"
    assert {item.state for item in found.values()} == {NOTE}


def test_traffic_that_leaves_through_another_device_prevents_runs(hosts, tmp_path):
    with hosts.network("plain", tmp_path, 1) as network:
        address = network.addresses["edge"]
        before = list(network_findings(network, hosts.by_name))
        assert checks(before, "routes")["robot"].state == OK
        assert checks(before, "other interfaces")["robot"].evidence == "none"
        change(hosts, "robot", "ip", "link", "add", "back", "type", "veth", "peer", "far")
        for device in ("back", "far"):
            change(hosts, "robot", "ip", "link", "set", device, "up")
        change(hosts, "robot", "ip", "addr", "add", "10.99.0.1/24", "dev", "back")
        change(hosts, "robot", "ip", "route", "add", f"{address}/32", "dev", "back")
        change(hosts, "robot", "ip", "link", "set", "plain", "multicast", "off")
        findings = list(network_findings(network, hosts.by_name))
    route = checks(findings, "routes")
    assert route["robot"].state == MISSING and route["edge"].state == OK
    assert route["robot"].evidence == f"edge ({address}) through back"
    assert route["robot"].command.endswith(f"ip route replace {address}/32 dev plain")
    others = checks(findings, "other interfaces")
    assert others["robot"].evidence == "back (10.99.0.1)" and others["edge"].evidence == "none"
    multicast = checks(findings, "multicast")
    assert multicast["robot"].evidence == "plain: off" and multicast["edge"].state == OK
    assert multicast["robot"].command.endswith("ip link set dev plain multicast on")


def test_offloads_have_the_command_that_disables_those_that_are_on(hosts, tmp_path):
    if hosts.first.which("ethtool") is None:
        pytest.skip("ethtool is not installed (Debian: apt install ethtool)")
    with hosts.network("plain", tmp_path, 1) as network:
        off = [word for feature in ("tso", "gso", "gro") for word in (feature, "off")]
        change(hosts, "robot", "ethtool", "-K", "plain", *off)
        change(hosts, "edge", "ethtool", "-K", "plain", "tso", "off", "gso", "off", "gro", "on")
        found = checks(list(network_findings(network, hosts.by_name)), "offloads")
    assert (found["robot"].state, found["robot"].evidence) == (OK, "plain: on: none")
    assert (found["edge"].state, found["edge"].evidence) == (NOTE, "plain: on: gro")
    assert found["edge"].command.endswith("ethtool -K plain gro off")


LINK = """Connected to 02:00:00:00:01:00 (on wlan0)
\tSSID: field
\tfreq: 5180
\tRX: 1083 bytes (12 packets)
\tsignal: -61 dBm
\trx bitrate: 52.0 MBit/s MCS 11
\ttx bitrate: 39.0 MBit/s MCS 10
"""
"""The output of `iw dev wlan0 link`."""


def test_power_save_of_wifi_is_found_with_its_rates(hosts):
    rate, saving = wireless_findings(hosts.first, "wlan0", "Power save: on\n", LINK, "net")
    assert rate.state == OK and rate.evidence == (
        "wlan0: signal: -61 dBm, rx bitrate: 52.0 MBit/s MCS 11, tx bitrate: 39.0 MBit/s MCS 10"
    )
    assert saving.state == NOTE and "set power_save off" in saving.command
    rate, saving = wireless_findings(hosts.first, "wlan0", "Power save: off\n", "", "net")
    assert rate.evidence == "wlan0: not connected" and saving.state == OK


def test_what_a_machine_has_is_reported_once_for_its_hosts(hosts, tmp_path):
    health = check_rig(hosts, tmp_path, "0.0", {"odd": ["no-such-compiler"], "none": []})
    assert list(health.sections) == [
        "Machine of robot, edge", "Host robot", "Host edge", "Network plain",
    ]  # fmt: skip
    machine = health.sections["Machine of robot, edge"]
    assert all(item.hosts == ("robot", "edge") for item in machine)
    found = {item.check: item for item in machine}
    assert "this wattwire is 0.0" in found["agent"].cause
    assert found["language odd"].evidence == "lacks no-such-compiler"
    assert not found["language odd"].command, "no package of this name is known"
    assert found["languages"].evidence == "none"
    assert found["clock discipline"].state == OK, "all hosts have one clock"
    kernel = Path("/proc/sys/net/core/rmem_max").read_text(encoding="ascii").strip()
    assert found["net.core.rmem_max"].evidence in (f"{kernel} bytes", "not readable")
    for item in (item for items in health.sections.values() for item in items):
        assert item.evidence and bool(item.cause) == (item.state != OK), item
        assert item.factor or item.state == OK, item
    assert health.ready and "prevent runs" in health.first


def test_programs_are_searched_on_the_host(hosts, monkeypatch):
    monkeypatch.setattr(machine, "debian_packages", lambda: {"no-such-compiler": "odd-package"})
    odd = {"shell": ["sh"], "odd": ["no-such-compiler"]}
    found = {item.check: item for item in program_findings(hosts.first, odd)}
    has_apt = shutil.which("apt-get") is not None
    assert ("apt-get install odd-package" in found["language odd"].command) == has_apt
    assert found["languages"].evidence == "shell" and found["python"].state == OK


# -- the command -------------------------------------------------------------------------------


def test_the_command_prints_findings_and_json(hosts, tmp_path, capsys):
    rig = tmp_path / "rig.toml"
    rig.write_text('[hosts]\na = {kind = "netns"}\nb = {kind = "netns"}\n[networks.plain]\n')
    assert main(["doctor", "--rig", str(rig)]) == EXIT_OK
    text = capsys.readouterr().out
    assert "+ MTU (a, b): plain: 1500 bytes" in text and "Machine of a, b" in text
    assert main(["doctor", "--rig", str(rig), "--json"]) == EXIT_OK
    health = json.loads(capsys.readouterr().out)
    (mtu,) = [item for item in health["sections"]["Network plain"] if item["check"] == "MTU"]
    assert mtu["hosts"] == ["a", "b"] and mtu["state"] == OK and mtu["network"] == "plain"


# -- networks over interfaces that exist ---------------------------------------------------------


@pytest.fixture
def real_interfaces(hosts: Hosts, tmp_path: Path) -> Iterator[Rig]:
    """Return a rig of two hosts over ssh, each with an interface that wattwire did not create.

    Sessions of each server enter the namespaces of one host, whose network is up.
    """
    try:
        find_sshd()
    except MissingError as error:
        pytest.skip(str(error))
    if os.geteuid():
        pytest.skip("only root can enter the namespaces from a server")
    servers: dict[str, Sshd] = {}
    with hosts.network("plain", tmp_path, 1):
        change(hosts, "edge", "ip", "link", "set", "dev", "plain", "mtu", "1400")
        robot = serving(tmp_path / "robot", more=_inside(hosts, "robot"))
        edge = serving(tmp_path / "edge", more=_inside(hosts, "edge"))
        with robot as servers["robot"], edge as servers["edge"]:
            config = tmp_path / "ssh_config"
            config.write_text("".join(
                server.config.read_text().replace(f"Host {ALIAS}", f"Host {name}")
                for name, server in servers.items()
            ))  # fmt: skip
            table = {name: {"kind": "ssh", "to": name} for name in servers}
            document = {
                "hosts": table,
                "networks": {"wire": {"interfaces": dict.fromkeys(table, "plain")}},
                "ssh_config": str(config),
            }
            yield read_rig(document, "rig.toml")


def _inside(hosts: Hosts, name: str) -> str:
    net = f"--net=/proc/{hosts.by_name[name].pid}/ns/net"
    return f'ForceCommand exec nsenter {net} sh -c "$SSH_ORIGINAL_COMMAND"'


def test_a_network_joins_interfaces_that_exist(real_interfaces, tmp_path):
    with Hosts(real_interfaces, tmp_path / "far") as far:
        with far.network("wire", tmp_path, 1) as network:
            assert network.addresses == {"robot": "10.77.0.1", "edge": "10.77.0.2"}
            assert network.interfaces == {"robot": "plain", "edge": "plain"}
            findings = list(network_findings(network, far.by_name))
            code = (
                "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
                "s.connect(('10.77.0.2', 9)); print(s.getsockname()[0])"
            )
            assert far.first.command(["python3", "-c", code], 20) == (0, "10.77.0.1\n")
        health = check_rig(far, tmp_path / "health", "0.1.0", {})
    mtu = checks(findings, "MTU")
    assert mtu["robot"].evidence == "plain: 1500 bytes; edge 1400"
    assert mtu["robot"].command == "ssh robot 'ip link set dev plain mtu 1400'"
    assert {item.state for item in checks(findings, "routes").values()} == {OK}
    assert list(health.sections)[0] == "Machine of robot, edge"


def test_an_interface_that_a_host_lacks_prevents_runs(real_interfaces, tmp_path, capsys):
    wire = {"interfaces": {"robot": "plain", "edge": "gone"}}
    rig = read_rig({**real_interfaces.document, "networks": {"wire": wire}}, "rig.toml")
    with Hosts(rig, tmp_path / "far") as far:
        health = check_rig(far, tmp_path / "health", "0.1.0", {})
    (item,) = health.sections["Network wire"]
    assert item.state == MISSING and not health.ready
    assert "host edge has no interface 'gone' with an IPv4 address; found" in item.evidence
