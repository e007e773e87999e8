"""The network between hosts: configurations of RMWs for it, and sockets on one interface."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from xml.sax.saxutils import quoteattr

from wattwire_kit import Kit

LOCALHOST = "127.0.0.1"
PLACEHOLDER = "HOST_ADDRESS"
"""Stands for the address in the profiles whose name ends with `_interface.xml`."""
LIMITED_RMWS = ("fastrtps", "cyclonedds")
"""Parts of the names of RMWs that wattwire's configuration limits to an interface."""
CYCLONE_DDS = """<CycloneDDS><Domain Id="any"><General><Interfaces>
<NetworkInterface name={interface}/></Interfaces></General></Domain></CycloneDDS>"""


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


def cyclone_dds_configuration(kit: Kit) -> str:
    """Return the configuration of Cyclone DDS for the interface of the host."""
    return CYCLONE_DDS.format(interface=quoteattr(kit.spec["host.interface"]))


def limit_to_interface(kit: Kit, rmw: str) -> str:
    """Bind the process's UDP sockets to host.interface, if the range of discovery requires it.

    Return the range in force. It is subnet for an RMW that no configuration limits: if another
    network then carries its messages, wattwire excludes the run.

    A socket on an address of the host stays unbound, because datagrams from the same host arrive on
    `lo`. Linux delivers to a socket for multicast what arrives on any interface.
    """
    reach = discovery_range(kit)
    if reach != "interface":
        return reach
    if not any(name in rmw for name in LIMITED_RMWS) and not kit.setting("rmw_profile"):
        return "subnet"
    device, address = kit.spec["host.interface"].encode() + b"\0", kit.spec["host.address"]
    unbound = (address,) if address.startswith("127.") else (address, LOCALHOST)
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as opened:
            is_udp = (opened.family, opened.type) == (socket.AF_INET, socket.SOCK_DGRAM)
            if is_udp and opened.getsockname()[0] not in unbound:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
    return reach
