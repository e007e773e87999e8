"""Tests of connections that pass the measured network: their silence and their bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.hosts import Hosts, ssh
from wattwire.hosts.socket_bytes import (
    HEADER_BYTES,
    SshSent,
    read_traffic,
    read_wire_bytes,
    sent_by_ssh,
    since,
    socket_traffic,
)
from wattwire.hosts.tests.sshd import ALIAS, Sshd, find_sshd, serving
from wattwire.model.errors import EXIT_OK, MissingError
from wattwire.model.rig import SHARED, HostSpec, Rig, read_rig
from wattwire.rig.agent import Traffic, find_agent
from wattwire.run.record import HostRecord
from wattwire.run.shared_connections import SharedConnections

PATIENCE_S = 1.2
STUDY = """
[fixed]
cell = "udp/python"
pattern = "topic"
rate_hz = 50
payload_bytes = 10000  # more than other programs of a shared machine send in the window
[plan]
blocks = 1
duration_s = 7
"""
SS = (
    'ESTAB 0 0 10.0.0.1:40000 10.0.0.2:22 users:(("ssh",pid=71,fd=3)) ino:5 sk:1 cubic '
    "rtt:0.1/0.1 bytes_sent:4512 bytes_retrans:12 bytes_acked:4500 bytes_received:3811 segs_out:9\n"
    'ESTAB 0 0 10.0.0.1:40001 10.0.0.2:22 users:(("ssh",pid=7,fd=3)) cubic bytes_received:10\n'
    'ESTAB 0 0 10.0.0.1:40002 10.0.0.2:22 users:(("x",pid=9,fd=3)) cubic bytes_sent:1\n'
    'ESTAB 0 0 10.0.0.1:40003 10.0.0.2:22 users:(("x",pid=9,fd=4)) cubic bytes_sent:2\n'
)
"""The output of `ss -tinpOH`, shortened."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    try:
        find_agent()
        find_sshd()
    except MissingError as error:
        pytest.skip(str(error))
    with serving(tmp_path / "sshd") as sshd:
        yield sshd


def rig_of(server: Sshd, management: str) -> Rig:
    host = {"kind": "ssh", "to": ALIAS, "interface": "lo", "management": management}
    return read_rig({"hosts": {"edge": host}, "ssh_config": str(server.config)}, "rig.toml")


def test_bytes_of_a_process_are_those_of_its_only_connection():
    assert read_traffic(SS, 71) == Traffic(4512, 3811)
    assert read_traffic(SS, 7) == Traffic(0, 10), "the kernel omits counters that are 0"
    assert read_traffic(SS, 9) is None, "which connection is not known"
    assert read_traffic(SS, 1) is None and read_traffic("", 71) is None


def test_ssh_asks_for_signs_of_life_unless_its_connection_is_measured():
    def interval(management: str) -> list[str]:
        spec = HostSpec("edge", "ssh", to="edge", management=management)
        return [w for w in ssh.ssh_command(spec, "") if w.startswith("ServerAliveInterval")]

    try:
        assert interval("") == ["ServerAliveInterval=5"]
    except MissingError as error:
        pytest.skip(str(error))
    assert interval(SHARED) == ["ServerAliveInterval=0"]


