"""Test the count of datagrams that a namespace discards during reassembly."""

from __future__ import annotations

import sys

from wattwire.hosts.tests.counting import Counting
from wattwire.hosts.tests.test_health import change

QUANTITY, DATAGRAMS, MACHINE = "datagrams_unassembled", 5, "machine"
LIMITS = "cd /proc/sys/net/ipv4; echo 1 > ipfrag_low_thresh; echo 20000 > ipfrag_high_thresh"
SEND = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(int(sys.argv[2])):
        sender.sendto(bytes(60000), (sys.argv[1], 9))
        time.sleep(0.01)
"""


def sent(hosts, address):
    command = [sys.executable, "-c", SEND, address, str(DATAGRAMS)]
    status, output = hosts.by_name["robot"].command(command, 60)
    assert status == 0, output


def test_datagrams_whose_fragments_need_more_memory_than_the_limit_count(hosts, tmp_path):
    with hosts.network("plain", tmp_path, 1) as network:
        with Counting(hosts, tmp_path, QUANTITY) as counting:
            sent(hosts, network.addresses["edge"])
        assert counting.increases == {("robot", MACHINE): 0, ("edge", MACHINE): 0}
        change(hosts, "edge", "sh", "-c", LIMITS)
        with Counting(hosts, tmp_path, QUANTITY) as counting:
            sent(hosts, network.addresses["edge"])
        assert counting.increases["robot", MACHINE] == 0
        assert counting.increases["edge", MACHINE] >= DATAGRAMS
