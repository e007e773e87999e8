"""Test the count of RTPS frames between two real namespaces, to the frame."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wattwire.hosts import Host, Hosts
from wattwire.hosts.tests.counting import Counting, counting_meters
from wattwire.model.errors import MissingError
from wattwire.rig.agent import find_agent

QUANTITY = "rtps_frames"
FLOOD = 3000
"""More frames than the buffer of the meter's socket has room for."""
SECOND_FRAGMENT = 1
"""A fragment's offset, in units of 8 bytes."""
MESSAGE = b"RTPS\x02\x03".hex()
OTHER = b"RTP\x02\x03S".hex()
SEND = """
import json, socket, struct, sys
own, peer = sys.argv[1:3]
for frame in json.loads(sys.argv[3]):
    options = bytes.fromhex(frame.get("options", ""))
    udp = struct.pack("!HHHH", 7, frame.get("port", 7400), 0, 0)
    content = udp + bytes.fromhex(frame["payload"]) + bytes(frame.get("more_bytes", 0))
    if frame.get("plain"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(frame.get("count", 1)):
                sender.sendto(content[8:], (frame["plain"], frame.get("port", 7400)))
        continue
    words = 5 + len(options) // 4
    header = struct.pack("!BBHHHBBH4s4s", 0x40 + words, 0, 4 * words + len(content), 7,
                         frame.get("fragment", 0), 64, frame.get("protocol", 17), 0,
                         socket.inet_aton(own), socket.inet_aton(peer))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(header + options + content, (peer, 0))
"""


def sent(host: Host, ends: tuple[str, str], *frames: dict[str, Any]) -> None:
    status, output = host.command([sys.executable, "-c", SEND, *ends, json.dumps(frames)], 60)
    assert status == 0, output


def test_each_datagram_that_begins_as_rtps_counts_once_where_it_arrives(hosts, tmp_path):
    robot = hosts.by_name["robot"]
    assert counting_meters(robot, QUANTITY)
    with hosts.network("plain", tmp_path, 1) as network:
        own, peer = network.addresses["robot"], network.addresses["edge"]
        with Counting(hosts, tmp_path, QUANTITY) as counting:
            sent(
                robot, (own, peer),
                {"payload": MESSAGE},
                {"payload": MESSAGE, "port": 61000},
                {"payload": MESSAGE, "options": "01010100"},
                {"payload": MESSAGE, "plain": peer, "more_bytes": 4000},
                {"payload": MESSAGE, "plain": peer, "count": FLOOD},
            )  # fmt: skip
        device = network.interfaces["edge"]
        assert counting.increases["edge", device] == 4 + FLOOD
        assert counting.increases["robot", device] == 0


def test_other_frames_and_those_within_a_host_do_not_count(hosts, tmp_path):
    robot = hosts.by_name["robot"]
    with hosts.network("plain", tmp_path, 1) as network:
        own, peer = network.addresses["robot"], network.addresses["edge"]
        with Counting(hosts, tmp_path, QUANTITY) as counting:
            sent(
                robot, (own, peer),
                {"payload": OTHER},
                {"payload": "52"},
                {"payload": MESSAGE, "protocol": 253},
                {"payload": MESSAGE, "fragment": SECOND_FRAGMENT},
                {"payload": MESSAGE, "plain": own},
                {"payload": MESSAGE, "plain": "127.0.0.1"},
            )  # fmt: skip
        assert counting.increases and set(counting.increases.values()) == {0}
        assert {device for _, device in counting.increases} == set(network.interfaces.values())


ORDINARY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
"""Execute a command as another user than root: without capabilities, but it may create user
namespaces."""
CONTROLLER = """
import sys
from pathlib import Path
from wattwire.hosts import Hosts
from wattwire.hosts.tests import test_frame_counts
from wattwire.hosts.tests.two_namespaces import DOCUMENT
from wattwire.model.rig import read_rig
folder = Path(sys.argv[1])
with Hosts(read_rig(DOCUMENT, "rig.toml"), folder / "state") as hosts:
    test_frame_counts.count_twice(hosts, folder)
"""


def count_twice(hosts: Hosts, folder: Path) -> None:
    """Count on two networks, one after the other, with a message between and one in each."""
    robot = hosts.by_name["robot"]
    _, inherited = robot.command(["sh", "-c", "ls -l /proc/self/fd; env"], 60)
    assert "socket:" not in inherited and "WATTWIRE_PACKET_SOCKETS" not in inherited
    for number in range(2):
        with hosts.network("plain", folder, 1) as network:
            ends = network.addresses["robot"], network.addresses["edge"]
            message = {"payload": MESSAGE, "plain": ends[1], "count": 2 + number}
            sent(robot, ends, message)
            with Counting(hosts, folder, QUANTITY) as counting:
                sent(robot, ends, message)
            assert counting.increases["edge", network.interfaces["edge"]] == 2 + number


def test_hosts_of_an_ordinary_user_count_as_well(tmp_path):
    try:
        find_agent()
    except MissingError as error:
        pytest.skip(str(error))
    if subprocess.run([*ORDINARY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not create user namespaces")
    done = subprocess.run(
        [*ORDINARY, sys.executable, "-c", CONTROLLER, str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
