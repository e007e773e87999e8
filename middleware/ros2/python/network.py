"""The network between hosts: Fast DDS's profile for one address, and sockets on one interface."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from wattwire_kit import Kit, MiddlewareFailed

LOCALHOST = "127.0.0.1"
PLACEHOLDER = "HOST_ADDRESS"
"""Stands for the address in the profiles whose name ends with `_interface.xml`."""


def discovery_range(kit: Kit) -> str:
    """Return the range of discovery in force: localhost, subnet, or interface (host.interface)."""
    level: str = kit.setting("discovery")
    return level or ("localhost" if kit.spec["host.address"] == LOCALHOST else "interface")


def fast_dds_profile(kit: Kit, out: Path) -> Path:
    """Return wattwire's profile for the transports and the range of the settings.

    A profile for an interface contains the address of the host, so it is written into `out`.
    """
    reach = discovery_range(kit)
    name = f"{kit.setting('transports')}_{reach}.xml"
    profile = Path(os.environ["WATTWIRE_ROS2_PROFILES"]) / name
    if reach != "interface":
        return profile
    address: str = kit.spec["host.address"]
    # Fast DDS compares with the first address of each interface; that of lo is 127.0.0.1.
    own = LOCALHOST if address.startswith("127.") else address
    written = out / name
    written.write_text(profile.read_text().replace(PLACEHOLDER, own))
    return written


def limit_to_interface(kit: Kit, rmw: str) -> None:
    """Bind the process's UDP sockets to host.interface, if the range of discovery requires it.

    A socket on an address of the host stays unbound, because datagrams from the same host arrive on
    `lo`. Linux delivers to a socket for multicast what arrives on any interface. Raise
    MiddlewareFailed if the RMW's sending sockets are not limited to the interface.
    """
    if discovery_range(kit) != "interface":
        return
    if "fastrtps" not in rmw and not kit.setting("rmw_profile"):
        raise MiddlewareFailed(
            f"settings.discovery: the limit to the interface {kit.spec['host.interface']} is known "
            f"for Fast DDS only and {rmw} is loaded; use settings.rmw_profile"
        )
    device, address = kit.spec["host.interface"].encode() + b"\0", kit.spec["host.address"]
    unbound = (address,) if address.startswith("127.") else (address, LOCALHOST)
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as opened:
            is_udp = (opened.family, opened.type) == (socket.AF_INET, socket.SOCK_DGRAM)
            if is_udp and opened.getsockname()[0] not in unbound:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
