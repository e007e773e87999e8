"""Test which devices of a host carry the frames of another one."""

import pytest

from wattwire.hosts.stacked_devices import read_stack

DEVICES = "".join(f"device {name}\n" for name in ("br0", "docker0", "eth0", "eth1", "vlan7", "wg0"))
STACK = "stack br0/lower_eth0\nstack br0/lower_vlan7\nstack vlan7/lower_eth1\n"


@pytest.mark.parametrize(
    ("device", "others"),
    [
        ("br0", {"eth0", "eth1", "vlan7"}),
        ("eth1", {"br0", "eth0", "vlan7"}),
        ("docker0", set()),
        ("wlan0", set()),
    ],
)
def test_devices_above_and_below_carry_the_same_frames(device: str, others: set[str]) -> None:
    assert read_stack(DEVICES + STACK + "virtual 1\n", device) == others


def test_any_device_may_carry_the_packets_of_a_tunnel() -> None:
    every = {"br0", "docker0", "eth0", "eth1", "vlan7"}
    assert read_stack(DEVICES + "stack */lower_*\nvirtual 65534\n", "wg0") == every
    assert read_stack(DEVICES + "stack */lower_*\n", "wg0") == set()
