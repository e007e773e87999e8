"""Rigs: the hosts, networks and placements of a campaign."""

from wattwire.model.rig.parsing import SSH_CONFIG, read_rig
from wattwire.model.rig.rig import (
    KERNEL,
    KINDS,
    LOCAL,
    NATIVE,
    NETNS,
    ONE_HOST,
    SHARED,
    SSH,
    HostSpec,
    NetworkSpec,
    PlacementSpec,
    Rig,
)

__all__ = [
    "KERNEL",
    "KINDS",
    "LOCAL",
    "NATIVE",
    "NETNS",
    "ONE_HOST",
    "SHARED",
    "SSH",
    "SSH_CONFIG",
    "HostSpec",
    "NetworkSpec",
    "PlacementSpec",
    "Rig",
    "read_rig",
]