def test_a_silent_agent_outlives_its_patience_and_marks_without_a_request(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(ssh, "PATIENCE_S", PATIENCE_S)
    with Hosts(rig_of(server, SHARED), tmp_path / "state") as hosts:
        agent = hosts.first.agent
        readings = str(tmp_path / "readings.bin")
        agent.request("sample_start", path=readings, tick_hz=1, meters=[], subjects={})
        shared = SharedConnections(hosts.by_name)
        assert "edge" in shared
        with shared.silent(60):
            shared.mark_later("window_begin", time.monotonic_ns() + 100_000_000)
            shared.begin()
            time.sleep(2.5 * PATIENCE_S)
            records = {"edge": HostRecord()}
            shared.end(records)
        assert records["edge"].management["protocol"] == {"sent_bytes": 0, "received_bytes": 0}
        if "ssh" in records["edge"].management:
            assert records["edge"].management["ssh"]["sent_bytes"] == 0
        assert [mark["name"] for mark in agent.request("sample_stop")["marks"]] == ["window_begin"]
        before = agent.traffic()
        time.sleep(PATIENCE_S)
        assert agent.traffic().since(before).sent_bytes > 0, "heartbeats continue"


def test_bytes_at_the_socket_include_those_of_the_protocol(server, tmp_path):
    with Hosts(rig_of(server, SHARED), tmp_path / "state") as hosts:
        agent = hosts.first.agent
        before, ssh_before = agent.traffic(), socket_traffic(agent.command_pid)
        if ssh_before is None:
            pytest.skip("ss shows no socket of ssh (Debian: apt install iproute2)")
        agent.request("clock", count=1000)
        protocol = agent.traffic().since(before)
        ssh_after = socket_traffic(agent.command_pid)
    assert ssh_after is not None and protocol.received_bytes > 100_000
    at_socket = ssh_after.since(ssh_before)
    assert at_socket.sent_bytes > protocol.sent_bytes
    assert at_socket.received_bytes > protocol.received_bytes


def test_bytes_on_the_wire_are_those_of_the_connection_with_its_headers():
    line = "ESTAB 0 0 10.0.0.2:22 10.0.0.{}:40000 cubic bytes_sent:4512 segs_out:10 segs_in:2"
    both = "\n".join((line.format(1), line.format(3)))
    assert read_wire_bytes(both, "10.0.0.3") == 4512 + 10 * HEADER_BYTES[4]
    assert read_wire_bytes(both, "10.0.0.4") is None and read_wire_bytes("", "10.0.0.1") is None
    assert read_wire_bytes("ESTAB 0 0 10.0.0.2:22 10.0.0.1:40000 cubic", "10.0.0.1") is None


def test_readings_on_two_devices_are_not_compared():
    before = {"a": SshSent("eth0", 10), "b": SshSent("eth0", 10)}
    after = {"a": SshSent("eth0", 30), "b": SshSent("wlan0", 30), "c": SshSent("eth0", 5)}
    assert since(after, before) == {"a": SshSent("eth0", 20)}


def test_a_host_counts_what_its_ssh_server_sends_and_by_which_device(server, tmp_path):
    with Hosts(rig_of(server, SHARED), tmp_path / "state") as hosts:
        before = sent_by_ssh([hosts.first])
        if not before:
            pytest.skip("the host counts no bytes of ssh (Debian: apt install iproute2)")
        agent = hosts.first.agent
        replies = agent.traffic()
        agent.request("clock", count=1000)
        received_bytes = agent.traffic().since(replies).received_bytes
        sent = since(sent_by_ssh([hosts.first]), before)["edge"]
    assert sent.device == "lo" and sent.wire_bytes > received_bytes > 100_000


def test_other_hosts_are_not_silent(server, tmp_path):
    with Hosts(rig_of(server, SHARED), tmp_path / "state") as hosts:
        spec = HostSpec("edge", "ssh", to=ALIAS)
        hosts.first.spec = spec
        assert "edge" not in SharedConnections(hosts.by_name)


@pytest.mark.slow
def test_a_run_sends_nothing_over_a_shared_connection_and_the_page_prints_its_bytes(
    server, tmp_path, capsys
):
    table = 'kind = "ssh", to = "edge", interface = "lo"'
    (tmp_path / "rig.toml").write_text(
        f'ssh_config = "{server.config}"\n[hosts]\nrobot = {{{table}, management = "shared"}}\n'
        f'edge = {{{table}}}\n[networks.loop]\n[placements.apart]\nsender = "robot"\n'
        'receiver = "edge"\n'
    )
    (tmp_path / "study.toml").write_text(STUDY)
    campaign = tmp_path / "campaign"
    arguments = ["--rig", str(tmp_path / "rig.toml"), "--campaign", str(campaign), "--look"]
    status = main(["run", str(tmp_path / "study.toml"), "--yes", "--plain", *arguments])
    assert status == EXIT_OK, capsys.readouterr().out
    runs = [json.loads(path.read_text()) for path in campaign.glob("runs/*/run.json")]
    assert runs
    for run in runs:
        robot, edge = run["hosts"]["robot"], run["hosts"]["edge"]
        assert robot["management"]["protocol"]["sent_bytes"] == 0
        assert robot["management"]["protocol"]["received_bytes"] > 0, "the line SENT"
        assert "management" not in edge
        for host in (robot, edge):
            assert "window_begin" in [mark["name"] for mark in host["sampling"]["marks"]]
    page = (campaign / "report" / "index.html").read_text()
    assert "The ssh connection to host robot passes the measured network" in page
