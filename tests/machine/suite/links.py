"""Send frames through links of both engines: the emulator, and the kernel's netem and tbf.

The links are those of a rig with two hosts in namespaces, as in a campaign.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.machine.planted_links import LINKS, is_limited, link_toml, networks
from wattwire.hosts import Hosts
from wattwire.hosts.hosts import LiveNetwork
from wattwire.model.rig import read_rig

FRAMES, GAP_S = 6_000, 0.0025
FLOOD_S = 4.0
PAYLOAD_BYTES = 1_400
QUIET_S = 2.0
"""Silence after which a receiver ends."""
SEED = 7
RECEIVE = """
import socket, struct, sys
address, path, quiet_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
receiver.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
receiver.bind((address, 7000))
receiver.settimeout(60)
print("bound", flush=True)
arrivals = []
try:
    while True:
        frame, ((_, _, stamp),), *_ = receiver.recvmsg(2000, 64)
        second, ns = struct.unpack("qq", stamp)
        arrivals.append(frame[:16] + struct.pack("<Q", second * 10**9 + ns))
        receiver.settimeout(quiet_s)
except TimeoutError:
    open(path, "wb").write(b"".join(arrivals))
"""
"""Write number, time of sending and time of arrival (ns) of each frame as three u64.

The kernel takes the time of arrival, so the receiver may be late.
"""
SEND = """
import socket, struct, sys, time
address, path, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
count, gap_s, flood_s = int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, 32, 16 << 20)  # SO_SNDBUFFORCE
padding = bytes(size - 16)
begin_ns = time.time_ns()
end_ns = begin_ns + flood_s * 1e9
number = 0
while number < count or time.time_ns() < end_ns:
    left_s = (begin_ns - time.time_ns()) / 1e9 + number * gap_s
    if left_s > 0:
        time.sleep(left_s)
    frame = struct.pack("<QQ", number, time.time_ns()) + padding
    sender.sendto(frame, (address, 7000))
    number += 1
open(path, "w").write(f"{number} {begin_ns} {gap_s * 1e9:.0f}")
"""
"""Send `count` frames, one per `gap_s`; or, for `flood_s`, as many as it can. Write how many, the
time of the first one, and their distance (ns).
"""


def links(folder: Path) -> None:
    """Write which frames of each network and direction arrived, and when."""
    subprocess.run(["/sbin/modprobe", "tun"], check=True)
    root = Path("/tmp/planted")
    for name in LINKS:
        (root / "links" / name).mkdir(parents=True)
        (root / "links" / name / "link.toml").write_text(link_toml(name), encoding="utf-8")
    os.environ["WATTWIRE_PATH"] = str(root)
    hosts_of_rig = {"near": {"kind": "netns"}, "far": {"kind": "netns"}}
    rig = read_rig({"hosts": hosts_of_rig, "networks": networks()}, "rig.toml")
    with Hosts(rig, Path("/tmp/hosts-of-links")) as hosts:
        for network in rig.networks:
            place, inside = folder / network, Path("/tmp/links") / network
            inside.mkdir(parents=True)
            with hosts.network(network, inside, SEED) as live:
                near, far = live.addresses
                for sender, receiver, name in ((near, far, "up"), (far, near, "down")):
                    _introduce(hosts, sender, receiver, live)
                    _transfer(hosts, sender, receiver, live.addresses[receiver], inside / name)
            shutil.copytree(inside, place)


def _introduce(hosts: Hosts, sender: str, receiver: str, network: LiveNetwork) -> None:
    """Tell a host the hardware address of another one, because a link may lose the question."""
    show = ["ip", "-json", "link", "show", "dev", network.interfaces[receiver]]
    (device,) = json.loads(_output(hosts, receiver, show))
    entry = [network.addresses[receiver], "lladdr", device["address"]]
    _output(hosts, sender, ["ip", "neigh", "replace", *entry, "dev", network.interfaces[sender]])


def _output(hosts: Hosts, host: str, command: list[str]) -> str:
    command = [*hosts.entry_command(host), *command]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _transfer(hosts: Hosts, sender: str, receiver: str, address: str, path: Path) -> None:
    """Send frames one way; write what arrived next to `path`, and how many were sent."""
    plan = (0, 0.0, FLOOD_S) if is_limited(path.parent.name) else (FRAMES, GAP_S, 0.0)
    receive = [sys.executable, "-S", "-c", RECEIVE, address, f"{path}.arrivals", str(QUIET_S)]
    send = [sys.executable, "-S", "-c", SEND, address, f"{path}.sent", str(PAYLOAD_BYTES)]
    into, out = hosts.entry_command(receiver), hosts.entry_command(sender)
    with subprocess.Popen([*into, *receive], stdout=subprocess.PIPE) as receiving:
        assert receiving.stdout is not None
        receiving.stdout.readline()
        subprocess.run([*out, *send, *map(str, plan)], check=True)
    if receiving.returncode:
        raise RuntimeError(f"{path}: the receiver ended with {receiving.returncode}")
