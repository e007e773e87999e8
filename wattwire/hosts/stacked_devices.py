"""Find the devices of a host that carry the same frames as another one of its devices."""

from __future__ import annotations

from wattwire.hosts.host import Host

TIMEOUT_S = 5.0
ETHERNET = "1"
"""Type of a device (ARPHRD) whose frames are Ethernet's."""
_SCRIPT = """
cd /sys/class/net || exit 0
for device in *; do echo "device $device"; done
for lower in */lower_*; do echo "stack $lower"; done
if [ -d "/sys/devices/virtual/net/$1" ]; then echo "virtual $(cat "$1/type")"; fi
"""


def stacked_devices(host: Host, device: str) -> frozenset[str]:
    """Return the other devices that a frame of a device passes on its host."""
    _, output = host.command(["sh", "-c", _SCRIPT, "sh", device], TIMEOUT_S)
    return read_stack(output, device)


def read_stack(output: str, device: str) -> frozenset[str]:
    """Return the other devices that a frame of a device passes, from the lines of the script.

    These are all devices above and below it: bridge and port, bond and member, VLAN and its device.
    The kernel does not state which device carries the packets of a tunnel, so any may.
    """
    lines = [line.split(maxsplit=1) for line in output.splitlines() if " " in line]
    if any(kind == "virtual" and value != ETHERNET for kind, value in lines):
        return frozenset(value for kind, value in lines if kind == "device") - {device}
    pairs = [value.split("/lower_", 1) for kind, value in lines if kind == "stack"]
    joined, size = {device}, 0
    while size < len(joined):
        size = len(joined)
        joined |= {name for pair in pairs if joined & {*pair} for name in pair}
    return frozenset(joined) - {device}
