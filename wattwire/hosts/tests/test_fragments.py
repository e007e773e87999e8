"""Test the wait for incomplete datagrams, in real namespaces with a real fragment."""

from __future__ import annotations

import sys
import threading

from wattwire.hosts import Host, reassembly

LIFETIME_S = 3600
"""The kernel does not discard the datagram during the test, however slow the machine is."""
FIRST, LAST = 0x2000, 8
"""Flags and offset (in 8 bytes) of the two fragments of a datagram of 128 bytes."""
FRAGMENT = """
import socket, struct, sys
own, peer = map(socket.inet_aton, sys.argv[1:3])
payload = bytes(64)
header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, int(sys.argv[3]), 64, 17, 0,
                     own, peer)
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
    raw.sendto(header + payload, (sys.argv[2], 0))
"""


def executed(host: Host, code: str, *arguments: str) -> None:
    status, output = host.command([sys.executable, "-c", code, *arguments], 60)
    assert status == 0, output


def test_the_wait_ends_when_the_datagram_is_no_longer_incomplete(hosts, tmp_path):
    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    executed(edge, f"open({str(reassembly.LIFETIME)!r}, 'w').write('{LIFETIME_S}')")
    assert reassembly.await_empty_queues([robot, edge]) == 0
    with hosts.network("plain", tmp_path, 1) as network:
        ends = network.addresses["robot"], network.addresses["edge"]
        executed(robot, FRAGMENT, *ends, str(FIRST))
        assert reassembly.incomplete_datagrams(edge) == 1
        assert reassembly.incomplete_datagrams(robot) == 0
        later = threading.Timer(1.0, executed, [robot, FRAGMENT, *ends, str(LAST)])
        later.start()
        assert reassembly.await_empty_queues([robot, edge]) == 0
        later.join()
        assert reassembly.incomplete_datagrams(edge) == 0
